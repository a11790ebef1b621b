use std::fmt;

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers as they are written, a line for each: what many requests have in common is written once and copied as it is.
///
/// Nothing looks for equal names, so that the caller adds no header twice. Values never print.
#[derive(Clone, Default)]
pub struct HeaderLines {
    text: Vec<u8>,
}

impl HeaderLines {
    /// Returns a copy that has room for more.
    pub fn with_capacity_for(&self, bytes: usize) -> Self {
        let mut text = Vec::with_capacity(self.text.len() + bytes);
        text.extend_from_slice(&self.text);
        Self { text }
    }

    /// Adds a header.
    pub fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.line(name.as_str(), value.as_bytes());
    }

    /// Adds a header with a text as its value; reports whether a header can have such a value.
    pub fn add_text(&mut self, name: &HeaderName, value: &str) -> bool {
        let is_legal = is_text(value.as_bytes());
        if is_legal {
            self.line(name.as_str(), value.as_bytes());
        }
        is_legal
    }

    /// Returns the lines, each with its end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    fn line(&mut self, name: &str, value: &[u8]) {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.text.extend_from_slice(piece);
        }
    }
}

impl From<HeaderMap> for HeaderLines {
    fn from(map: HeaderMap) -> Self {
        let mut lines = Self::default();
        for (name, value) in &map {
            lines.add(name, value);
        }
        lines
    }
}

impl fmt::Debug for HeaderLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderLines").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// Reports whether a value is nothing but printable ASCII.
pub(super) fn is_text(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_value_with_a_line_break_is_not_written() {
        let name = HeaderName::from_static("x-a");
        let table = [
            ("plain", true),
            ("", true),
            ("a\tb", true),
            ("a\r\nx-b: c", false),
            ("a\n", false),
            ("a\0", false),
            ("\u{7f}", false),
            ("gr\u{fc}\u{df}e", false),
        ];
        for (value, expected) in table {
            let mut lines = HeaderLines::default();
            assert_eq!(lines.add_text(&name, value), expected, "{value:?}");
            let written = if expected { format!("x-a: {value}\r\n") } else { String::new() };
            assert_eq!(lines.as_bytes(), written.as_bytes());
        }
    }

    #[test]
    fn header_lines_debug_has_no_values() {
        let map =
            HeaderMap::from_iter([(HeaderName::from_static("x-a"), HeaderValue::from_static("sentinel"))]);
        let lines = HeaderLines::from(map);
        assert_eq!(lines.with_capacity_for(10).as_bytes(), b"x-a: sentinel\r\n");
        assert!(!format!("{lines:?}").contains("sentinel"));
    }
}
