use std::fmt;

use http::header::{HeaderMap, HeaderName};

use super::header_lines::is_text;
use crate::RawHeaders;

/// The headers of a response, as the server wrote them.
///
/// The caller looks for two or three of them, and finds those sooner in a short list than all would be in a
/// map. Values never print.
#[derive(Clone, Default)]
pub struct ResponseHeaders {
    written: RawHeaders,
    lengths: NameLengths,
}

/// How long the names of some headers are, one bit for each length: most of what is looked for is not there, and is as a rule
/// of another length than what is.
#[derive(Clone, Copy, Default)]
struct NameLengths(u64);

impl NameLengths {
    fn of(written: &RawHeaders) -> Self {
        Self(written.iter().fold(0, |bits, (name, _)| bits | Self::bit(name.len())))
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
        let may_be = self.lengths.may_have(name.len()).then(|| self.written.iter());
        may_be.into_iter().flatten().filter(move |(other, _)| is_same(other, name)).map(|(_, value)| value)
    }

    /// Reports whether there is a header.
    pub fn has(&self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }
}

/// Reports whether a name is this one, which is in lower case as most servers write it.
fn is_same(name: &[u8], known: &[u8]) -> bool {
    name == known || name.eq_ignore_ascii_case(known)
}

impl From<RawHeaders> for ResponseHeaders {
    fn from(written: RawHeaders) -> Self {
        Self { lengths: NameLengths::of(&written), written }
    }
}

impl From<&HeaderMap> for ResponseHeaders {
    fn from(map: &HeaderMap) -> Self {
        RawHeaders::from(map).into()
    }
}

impl fmt::Debug for ResponseHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;
    use http::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE, VARY};

    use super::*;

    #[test]
    fn response_header_lookup_ignores_case() {
        let text = Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nContent-TYPE: \t a/b \r\nset-cookie: a\r\nvary:\r\nSet-Cookie: b\nlocation: \xff\n\n",
        );
        let mut lines = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut lines);
        assert!(response.parse(&text).unwrap().is_complete());
        let found = response.headers.iter().map(|header| (header.name.as_bytes(), header.value));
        let headers = ResponseHeaders::from(RawHeaders::new(text.clone(), found));
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
    fn response_headers_convert_to_an_equal_map_and_debug_has_no_values() {
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
