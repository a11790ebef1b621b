//! Edits of `trunkline.toml`, and of the file of Codex, applied to its text so that everything else is preserved.

mod render;
mod statements;

use std::ops::Range;
use std::path::Path;

use self::statements::{StatementKind, TomlStatement, statements};
use super::text_edit::{TextEdit, indent, line_above, line_start, newline, next_line};
use crate::node::{ConfigNode, TableEntry};
use crate::server::ServerConfig;

/// The table of servers in `trunkline.toml`.
pub(super) const SERVERS: &str = "servers";

/// The table of servers of Codex.
pub(super) const CODEX: &str = "mcp_servers";

/// Adds a server after the others, or at the end.
pub(super) fn add(
    text: &str,
    root: &ConfigNode,
    table: &str,
    server: &ServerConfig,
    folder: &Path,
) -> Vec<TextEdit> {
    let line_end = newline(text);
    if let Some(inline) = inline_servers(text, root, table) {
        let value = render::inline(table, server, folder);
        let pair = format!("{} = {value}", render::key(server.name.as_str()));
        return vec![insert_first(inline, &pair)];
    }
    let block = render::block(table, server, folder).replace('\n', line_end);
    let statements = statements(text);
    let last = statements.iter().rposition(|statement| statement.is_within(&[table]));
    let (at, before) = match last {
        Some(last) => (section_end(text, &statements, last), line_end),
        None => (text.len(), if text.trim().is_empty() { "" } else { line_end }),
    };
    let closes_line = at == 0 || text.get(..at).is_some_and(|text| text.ends_with('\n'));
    let before = if closes_line { before.to_owned() } else { format!("{line_end}{before}") };
    vec![TextEdit::insert(at, format!("{before}{block}"))]
}

/// Removes a server with all of its tables and pairs.
pub(super) fn remove(text: &str, root: &ConfigNode, table: &str, name: &str) -> Vec<TextEdit> {
    if let Some(inline) = inline_servers(text, root, table) {
        return remove_member(inline.entries().unwrap_or_default(), name).into_iter().collect();
    }
    let statements = statements(text);
    let server = [table, name];
    let mut splices = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        if !statement.is_within(&server) {
            continue;
        }
        match statement.kind {
            StatementKind::Header => splices.push(TextEdit::delete(section(text, &statements, index))),
            // Pairs below a header of the server go with it.
            StatementKind::Pair { above } if above >= server.len() => {}
            StatementKind::Pair { .. } => {
                let start = comment_start(text, line_start(text, statement.span.start));
                splices.push(TextEdit::delete(start..next_line(text, statement.span.end)));
            }
        }
    }
    splices
}

/// Enables or disables a server, if its definition differs.
pub(super) fn set_enabled(
    text: &str,
    root: &ConfigNode,
    table: &str,
    name: &str,
    enabled: bool,
) -> Vec<TextEdit> {
    let Some(server) = root.at(&[table, name]) else { return Vec::new() };
    if let Some(value) = server.get("enabled") {
        return vec![TextEdit::replace(value.span.clone(), enabled.to_string())];
    }
    if enabled {
        return Vec::new();
    }
    let pair = format!("enabled = {enabled}");
    if text.get(server.span.clone()).is_some_and(|text| text.starts_with('{')) {
        return vec![insert_first(server, &pair)];
    }
    let line_end = newline(text);
    let statements = statements(text);
    let path = [table, name];
    let own = statements.iter().find(|statement| statement.is_header() && statement.path == path);
    if let Some(header) = own {
        let blanks = indent(text, header.span.start);
        return vec![add_line(text, header.span.end, &format!("{blanks}{pair}"), line_end)];
    }
    // The server is defined by dotted pairs such as `github.command`; this adds one more.
    let above = |statement: &&TomlStatement| matches!(statement.kind, StatementKind::Pair { above } if above < path.len());
    let dotted = statements.iter().rfind(|statement| above(statement) && statement.is_within(&path));
    if let Some(statement) = dotted {
        let StatementKind::Pair { above } = statement.kind else { return Vec::new() };
        let keys: Vec<String> = path.iter().skip(above).map(|key| render::key(key)).collect();
        let blanks = indent(text, statement.span.start);
        let line = format!("{blanks}{}.{pair}", keys.join("."));
        return vec![add_line(text, statement.span.end, &line, line_end)];
    }
    // There are only tables below it, and it gets a header of its own in front of them.
    let first = statements.iter().find(|statement| statement.is_within(&path));
    let at = first.map_or(text.len(), |first| comment_start(text, line_start(text, first.span.start)));
    let header = format!("[{table}.{}]{line_end}{pair}{line_end}{line_end}", render::key(name));
    vec![TextEdit::insert(at, header)]
}

