//! A server as it is written to an `mcp.json`.

use std::path::Path;

use crate::edit::fields::{FieldValue, ServerField, fields};
use crate::edit::text_edit::{indent, newline};
use crate::node::ConfigNode;
use crate::server::{RemoteTransport, ServerConfig, ServerLocation};

/// The layout of a file, so that additions match it.
pub(super) struct JsonStyle {
    /// The indentation of one level.
    pub(super) indent_unit: String,
    pub(super) newline: &'static str,
}

impl JsonStyle {
    /// Detects the style from the first member of the outermost object, which is one level deep.
    pub(super) fn of(text: &str, root: &ConfigNode) -> Self {
        let first = root.entries().and_then(|entries| entries.first());
        let unit = first.map_or("", |entry| indent(text, entry.key_span.start));
        let unit = if unit.is_empty() { "  " } else { unit };
        Self { indent_unit: unit.to_owned(), newline: newline(text) }
    }

    /// Returns the indentation of a level.
    pub(super) fn indent(&self, depth: usize) -> String {
        self.indent_unit.repeat(depth)
    }

    /// Writes an object at an indentation level, with one line for each member.
    pub(super) fn object(&self, members: &[String], depth: usize) -> String {
        let line = |member: &String| format!("{}{}{member}", self.newline, self.indent(depth + 1));
        let lines: Vec<String> = members.iter().map(line).collect();
        format!("{{{}{}{}}}", lines.join(","), self.newline, self.indent(depth))
    }
}

/// Writes a member of an object.
pub(super) fn member(name: &str, value: &str) -> String {
    format!("{}: {value}", string(name))
}

/// Writes a server at an indentation level.
pub(super) fn server(server: &ServerConfig, folder: &Path, style: &JsonStyle, depth: usize) -> String {
    let mut members: Vec<String> = Vec::new();
    // Most clients require a `type` that names the transport of a URL. Automatic detection is our own extension, so
    // it has a key of its own.
    if let ServerLocation::Endpoint(endpoint) = &server.location {
        let is_websocket = endpoint.url.as_written().starts_with("ws");
        let (kind, is_detected) = match endpoint.transport {
            _ if is_websocket => (RemoteTransport::WebSocket, false),
            RemoteTransport::Auto => (RemoteTransport::Http, true),
            transport => (transport, false),
        };
        members.push(member("type", &string(kind.as_str())));
        if is_detected {
            members.push(member("transport", &string(RemoteTransport::Auto.as_str())));
        }
    }
    let mut nested: Vec<(&str, Vec<String>)> = Vec::new();
    for ServerField { name, value } in fields(server, folder) {
        match name.split_once('.') {
            Some((table, key)) => {
                let added = member(key, &render_value(&value, style, depth + 2));
                match nested.iter_mut().find(|(known, _)| *known == table) {
                    Some((_, members)) => members.push(added),
                    None => nested.push((table, vec![added])),
                }
            }
            None if name == "transport" => {}
            None if name == "enabled" => members.push(member("disabled", "true")),
            None => members.push(member(name, &render_value(&value, style, depth + 1))),
        }
    }
    let nested = nested.iter().map(|(table, inner)| member(table, &style.object(inner, depth + 1)));
    members.extend(nested);
    style.object(&members, depth)
}

/// The key of opencode.
pub(super) const OPENCODE: &str = "mcp";

/// Writes a server as opencode has it: the program and its arguments in one list.
pub(super) fn opencode_server(
    server: &ServerConfig,
    folder: &Path,
    style: &JsonStyle,
    depth: usize,
) -> String {
    let (kind, mut command) = match &server.location {
        ServerLocation::Program(program) => ("local", vec![program.command.as_written().to_owned()]),
        ServerLocation::Endpoint(_) => ("remote", Vec::new()),
    };
    let mut members = vec![member("type", &string(kind))];
    for ServerField { name, value } in fields(server, folder) {
        match (name, value) {
            ("args", FieldValue::List(words)) => command.extend(words),
            ("command" | "enabled" | "transport", _) => {}
            ("env", value) => members.push(member("environment", &render_value(&value, style, depth + 1))),
            (name, value) => members.push(member(name, &render_value(&value, style, depth + 1))),
        }
    }
    if !command.is_empty() {
        members.insert(1, member("command", &render_value(&FieldValue::List(command), style, depth + 1)));
    }
    members.push(member("enabled", &server.enabled.to_string()));
    style.object(&members, depth)
}

fn render_value(value: &FieldValue, style: &JsonStyle, depth: usize) -> String {
    match value {
        FieldValue::Text(text) => string(text),
        FieldValue::Bool(yes) => yes.to_string(),
        FieldValue::List(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            format!("[{}]", texts.join(", "))
        }
        FieldValue::Table(pairs) => {
            let members: Vec<String> =
                pairs.iter().map(|(name, value)| member(name, &string(value))).collect();
            style.object(&members, depth)
        }
    }
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
