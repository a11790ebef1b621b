use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::SyntaxError;
use crate::node::{ConfigNode, NodeKind, TableEntry};

/// How deep values may nest.
const MAX_DEPTH: usize = 64;

/// Reads the first document of a YAML file. An alias is read as null: what is behind it may be large, and no client
/// writes its servers so.
pub(super) fn parse(text: &str) -> Result<ConfigNode, SyntaxError> {
    let mut builder = TreeBuilder { offsets: ByteOffsets::new(text), open: Vec::new(), root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxError {
            span: builder.offsets.at(*error.marker())..builder.offsets.at(*error.marker()),
            message: error.info().to_owned(),
        })?;
        let span = builder.offsets.at(span.start)..builder.offsets.at(span.end);
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.take(event, span)?;
    }
    let empty = ConfigNode { span: text.len()..text.len(), kind: NodeKind::Table(Vec::new()) };
    Ok(match builder.root {
        Some(ConfigNode { kind: NodeKind::Null, .. }) | None => empty,
        Some(root) => with_named_servers(root),
    })
}

/// Reads a list of servers, each with its `name`, as a table by name.
fn with_named_servers(mut root: ConfigNode) -> ConfigNode {
    let NodeKind::Table(entries) = &mut root.kind else { return root };
    for entry in entries.iter_mut().filter(|entry| entry.key == "mcpServers") {
        let NodeKind::Array(servers) = &entry.value.kind else { continue };
        let named = servers.iter().map(|server| {
            let name = server.get("name")?;
            Some(TableEntry {
                key: name.text()?.to_owned(),
                key_span: server.span.clone(),
                value: server.clone(),
            })
        });
        if let Some(named) = named.collect() {
            entry.value.kind = NodeKind::Table(named);
        }
    }
    root
}

/// Builds the tree from events, without recursion.
struct TreeBuilder {
    offsets: ByteOffsets,
    open: Vec<OpenCollection>,
    root: Option<ConfigNode>,
}

/// A collection that is not closed yet.
struct OpenCollection {
    span: Range<usize>,
    items: CollectionItems,
}

enum CollectionItems {
    Sequence(Vec<ConfigNode>),
    /// The entries, and the key that waits for its value.
    Mapping(Vec<TableEntry>, Option<(String, Range<usize>)>),
}

impl TreeBuilder {
    fn take(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar(text, style, _, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let kind = if is_plain { plain_scalar(&text) } else { NodeKind::Text(text.into_owned()) };
                self.add(ConfigNode { span, kind })
            }
            Event::Alias(_) => self.add(ConfigNode { span, kind: NodeKind::Null }),
            Event::SequenceStart(..) => self.open(span, CollectionItems::Sequence(Vec::new())),
            Event::MappingStart(..) => self.open(span, CollectionItems::Mapping(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.close(span.end),
            _ => Ok(()),
        }
    }

    fn open(&mut self, span: Range<usize>, items: CollectionItems) -> Result<(), SyntaxError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError { span, message: format!("values nest deeper than {MAX_DEPTH} levels") });
        }
        self.open.push(OpenCollection { span, items });
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<(), SyntaxError> {
        let Some(OpenCollection { span, items }) = self.open.pop() else { return Ok(()) };
        // A block ends with its last value: the event is at the token that follows, which may be lines below.
        let (last, kind) = match items {
            CollectionItems::Sequence(items) => {
                (items.last().map(|item| item.span.end), NodeKind::Array(items))
            }
            CollectionItems::Mapping(entries, _) => {
                (entries.last().map(|entry| entry.value.span.end), NodeKind::Table(entries))
            }
        };
        self.add(ConfigNode { span: span.start..last.unwrap_or(end).max(span.start), kind })
    }

    fn add(&mut self, node: ConfigNode) -> Result<(), SyntaxError> {
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(CollectionItems::Sequence(items)) => items.push(node),
            Some(CollectionItems::Mapping(entries, key @ None)) => {
                let span = node.span.clone();
                let name = match node.kind {
                    NodeKind::Text(text) => text,
                    NodeKind::Bool(yes) => yes.to_string(),
                    NodeKind::Integer(number) => number.to_string(),
                    _ => return Err(SyntaxError { span, message: "a key is not a text".to_owned() }),
                };
                if entries.iter().any(|entry| entry.key == name) {
                    let message = format!("`{name}` is set twice in the same mapping");
                    return Err(SyntaxError { span, message });
                }
                *key = Some((name, span));
            }
            Some(CollectionItems::Mapping(entries, key)) => {
                if let Some((key, key_span)) = key.take() {
                    entries.push(TableEntry { key, key_span, value: node });
                }
            }
        }
        Ok(())
    }
}

