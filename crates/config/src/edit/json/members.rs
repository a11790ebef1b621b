//! Members of an object, added and removed with their commas and the comments about them.

use std::ops::Range;

use super::render::JsonStyle;
use crate::edit::text_edit::{TextEdit, indent, line_above, line_start, next_line};
use crate::node::{ConfigNode, TableEntry};

/// Adds a member at the end of an object; `member` renders it for an indentation level.
pub(super) fn append(
    text: &str,
    object: &ConfigNode,
    style: &JsonStyle,
    member: impl Fn(usize) -> String,
) -> Vec<TextEdit> {
    match object.entries().and_then(|entries| entries.last()) {
        Some(last) => append_after(text, object, last, style, &member),
        None => vec![append_first(text, object, style, &member)],
    }
}

fn append_after(
    text: &str,
    object: &ConfigNode,
    last: &TableEntry,
    style: &JsonStyle,
    member: &dyn Fn(usize) -> String,
) -> Vec<TextEdit> {
    let value_end = last.value.span.end;
    let comma = comma_between(text, value_end..closing(object));
    let behind = comma.map_or(value_end, |comma| comma + 1);
    if !begins_line(text, last.key_span.start) {
        let member = on_one_line(&member(0), style);
        let added = if comma.is_some() { format!(" {member},") } else { format!(", {member}") };
        return vec![TextEdit::insert(behind, added)];
    }
    let blanks = indent(text, last.key_span.start);
    let member = member(levels(blanks, style));
    let at = end_of_line(text, behind, closing(object));
    let line = format!("{}{blanks}{member}", style.newline);
    match comma {
        Some(_) => vec![TextEdit::insert(at, format!("{line},"))],
        None => vec![TextEdit::insert(value_end, ","), TextEdit::insert(at, line)],
    }
}

fn append_first(
    text: &str,
    object: &ConfigNode,
    style: &JsonStyle,
    member: &dyn Fn(usize) -> String,
) -> TextEdit {
    // An empty file is parsed as an empty object with an empty span.
    if object.span.is_empty() {
        let whole = style.object(&[member(1)], 0);
        return TextEdit::insert(text.len(), format!("{whole}{}", style.newline));
    }
    let blanks = indent(text, object.span.start);
    let depth = levels(blanks, style) + 1;
    let line = format!("{blanks}{}{}", style.indent_unit, member(depth));
    let close = closing(object);
    let inside = text.get(object.span.start + 1..close).unwrap_or_default();
    if inside.trim().is_empty() {
        let lines = format!("{}{line}{}{blanks}", style.newline, style.newline);
        return TextEdit::replace(object.span.start + 1..close, lines);
    }
    // There are comments inside, and they stay above.
    if begins_line(text, close) {
        return TextEdit::insert(line_start(text, close), format!("{line}{}", style.newline));
    }
    TextEdit::insert(close, format!("{}{line}{}{blanks}", style.newline, style.newline))
}

/// Removes a member with its comma, or the one before it that is no longer needed.
pub(super) fn remove_member(text: &str, object: &ConfigNode, name: &str) -> Vec<TextEdit> {
    let entries = object.entries().unwrap_or_default();
    let Some(index) = entries.iter().position(|entry| entry.key == name) else { return Vec::new() };
    let Some(entry) = entries.get(index) else { return Vec::new() };
    let before = index.checked_sub(1).and_then(|index| entries.get(index));
    let next = entries.get(index + 1);
    let until = next.map_or(closing(object), |next| next.key_span.start);
    let comma = comma_between(text, entry.value.span.end..until);
    let mut splices = Vec::new();
    if let (Some(before), None, None) = (before, next, comma)
        && let Some(comma) = comma_between(text, before.value.span.end..entry.key_span.start)
    {
        splices.push(TextEdit::delete(comma..comma + 1));
    }
    let behind = comma.map_or(entry.value.span.end, |comma| comma + 1);
    splices.push(TextEdit::delete(member_range(text, object, entry, behind, next)));
    splices
}

/// Returns the range of the text to delete with a member that ends, including its comma, at an offset.
fn member_range(
    text: &str,
    object: &ConfigNode,
    entry: &TableEntry,
    behind: usize,
    next: Option<&TableEntry>,
) -> Range<usize> {
    let key = entry.key_span.start;
    let line_ends = end_of_line(text, behind, closing(object));
    let after = next_line(text, line_ends);
    let is_alone = begins_line(text, key)
        && text.get(line_ends..after).is_some_and(|rest| rest.trim().is_empty())
        && after <= closing(object);
    if is_alone {
        return comment_start(text, line_start(text, key), object.span.start)..after;
    }
    match next {
        Some(next) => key..next.key_span.start,
        None => {
            let blanks =
                text.get(..key).map_or(0, |before| before.len() - before.trim_end_matches([' ', '\t']).len());
            key - blanks..behind
        }
    }
}

/// Returns the start of the comments directly above a line of an object.
fn comment_start(text: &str, line: usize, object: usize) -> usize {
    let mut start = line;
    while let Some((above, content)) = line_above(text, start) {
        let is_comment = content.starts_with("//") || (content.starts_with("/*") && content.ends_with("*/"));
        if !is_comment || above <= object {
            break;
        }
        start = above;
    }
    start
}

fn closing(object: &ConfigNode) -> usize {
    object.span.end.saturating_sub(1)
}

/// Reports whether only blanks precede an offset in its line.
fn begins_line(text: &str, at: usize) -> bool {
    text.get(line_start(text, at)..at).is_some_and(|before| before.trim().is_empty())
        && line_start(text, at) > 0
}

/// Returns the end of the line if only blanks and comments follow in it, and the offset itself otherwise.
fn end_of_line(text: &str, at: usize, limit: usize) -> usize {
    let rest = text.get(at..limit).unwrap_or_default();
    let Some((line, _)) = rest.split_once('\n') else { return at };
    let line = line.trim_end();
    let comment = line.trim_start();
    let is_whole = comment.starts_with("//")
        || (comment.starts_with("/*") && comment.ends_with("*/") && comment.matches("/*").count() == 1);
    if comment.is_empty() || is_whole { at + line.len() } else { at }
}

/// Finds the comma between two members, which no comment is mistaken for.
fn comma_between(text: &str, range: Range<usize>) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        let rest = text.get(at..range.end)?;
        at += match rest {
            _ if rest.starts_with(',') => return Some(at),
            _ if rest.starts_with("//") => rest.find('\n').map_or(rest.len(), |end| end + 1),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    None
}

/// Returns the indentation level of leading blanks.
fn levels(blanks: &str, style: &JsonStyle) -> usize {
    blanks.len() / style.indent_unit.len().max(1)
}

/// Removes the newlines and indentation of a rendered member. Strings contain neither.
fn on_one_line(member: &str, style: &JsonStyle) -> String {
    let lines: Vec<&str> =
        member.split(style.newline).map(|line| line.trim_start_matches([' ', '\t'])).collect();
    let mut out = String::new();
    for line in lines {
        let opens = out.ends_with('{') || line.starts_with('}') || out.is_empty();
        out.push_str(if opens { "" } else { " " });
        out.push_str(line);
    }
    out
}
