//! A client in four lines: it connects to whatever is named on the command line, and calls a tool of it.
//! `cargo run --example client -- "cargo run -q --example echo -- --stdio"`, or with an address such as `http://127.0.0.1:7411/mcp`.
#![allow(clippy::print_stdout, reason = "what the tool says is what it is for")]

use serde_json::json;
use trunkline::prelude::*;

pub(crate) async fn say_hi(target: impl Into<Target>) -> trunkline::Result<String> {
    let client = Client::connect(target).await?;
    Ok(client.call("echo", json!({ "message": "hi" })).await?.text())
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    println!("{}", say_hi(std::env::args().nth(1).unwrap_or_default()).await?);
    Ok(())
}
