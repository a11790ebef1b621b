//! The definitions of the two tools for agents without resource support.

use serde_json::json;
use trunkline_protocol::model::{Tool, ToolAnnotations};

/// The name of the tool that lists resources.
pub(crate) const LIST_TOOL: &str = "list_mcp_resources";

/// The name of the tool that reads one.
pub(crate) const READ_TOOL: &str = "read_mcp_resource";

pub(super) fn list_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "server": { "type": "string", "description": "Only the resources of this server; all servers without it." },
        },
        "additionalProperties": false,
    });
    make_tool(
        LIST_TOOL,
        "Lists the resources that MCP servers offer: server, uri, name, description and media type.",
        &schema,
    )
}

pub(super) fn read_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "uri": { "type": "string", "description": "The address of the resource, as it is listed." },
            "server": { "type": "string", "description": "The server to read it from; by default the one that it belongs to." },
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    make_tool(READ_TOOL, "Reads a resource that an MCP server offers.", &schema)
}

fn make_tool(name: &str, description: &str, schema: &serde_json::Value) -> Tool {
    let mut tool = Tool::new(name, schema.into());
    tool.description = Some(description.to_owned());
    tool.annotations = Some(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
    tool
}
