//! A server as it is written to `trunkline.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::edit::fields::{FieldValue, ServerField, fields};
use crate::server::ServerConfig;

/// Writes a server as a table with a header, each line ended.
pub(super) fn block(server: &ServerConfig, folder: &Path) -> String {
    let mut out = format!("[servers.{}]\n", key(server.name.as_str()));
    for ServerField { name, value } in fields(server, folder) {
        out.push_str(&format!("{name} = {}\n", render_value(&value)));
    }
    out
}

/// Writes a server as one value.
pub(super) fn inline(server: &ServerConfig, folder: &Path) -> String {
    let pairs: Vec<String> = fields(server, folder)
        .iter()
        .map(|ServerField { name, value }| format!("{name} = {}", render_value(value)))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
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
