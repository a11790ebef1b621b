//! The client on rmcp, the way its own documentation shows.

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use clients::{Options, TEXT, measure};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::json;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let client = match (&options.http, &options.stdio) {
        (Some(url), _) => ().serve(StreamableHttpClientTransport::from_uri(url.as_str())).await?,
        (None, Some(words)) => {
            let (program, arguments) = words.split_first().context("--stdio PROGRAM")?;
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            ().serve(TokioChildProcess::new(command)?).await?
        }
        (None, None) => anyhow::bail!("give --http or --stdio"),
    };
    measure(&options, || async {
        let arguments = json!({ "message": TEXT }).as_object().cloned().context("an object")?;
        let call = CallToolRequestParams::new(options.tool.clone()).with_arguments(arguments);
        let answer = client.call_tool(call).await?;
        let text = answer.content.first().and_then(|content| content.as_text());
        ensure!(text.is_some_and(|text| text.text == TEXT), "another text came back");
        Ok(())
    })
    .await?;
    client.cancel().await?;
    Ok(())
}
