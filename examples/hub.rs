//! A hub within a program: the servers of a file behind one endpoint, beside tools that the program registers at run time.
//! `cargo run -p trunkline-hub --example hub -- mcp.json 127.0.0.1:7412`
#![allow(clippy::print_stderr, reason = "failed servers are reported to the user")]

use std::sync::Arc;

use serde_json::{Value, json};
use trunkline_hub::config::{ConfigFile, ConfigVariables, ServerName};
use trunkline_hub::{Hub, HubOptions, LocalServers};
use trunkline_server::protocol::model::ToolAnnotations;
use trunkline_server::{Host, HostOptions, Server, ServerHandle, ServerTransport as _, Tool, http};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Makes a hub with the servers of a file, and a server for the tools of the program itself.
pub(crate) async fn start_hub(file: &str) -> Result<(Hub, ServerHandle)> {
    let own = Server::new("own").version(env!("CARGO_PKG_VERSION")).advertise_tools().handle()?;
    let local = Arc::new(LocalServers::default());
    let mut servers = ConfigFile::open(file, ConfigVariables::from_environment())?.servers()?;
    servers.push(local.add(ServerName::parse("own")?, &own)?);
    let hub = Hub::new(HubOptions { connector: local, ..HubOptions::default() });
    for (server, reason) in hub.set_servers(servers).await.failed {
        eprintln!("{server}: {reason}");
    }
    Ok((hub, own))
}

/// Registers a tool by its name, schema, description, annotations and handler. Clients are notified of the new list.
pub(crate) fn register_tool(own: &ServerHandle) -> Result<()> {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"],
    });
    let count = Tool::new("count")
        .description("Counts the characters of a text.")
        .input_schema(schema)
        .annotations(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() })
        .run_raw(|_context, arguments| async move {
            let arguments: Value = arguments.decode().unwrap_or_default();
            let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default();
            text.chars().count().to_string()
        });
    Ok(own.add(count)?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let file = words.next().unwrap_or_else(|| "mcp.json".to_owned());
    let address = words.next().unwrap_or_else(|| "127.0.0.1:7412".to_owned());
    let (hub, own) = start_hub(&file).await?;
    register_tool(&own)?;
    http(address).serve(Host::new(hub.clone(), HostOptions::default())?).await?;
    hub.shutdown().await;
    Ok(())
}
