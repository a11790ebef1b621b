//! A server as it is written to an `mcp.json`.

use std::path::Path;

use crate::edit::fields::{Field, Value, fields};
use crate::edit::splice::{indent, newline};
use crate::node::Node;
use crate::server::{Reach, ServerConfig, Wire};

/// How a file is laid out, so that what is added looks like the rest.
pub(super) struct Style {
    /// The blanks of one level.
    pub(super) unit: String,
    pub(super) newline: &'static str,
}

impl Style {
    /// Looks at the first member of the outermost object, which is one level deep.
    pub(super) fn of(text: &str, root: &Node) -> Self {
        let first = root.entries().and_then(|entries| entries.first());
        let unit = first.map_or("", |entry| indent(text, entry.key_span.start));
        let unit = if unit.is_empty() { "  " } else { unit };
        Self { unit: unit.to_owned(), newline: newline(text) }
    }

    /// Returns the blanks of a line so many levels deep.
    pub(super) fn blanks(&self, depth: usize) -> String {
        self.unit.repeat(depth)
    }

    /// Writes an object whose first brace is so many levels deep, a line for each member.
    pub(super) fn object(&self, members: &[String], depth: usize) -> String {
        let line = |member: &String| format!("{}{}{member}", self.newline, self.blanks(depth + 1));
        let lines: Vec<String> = members.iter().map(line).collect();
        format!("{{{}{}{}}}", lines.join(","), self.newline, self.blanks(depth))
    }
}

/// Writes a member of an object.
pub(super) fn member(name: &str, value: &str) -> String {
    format!("{}: {value}", string(name))
}

/// Writes a server whose first brace is so many levels deep.
pub(super) fn server(server: &ServerConfig, folder: &Path, style: &Style, depth: usize) -> String {
    let mut members: Vec<String> = Vec::new();
    // Most clients want to be told that an address is one, and how to speak to it. That we find out how is said in a word
    // of our own.
    if let Reach::Endpoint(endpoint) = &server.reach {
        let is_websocket = endpoint.url.as_written().starts_with("ws");
        let (kind, is_found_out) = match endpoint.wire {
            _ if is_websocket => (Wire::WebSocket, false),
            Wire::Auto => (Wire::Http, true),
            said => (said, false),
        };
        members.push(member("type", &string(kind.as_str())));
        if is_found_out {
            members.push(member("transport", &string(Wire::Auto.as_str())));
        }
    }
    let mut rules: Vec<String> = Vec::new();
    for Field { name, value } in fields(server, folder) {
        match name.split_once('.') {
            Some((_, rule)) => rules.push(member(rule, &written(&value, style, depth + 2))),
            None if name == "transport" => {}
            None if name == "enabled" => members.push(member("disabled", "true")),
            None => members.push(member(name, &written(&value, style, depth + 1))),
        }
    }
    if !rules.is_empty() {
        members.push(member("tools", &style.object(&rules, depth + 1)));
    }
    style.object(&members, depth)
}

fn written(value: &Value, style: &Style, depth: usize) -> String {
    match value {
        Value::Text(text) => string(text),
        Value::Bool(yes) => yes.to_string(),
        Value::List(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Table(pairs) => {
            let members: Vec<String> =
                pairs.iter().map(|(name, value)| member(name, &string(value))).collect();
            style.object(&members, depth)
        }
    }
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
