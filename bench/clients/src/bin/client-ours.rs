//! The client on ours.

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use clients::{Options, TEXT, measure, time};
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
    let mut clients = Vec::new();
    for _ in 0..options.clients.unwrap_or(1) {
        clients.push(Client::builder().pin(revision).connect(target.clone()).await?);
    }
    match options.clients {
        Some(_) => {
            time(&options, clients.iter().map(|client| || echo(client, &options.tool)).collect()).await?;
        }
        None => {
            let client = clients.first().context("no client")?;
            measure(&options, || echo(client, &options.tool)).await?;
        }
    }
    for client in clients {
        client.close().await;
    }
    Ok(())
}

async fn echo(client: &Client, tool: &str) -> anyhow::Result<()> {
    let answer = client.call(tool, json!({ "message": TEXT })).await?;
    ensure!(answer.text() == TEXT, "another text came back");
    Ok(())
}