/// Reads a scalar without quotes, by the core schema of YAML 1.2.
fn plain_scalar(text: &str) -> NodeKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ => {
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
            let number = text.parse().map(NodeKind::Integer).ok();
            let number = number.or_else(|| text.parse().map(NodeKind::Float).ok()).filter(|_| is_number);
            number.unwrap_or_else(|| NodeKind::Text(text.to_owned()))
        }
    }
}

/// The offsets of characters in bytes: the parser counts characters.
struct ByteOffsets {
    /// Empty if all characters have one byte.
    of_characters: Vec<usize>,
    length: usize,
}

impl ByteOffsets {
    fn new(text: &str) -> Self {
        let of_characters =
            if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Self { of_characters, length: text.len() }
    }

    fn at(&self, marker: Marker) -> usize {
        let index = marker.index();
        match self.of_characters.is_empty() {
            true => index.min(self.length),
            false => self.of_characters.get(index).copied().unwrap_or(self.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_values_have_kinds_and_ranges() {
        let text = "# é\na: 1\nb: 'x: y' # no\nc:\n  - true\n  - ~\n  - -1.5\nd: {e: \"f\"}\n";
        let root = parse(text).unwrap();
        let found: Vec<(&str, &str)> = root
            .entries()
            .unwrap()
            .iter()
            .map(|entry| (&*entry.key, text.get(entry.key_span.start..entry.value.span.end).unwrap()))
            .collect();
        assert_eq!(found[0], ("a", "a: 1"));
        // The parser counts blanks and comments behind a quoted text as part of it.
        assert!(found[1].1.starts_with("b: 'x: y'"), "{found:?}");
        assert_eq!(found[2].1.trim_end(), "c:\n  - true\n  - ~\n  - -1.5");
        assert_eq!(root.at(&["d", "e"]).unwrap().text(), Some("f"));
        let NodeKind::Array(items) = &root.get("c").unwrap().kind else { panic!("{root:?}") };
        assert!(matches!(
            items.iter().map(|item| &item.kind).collect::<Vec<_>>()[..],
            [NodeKind::Bool(true), NodeKind::Null, NodeKind::Float(_)]
        ));
    }

    #[test]
    fn servers_in_a_list_are_read_by_name() {
        let root = parse("mcpServers:\n  - name: one\n    command: a\n  - name: two\n    url: b\n").unwrap();
        assert_eq!(root.at(&["mcpServers", "two", "url"]).unwrap().text(), Some("b"));
    }

    #[test]
    fn hostile_yaml_is_refused_and_aliases_are_not_expanded() {
        for (text, expected) in [
            ("a: 1\na: 2\n", "set twice"),
            ("a: [1\n", ""),
            ("? [x]\n: 1\n", "not a text"),
            (&format!("a: {}{}\n", "[".repeat(100), "]".repeat(100)), "deeper than"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {}", error.message);
        }
        let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
        assert!(matches!(parse(laughs).unwrap().at(&["c", "0"]).unwrap().kind, NodeKind::Null));
        assert!(parse("").unwrap().entries().unwrap().is_empty());
    }
}