/// Returns the table of servers if it is written as one value, in which headers cannot add anything.
fn inline_servers<'a>(text: &str, root: &'a ConfigNode, table: &str) -> Option<&'a ConfigNode> {
    let servers = root.get(table)?;
    text.get(servers.span.clone())?.starts_with('{').then_some(servers)
}

/// Puts a pair at the beginning of an inline table, where it needs no care for a comma at the end.
fn insert_first(table: &ConfigNode, pair: &str) -> TextEdit {
    if table.entries().is_some_and(<[TableEntry]>::is_empty) {
        return TextEdit::replace(table.span.clone(), format!("{{ {pair} }}"));
    }
    TextEdit::insert(table.span.start + 1, format!(" {pair},"))
}

/// Removes a member of an inline table together with the comma that it needed.
fn remove_member(entries: &[TableEntry], name: &str) -> Option<TextEdit> {
    let index = entries.iter().position(|entry| entry.key == name)?;
    let entry = entries.get(index)?;
    let before = index.checked_sub(1).and_then(|index| entries.get(index));
    let range = match (before, entries.get(index + 1)) {
        (_, Some(next)) => entry.key_span.start..next.key_span.start,
        (Some(before), None) => before.value.span.end..entry.value.span.end,
        (None, None) => entry.key_span.start..entry.value.span.end,
    };
    Some(TextEdit::delete(range))
}

/// Adds a line after that of an offset, which may be the last one without a newline.
fn add_line(text: &str, at: usize, line: &str, line_end: &str) -> TextEdit {
    let after = next_line(text, at);
    let ended = text.get(..after).is_some_and(|text| text.ends_with('\n'));
    let added = if ended { format!("{line}{line_end}") } else { format!("{line_end}{line}") };
    TextEdit::insert(after, added)
}

/// Returns what a header opens, with the comments that are about it and the blank lines that set it off.
fn section(text: &str, statements: &[TomlStatement], header: usize) -> Range<usize> {
    let first = statements.get(header).map_or(0, |statement| line_start(text, statement.span.start));
    let mut start = comment_start(text, first);
    let mut end = section_end(text, statements, header);
    while let Some((above, "")) = line_above(text, start) {
        start = above;
    }
    // At the start of a file, the blank lines after the statement are removed instead.
    while start == 0 && end < text.len() {
        let next = next_line(text, end);
        if !text.get(end..next).is_some_and(|line| line.trim().is_empty()) {
            break;
        }
        end = next;
    }
    start..end
}

/// Returns where a section ends: behind its last pair, and behind comments below it that belong to nothing else.
fn section_end(text: &str, statements: &[TomlStatement], within: usize) -> usize {
    let rest = statements.get(within..).unwrap_or_default();
    let pairs = rest.iter().skip(1).take_while(|statement| !statement.is_header());
    let last = rest.first().into_iter().chain(pairs).last();
    let end = last.map_or(text.len(), |statement| next_line(text, statement.span.end));
    let next_header = rest.iter().skip(1).find(|statement| statement.is_header());
    let next = next_header.map(|header| comment_start(text, line_start(text, header.span.start)));
    let mut after = end;
    while text.get(after..next_line(text, after)).is_some_and(|line| line.trim_start().starts_with('#')) {
        after = next_line(text, after);
    }
    // Comments that touch the next header are about that one.
    match next {
        Some(next) if next <= after => next.max(end),
        _ => after,
    }
}

/// Returns the start of the comments directly above a line.
fn comment_start(text: &str, line: usize) -> usize {
    let mut start = line;
    while let Some((above, content)) = line_above(text, start) {
        if !content.starts_with('#') {
            break;
        }
        start = above;
    }
    start
}
