use std::borrow::Cow;
use std::ops::Range;

use toml_parser::parser::{Event, EventKind, parse_document};
use toml_parser::{ParseError, Source};

/// A statement of a TOML text: a header, or a key with its value.
#[derive(Debug)]
pub(super) struct TomlStatement {
    pub(super) kind: StatementKind,
    /// The keys from the root on, of the header or of the value.
    pub(super) path: Vec<String>,
    /// From the first bracket or key to the last bracket or the end of the value.
    pub(super) span: Range<usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StatementKind {
    Header,
    /// A pair, below a header of so many keys.
    Pair {
        above: usize,
    },
}

impl TomlStatement {
    pub(super) fn is_header(&self) -> bool {
        self.kind == StatementKind::Header
    }

    /// Reports whether the statement belongs to a table.
    pub(super) fn is_within(&self, table: &[&str]) -> bool {
        self.path.len() >= table.len() && self.path.iter().zip(table).all(|(own, other)| own == other)
    }
}

/// Reads where the statements are. The text is known to be TOML.
pub(super) fn statements(text: &str) -> Vec<TomlStatement> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    let mut errors: Vec<ParseError> = Vec::new();
    parse_document(&tokens, &mut events, &mut errors);
    let mut reader = StatementReader { source, table: Vec::new(), found: Vec::new(), open: None, depth: 0 };
    for event in &events {
        reader.take(event);
    }
    reader.finish();
    reader.found
}

struct StatementReader<'a> {
    source: Source<'a>,
    /// The keys of the header that counts now.
    table: Vec<String>,
    found: Vec<TomlStatement>,
    open: Option<OpenStatement>,
    /// How many lists and inline tables are open.
    depth: usize,
}

struct OpenStatement {
    is_header: bool,
    keys: Vec<String>,
    span: Range<usize>,
    has_value: bool,
}

impl StatementReader<'_> {
    fn take(&mut self, event: &Event) {
        let span = event.span().start()..event.span().end();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.finish();
                self.open = Some(OpenStatement { is_header: true, keys: Vec::new(), span, has_value: false });
            }
            EventKind::SimpleKey if self.depth == 0 => {
                let key = self.key(event);
                let starts = self.open.as_ref().is_none_or(|open| open.has_value);
                if starts {
                    self.finish();
                    self.open = Some(OpenStatement {
                        is_header: false,
                        keys: Vec::new(),
                        span: span.clone(),
                        has_value: false,
                    });
                }
                if let Some(open) = &mut self.open {
                    open.keys.push(key);
                    open.span.end = span.end;
                }
            }
            EventKind::InlineTableOpen | EventKind::ArrayOpen => {
                self.depth += 1;
                self.extend(span.end);
            }
            EventKind::InlineTableClose | EventKind::ArrayClose => {
                self.depth = self.depth.saturating_sub(1);
                self.extend(span.end);
            }
            EventKind::Scalar | EventKind::StdTableClose | EventKind::ArrayTableClose => {
                self.extend(span.end);
            }
            EventKind::Newline if self.depth == 0 => self.finish(),
            _ => {}
        }
    }

    fn extend(&mut self, end: usize) {
        if let Some(open) = &mut self.open {
            open.span.end = end;
            open.has_value = true;
        }
    }

    fn key(&self, event: &Event) -> String {
        let mut key = Cow::default();
        if let Some(raw) = self.source.get(event) {
            raw.decode_key(&mut key, &mut ());
        }
        key.into_owned()
    }

    fn finish(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.is_header {
            self.table = open.keys;
            self.found.push(TomlStatement {
                kind: StatementKind::Header,
                path: self.table.clone(),
                span: open.span,
            });
        } else {
            let path = self.table.iter().cloned().chain(open.keys).collect();
            self.found.push(TomlStatement {
                kind: StatementKind::Pair { above: self.table.len() },
                path,
                span: open.span,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_statements_have_keys_and_ranges() {
        let text = "top = 1 # x\r\na.\"b c\" = [\n 1, # [no]\n {x=1},\n]\n[t]\nk = '''\n[no]\n''' # end\n[[t.l]]\nz = {a.b = 1}";
        let found: Vec<(String, &str)> =
            statements(text).iter().map(|s| (s.path.join("/"), text.get(s.span.clone()).unwrap())).collect();
        let expected = [
            ("top", "top = 1"),
            ("a/b c", "a.\"b c\" = [\n 1, # [no]\n {x=1},\n]"),
            ("t", "[t]"),
            ("t/k", "k = '''\n[no]\n'''"),
            ("t/l", "[[t.l]]"),
            ("t/l/z", "z = {a.b = 1}"),
        ];
        assert_eq!(found, expected.map(|(path, text)| (path.to_owned(), text)));
    }
}
