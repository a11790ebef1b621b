//! Edits of an `mcp.json`, applied to its text so that everything else is preserved.

mod members;
mod render;

use std::path::Path;

use self::members::{append, remove_member};
use super::text_edit::TextEdit;
use crate::file::containers;
use crate::node::{ConfigNode, TableEntry};
use crate::server::ServerConfig;
use crate::syntax::ConfigFormat;

/// Adds a server after the others; creates the container if there is none.
pub(super) fn add(
    text: &str,
    root: &ConfigNode,
    container: &str,
    server: &ServerConfig,
    folder: &Path,
) -> Vec<TextEdit> {
    let style = render::JsonStyle::of(text, root);
    // The table of opencode is known to be one only once it has servers.
    let empty = root.entry(container).filter(|_| container == render::OPENCODE);
    let known = containers(root, ConfigFormat::Json).next().or(empty);
    let key = known.map_or(container, |known| &known.key);
    let entry = |depth| {
        let written = match key == render::OPENCODE {
            true => render::opencode_server(server, folder, &style, depth),
            false => render::server(server, folder, &style, depth),
        };
        render::member(server.name.as_str(), &written)
    };
    match known {
        Some(known) if known.value.is_null() => {
            vec![TextEdit::replace(known.value.span.clone(), style.object(&[entry(2)], 1))]
        }
        Some(known) => append(text, &known.value, &style, entry),
        None => append(text, root, &style, |depth| {
            render::member(container, &style.object(&[entry(depth + 1)], depth))
        }),
    }
}

/// Removes a server.
pub(super) fn remove(text: &str, root: &ConfigNode, name: &str) -> Vec<TextEdit> {
    let within = containers(root, ConfigFormat::Json).find(|container| container.value.get(name).is_some());
    within.map_or_else(Vec::new, |container| remove_member(text, &container.value, name))
}

/// Removes a table of servers.
pub(super) fn remove_container(text: &str, root: &ConfigNode, container: &str) -> Vec<TextEdit> {
    remove_member(text, root, container)
}

/// Enables or disables a server, if its definition differs.
pub(super) fn set_enabled(text: &str, root: &ConfigNode, name: &str, enabled: bool) -> Vec<TextEdit> {
    let Some(server) = containers(root, ConfigFormat::Json).find_map(|container| container.value.get(name))
    else {
        return Vec::new();
    };
    let is_flag = |entry: &&TableEntry| entry.key == "enabled" || entry.key == "disabled";
    match server.entries().unwrap_or_default().iter().find(is_flag) {
        Some(entry) => {
            let value = enabled == (entry.key == "enabled");
            vec![TextEdit::replace(entry.value.span.clone(), value.to_string())]
        }
        None if enabled => Vec::new(),
        None => {
            let style = render::JsonStyle::of(text, root);
            append(text, server, &style, |_| render::member("disabled", "true"))
        }
    }
}
