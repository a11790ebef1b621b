//! The client on ours.

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use clients::{Options, TEXT, measure};
use serde_json::json;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::Target;
use trunkline_client::transport::process::Command;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let revision = Revision::parse(&options.revision).context("no such revision")?;
    let target = match (&options.http, &options.stdio) {
        (Some(url), _) => url.parse::<Target>()?,
        (None, Some(words)) => {
            let (program, arguments) = words.split_first().context("--stdio PROGRAM")?;
            Command::new(program).args(arguments).into()
        }
        (None, None) => anyhow::bail!("give --http or --stdio"),
    };
    let client = Client::builder().pin(revision).connect(target).await?;
    measure(&options, || async {
        let answer = client.call("echo", json!({ "message": TEXT })).await?;
        ensure!(answer.text() == TEXT, "another text came back");
        Ok(())
    })
    .await?;
    client.close().await;
    Ok(())
}
