//! Scenarios that look at what a client does with tools.

use serde_json::json;
use trunkline::Result;
use trunkline_client::Client;
use trunkline_client::protocol::RawJson;

/// Lists the tools, and nothing else.
pub(super) async fn list(client: &Client) -> Result<()> {
    client.tools().await?;
    Ok(())
}

/// Lists the tools and calls the one that adds.
pub(super) async fn add_numbers(client: &Client) -> Result<()> {
    client.tools().await?;
    client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?;
    Ok(())
}

/// Calls every tool that is listed, without arguments.
pub(super) async fn every_tool(client: &Client) -> Result<()> {
    for tool in client.tools().await?.iter() {
        client.call(&tool.name, json!({})).await?;
    }
    Ok(())
}

/// Gives the server the schema of one of its tools back, every keyword of it.
pub(super) async fn echo_schema(client: &Client) -> Result<()> {
    let tools = client.tools().await?;
    let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = &tool.ok_or("the tool with the schema is not listed")?.input_schema;
    client.call("json_schema_echo", RawJson::parse(format!(r#"{{"schema":{schema}}}"#))?).await?;
    Ok(())
}
