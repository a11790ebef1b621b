//! The tables that have the servers of a file: each client has a key of its own.

use crate::node::{ConfigNode, NodeKind, TableEntry};
use crate::suggestion::nearest;
use crate::syntax::ConfigFormat;

/// The keys under which the clients store their servers.
pub(super) const CONTAINERS: [&str; 4] = ["mcpServers", "servers", "context_servers", "amp.mcpServers"];

/// The key of opencode, which has the servers themselves in it.
pub(super) const OPENCODE: &str = "mcp";

/// The key of Codex.
pub(super) const CODEX: &str = "mcp_servers";

/// The keys of Goose and Continue.
const YAML_CONTAINERS: [&str; 2] = ["extensions", "mcpServers"];

/// Extensions of Goose that are not servers.
const BUILTIN_EXTENSIONS: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// Finds the tables of servers, in the order of the file.
///
/// Settings of VS Code have the whole under `mcp`, and opencode has the servers themselves there.
pub(crate) fn containers(root: &ConfigNode, format: ConfigFormat) -> impl Iterator<Item = &TableEntry> {
    let keys: &[&str] = match format {
        ConfigFormat::Toml => &["servers"],
        ConfigFormat::Json => &CONTAINERS,
        ConfigFormat::Yaml => &YAML_CONTAINERS,
        ConfigFormat::ClientToml => &[CODEX],
    };
    let settings = root
        .entry(OPENCODE)
        .filter(|_| format == ConfigFormat::Json && CONTAINERS.iter().all(|key| root.get(key).is_none()));
    let own = settings.filter(|entry| has_opencode_servers(&entry.value));
    let root = settings.map_or(root, |entry| &entry.value);
    let entries = root.entries().unwrap_or_default().iter().filter(move |entry| keys.contains(&&*entry.key));
    own.into_iter().chain(entries.filter(move |_| own.is_none()))
}

/// Finds the servers, in the order of the file, without other entries of the same tables.
pub(super) fn server_entries(root: &ConfigNode, format: ConfigFormat) -> impl Iterator<Item = &TableEntry> {
    containers(root, format).flat_map(move |table| {
        let entries = table.value.entries().unwrap_or_default().iter();
        let is_opencode = table.key == OPENCODE;
        let is_other = move |entry: &ConfigNode| is_builtin(entry) || (is_opencode && is_override(entry));
        entries.filter(move |entry| !(format.is_client() && is_other(&entry.value)))
    })
}

/// Reports whether a table has servers as opencode writes them. Their `type` may be left out, and servers that are
/// defined elsewhere may only be enabled or disabled here.
pub(super) fn has_opencode_servers(table: &ConfigNode) -> bool {
    let is_server = |entry: &TableEntry| {
        let kind = entry.value.get("type").and_then(ConfigNode::text);
        let is_location = |value: &ConfigNode| matches!(value.kind, NodeKind::Text(_) | NodeKind::Array(_));
        matches!(kind, Some("local" | "remote"))
            || ["command", "url"].iter().any(|key| entry.value.get(key).is_some_and(is_location))
    };
    let entries = table.entries().unwrap_or_default();
    entries.iter().all(|entry| entry.value.entries().is_some()) && entries.iter().any(is_server)
}

/// Reports whether an entry only enables or disables a server that is defined elsewhere.
fn is_override(entry: &ConfigNode) -> bool {
    entry.entries().is_some_and(|keys| keys.iter().all(|key| key.key == "enabled"))
}

/// Reports whether an entry is a part of the client itself.
fn is_builtin(entry: &ConfigNode) -> bool {
    let kind = entry.get("type").and_then(ConfigNode::text);
    kind.is_some_and(|kind| BUILTIN_EXTENSIONS.contains(&kind))
}

/// Returns the key of servers that a key of the file was probably meant to be.
pub(super) fn nearest_container(key: &str) -> Option<&'static str> {
    nearest(key, CONTAINERS)
}
