//! Edits of a client's YAML file, by whole lines, so that everything else is preserved.
//!
//! Only lists and mappings in block style are edited; others are left to the user.

use std::path::Path;

use super::fields::{FieldValue, ServerField, fields};
use super::text_edit::{TextEdit, indent, line_above, line_start, newline, next_line};
use crate::file::containers;
use crate::node::{ConfigNode, TableEntry};
use crate::server::{ServerConfig, ServerLocation};
use crate::syntax::ConfigFormat;

/// How a client writes its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YamlDialect {
    /// A list, each with a `name`: Continue.
    NamedList,
    /// A mapping by name, with keys of its own: Goose.
    Extensions,
}

impl YamlDialect {
    fn of(container: &str) -> Self {
        if container == EXTENSIONS { Self::Extensions } else { Self::NamedList }
    }

    /// Returns the value without servers.
    fn empty(self) -> &'static str {
        match self {
            Self::NamedList => "[]",
            Self::Extensions => "{}",
        }
    }
}

/// The key of Goose.
const EXTENSIONS: &str = "extensions";

/// Adds a server after the others; creates the container if there is none.
pub(super) fn add(
    text: &str,
    root: &ConfigNode,
    container: &str,
    server: &ServerConfig,
    folder: &Path,
) -> Vec<TextEdit> {
    let line_end = newline(text);
    let Some(known) = containers(root, ConfigFormat::Yaml).next() else {
        let lines = entry_lines(server, folder, YamlDialect::of(container), "  ");
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
        let block = format!("{before}{container}:{line_end}{}", joined(&lines, line_end));
        return vec![TextEdit::insert(text.len(), block)];
    };
    let dialect = YamlDialect::of(&known.key);
    match known.value.entries().and_then(|servers| servers.last()) {
        Some(last) => {
            let blanks = indent(text, last.key_span.start);
            let lines = entry_lines(server, folder, dialect, blanks);
            let at = block_end(text, last);
            let before = if text.get(..at).is_some_and(|text| text.ends_with('\n')) { "" } else { line_end };
            vec![TextEdit::insert(at, format!("{before}{}", joined(&lines, line_end)))]
        }
        None => {
            // `[]`, `{}` or nothing is behind the key.
            let lines = entry_lines(server, folder, dialect, "  ");
            let end = next_line(text, known.key_span.end);
            let line = format!("{}:{line_end}{}", known.key, joined(&lines, line_end));
            vec![TextEdit::replace(known.key_span.start..end, line)]
        }
    }
}

/// Removes a server with the comments directly above it.
pub(super) fn remove(text: &str, root: &ConfigNode, name: &str) -> Vec<TextEdit> {
    let mut all = containers(root, ConfigFormat::Yaml);
    let Some(container) = all.find(|container| container.value.get(name).is_some()) else {
        return Vec::new();
    };
    let Some(entry) = container.value.entry(name) else { return Vec::new() };
    let range = line_start(text, entry.key_span.start)..block_end(text, entry);
    if container.value.entries().is_some_and(|servers| servers.len() > 1) {
        return vec![TextEdit::delete(comment_start(text, range.start)..range.end)];
    }
    let line_end = newline(text);
    let empty = format!("{}: {}{line_end}", container.key, YamlDialect::of(&container.key).empty());
    vec![
        TextEdit::replace(container.key_span.start..next_line(text, container.key_span.end), empty),
        TextEdit::delete(range),
    ]
}

/// Removes an empty table of servers.
pub(super) fn remove_container(text: &str, root: &ConfigNode, container: &str) -> Vec<TextEdit> {
    let line =
        |entry: &TableEntry| line_start(text, entry.key_span.start)..next_line(text, entry.key_span.end);
    root.entry(container).map(|entry| TextEdit::delete(line(entry))).into_iter().collect()
}

/// Returns the start of the comments directly above a line, at its indentation.
fn comment_start(text: &str, line: usize) -> usize {
    let mut start = line;
    while let Some((above, content)) = line_above(text, start) {
        if !content.starts_with('#') || indent(text, above) != indent(text, line) {
            break;
        }
        start = above;
    }
    start
}

/// Returns where the line after the last one of an entry begins: everything in it is indented deeper. Blank lines and
/// comments belong to it only if more of it follows.
fn block_end(text: &str, entry: &TableEntry) -> usize {
    let first = line_start(text, entry.key_span.start);
    let own = indent(text, first).len();
    let mut end = next_line(text, first);
    let mut at = end;
    while at < text.len() {
        let next = next_line(text, at);
        let line = text.get(at..next).unwrap_or_default().trim();
        let is_blank = line.is_empty() || line.starts_with('#');
        if !is_blank && indent(text, at).len() <= own {
            break;
        }
        at = next;
        end = if is_blank { end } else { next };
    }
    end
}

fn joined(lines: &[String], line_end: &str) -> String {
    lines.iter().map(|line| format!("{line}{line_end}")).collect()
}

/// Writes a server as the lines of its client.
fn entry_lines(server: &ServerConfig, folder: &Path, dialect: YamlDialect, blanks: &str) -> Vec<String> {
    let name = server.name.as_str();
    let (first, mut lines) = match dialect {
        YamlDialect::NamedList => (format!("- name: {}", string(name)), Vec::new()),
        YamlDialect::Extensions => {
            let kind = match &server.location {
                ServerLocation::Program(_) => "stdio",
                ServerLocation::Endpoint(_) => "streamable_http",
            };
            let enabled = format!("enabled: {}", server.enabled);
            let lines = vec![format!("name: {}", string(name)), format!("type: {kind}"), enabled];
            (format!("{}:", string(name)), lines)
        }
    };
    for ServerField { name, value } in fields(server, folder) {
        let key = match (dialect, name) {
            (YamlDialect::Extensions, "command") => "cmd",
            (YamlDialect::Extensions, "env") => "envs",
            (YamlDialect::Extensions, "url") => "uri",
            (YamlDialect::Extensions, "enabled") | (_, "transport") => continue,
            (_, other) => other,
        };
        lines.extend(field_lines(key, &value));
    }
    if let (YamlDialect::NamedList, ServerLocation::Endpoint(_)) = (dialect, &server.location) {
        lines.insert(0, "type: streamable-http".to_owned());
    }
    let rest = lines.into_iter().map(|line| format!("{blanks}  {line}"));
    std::iter::once(format!("{blanks}{first}")).chain(rest).collect()
}

fn field_lines(key: &str, value: &FieldValue) -> Vec<String> {
    match value {
        FieldValue::Text(text) => vec![format!("{key}: {}", string(text))],
        FieldValue::Bool(yes) => vec![format!("{key}: {yes}")],
        FieldValue::List(texts) => {
            let items = texts.iter().map(|text| format!("  - {}", string(text)));
            std::iter::once(format!("{key}:")).chain(items).collect()
        }
        FieldValue::Table(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("  {}: {}", string(name), string(value)));
            std::iter::once(format!("{key}:")).chain(pairs).collect()
        }
    }
}

/// Writes a text; names that need no quotes have none. A string of JSON is one of YAML too.
fn string(text: &str) -> String {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !matches!(
            &*text.to_ascii_lowercase(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_name { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
