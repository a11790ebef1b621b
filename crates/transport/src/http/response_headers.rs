use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName};

use super::lines::is_text;

/// The headers of a response, as the server wrote them.
///
/// Whoever gets a response looks for two or three of them, and finds those sooner in a short list than all would be in a
/// map. Values never print.
#[derive(Clone, Default)]
pub struct ResponseHeaders {
    text: Bytes,
    lines: Vec<Line>,
    lengths: Lengths,
}

/// Where a header is in the text.
#[derive(Clone)]
struct Line {
    name: Range<usize>,
    value: Range<usize>,
}

/// How long the names of some headers are, one bit for each length: most of what is looked for is not there, and is as a rule
/// of another length than what is.
#[derive(Clone, Copy, Default)]
struct Lengths(u64);

impl Lengths {
    fn add(&mut self, length: usize) {
        self.0 |= Self::bit(length);
    }

    /// Reports whether there may be a name of this length.
    fn may_have(self, length: usize) -> bool {
        self.0 & Self::bit(length) != 0
    }

    /// The longest names share a bit.
    fn bit(length: usize) -> u64 {
        1 << length.min(63)
    }
}

impl ResponseHeaders {
    /// Takes the headers that were found in a text.
    pub(super) fn new(text: Bytes, found: &[httparse::Header<'_>]) -> Self {
        let mut lengths = Lengths::default();
        let lines = found.iter().map(|header| {
            lengths.add(header.name.len());
            Line { name: place(&text, header.name.as_bytes()), value: place(&text, header.value) }
        });
        Self { lines: lines.collect(), lengths, text }
    }

    /// Returns the value of a header, the first one if there are several.
    pub fn get(&self, name: &HeaderName) -> Option<&[u8]> {
        self.get_all(name).next()
    }

    /// Returns the value of a header if it is nothing but printable ASCII, the first one if there are several.
    pub fn get_text(&self, name: &HeaderName) -> Option<&str> {
        std::str::from_utf8(self.get(name).filter(|value| is_text(value))?).ok()
    }

    /// Returns all values of a header, in order.
    pub fn get_all(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        let name = name.as_str().as_bytes();
        let lines = if self.lengths.may_have(name.len()) { &self.lines[..] } else { &[] };
        let named = lines.iter().filter(move |line| is_same(self.at(&line.name), name));
        named.map(|line| self.at(&line.value))
    }

    /// Reports whether there is a header.
    pub fn has(&self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }

    fn at(&self, place: &Range<usize>) -> &[u8] {
        self.text.get(place.clone()).unwrap_or_default()
    }
}

/// Reports whether a name is this one, which is in lower case as most servers write it.
fn is_same(name: &[u8], known: &[u8]) -> bool {
    name == known || name.eq_ignore_ascii_case(known)
}

/// Finds a part of a text in it; nothing at all may be anywhere.
fn place(text: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    if part.is_empty() { 0..0 } else { start..start.saturating_add(part.len()) }
}

impl From<&HeaderMap> for ResponseHeaders {
    fn from(map: &HeaderMap) -> Self {
        let (mut text, mut lines, mut lengths) = (BytesMut::new(), Vec::new(), Lengths::default());
        let mut add = |part: &[u8]| {
            let start = text.len();
            text.extend_from_slice(part);
            start..text.len()
        };
        for (name, value) in map {
            lengths.add(name.as_str().len());
            lines.push(Line { name: add(name.as_str().as_bytes()), value: add(value.as_bytes()) });
        }
        Self { text: text.freeze(), lines, lengths }
    }
}

impl fmt::Debug for ResponseHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.lines.iter().map(|line| String::from_utf8_lossy(self.at(&line.name)));
        f.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE, VARY};

    use super::*;

    #[test]
    fn a_header_is_found_by_its_name_however_that_is_written() {
        let text = Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-TYPE: \t a/b \r\nset-cookie: a\r\nvary:\r\nSet-Cookie: b\nlocation: \xff\n\n",
        );
        let mut lines = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut lines);
        assert!(response.parse(&text).unwrap().is_complete());
        let headers = ResponseHeaders::new(text.clone(), response.headers);
        assert_eq!(
            (headers.get(&CONTENT_TYPE), headers.get_text(&CONTENT_TYPE)),
            (Some(&b"a/b"[..]), Some("a/b"))
        );
        assert_eq!(headers.get_all(&SET_COOKIE).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(headers.get(&VARY), Some(&b""[..]));
        assert_eq!((headers.get(&LOCATION), headers.get_text(&LOCATION)), (Some(&b"\xff"[..]), None));
        assert!(headers.has(&VARY) && !headers.has(&COOKIE));
    }

    #[test]
    fn a_map_has_the_same_headers_as_before_and_no_value_is_printed() {
        let mut map = HeaderMap::new();
        for value in ["sentinel", "", "sentinel too"] {
            map.append(SET_COOKIE, HeaderValue::from_static(value));
        }
        let headers = ResponseHeaders::from(&map);
        assert_eq!(
            headers.get_all(&SET_COOKIE).collect::<Vec<_>>(),
            [&b"sentinel"[..], b"", b"sentinel too"]
        );
        let printed = format!("{headers:?}");
        assert!(printed.contains("set-cookie") && !printed.contains("sentinel"), "{printed}");
    }
}
