//! A server as it is written to `trunkline.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::edit::fields::{FieldValue, ServerField, fields};
use crate::server::ServerConfig;

use super::CODEX;

/// Writes a server as a table with a header, each line ended.
pub(super) fn block(table: &str, server: &ServerConfig, folder: &Path) -> String {
    let mut out = format!("[{table}.{}]\n", key(server.name.as_str()));
    for (name, value) in named_fields(table, server, folder) {
        out.push_str(&format!("{name} = {}\n", render_value(&value)));
    }
    out
}

/// Writes a server as one value.
pub(super) fn inline(table: &str, server: &ServerConfig, folder: &Path) -> String {
    let pairs: Vec<String> = named_fields(table, server, folder)
        .iter()
        .map(|(name, value)| format!("{name} = {}", render_value(value)))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// Lists the fields of a server by the keys of the file.
fn named_fields(table: &str, server: &ServerConfig, folder: &Path) -> Vec<(&'static str, FieldValue)> {
    let is_codex = table == CODEX;
    let named = |ServerField { name, value }| match name {
        "headers" if is_codex => Some(("http_headers", value)),
        // Codex has one transport for URLs.
        "transport" if is_codex => None,
        name => Some((name, value)),
    };
    fields(server, folder).into_iter().filter_map(named).collect()
}

/// Writes a key, with quotes if it needs them.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { string(name) }
}

fn render_value(value: &FieldValue) -> String {
    match value {
        FieldValue::Text(text) => string(text),
        FieldValue::Bool(yes) => yes.to_string(),
        FieldValue::List(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            format!("[{}]", texts.join(", "))
        }
        FieldValue::Table(pairs) => table(pairs),
    }
}

fn table(pairs: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{} = {}", key(name), string(value))).collect();
    if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// Writes a string. All that JSON escapes, TOML escapes in the same way; DEL only TOML does.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
