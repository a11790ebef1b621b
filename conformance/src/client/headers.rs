//! Scenarios that look at the headers of requests.

use serde_json::{Value, json};
use trunkline::Result;
use trunkline_client::Client;

/// Makes every request that has headers of its own, with everything that the server lists.
pub(super) async fn every_method(client: &Client) -> Result<()> {
    for tool in client.tools().await?.iter() {
        client.call(&tool.name, json!({})).await?;
    }
    for resource in client.resources().await?.iter() {
        client.read(&resource.uri).await?;
    }
    for prompt in client.prompts().await?.iter() {
        client.get_prompt(&prompt.name, json!({})).await?;
    }
    Ok(())
}

/// Makes the calls that the scenario lists.
pub(super) async fn listed_calls(client: &Client, context: &Value) -> Result<()> {
    client.tools().await?;
    let calls = context.get("toolCalls").and_then(Value::as_array).ok_or("the scenario lists no calls")?;
    for call in calls {
        let name = call.get("name").and_then(Value::as_str).ok_or("a call has no name")?;
        client.call(name, call.get("arguments").cloned().unwrap_or_else(|| json!({}))).await?;
    }
    Ok(())
}

/// Calls every tool that a client may use.
pub(super) async fn valid_tools(client: &Client) -> Result<()> {
    for tool in client.tools().await?.iter() {
        client.call(&tool.name, json!({ "region": "us-west1" })).await?;
    }
    Ok(())
}
