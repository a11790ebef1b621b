use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers as the peer wrote them, each found at its place in the text. Values never print.
#[derive(Clone, Default)]
pub struct RawHeaders {
    text: Bytes,
    lines: Vec<HeaderSpan>,
}

/// Where a header is in the text. A head is never so long that this would not be enough.
#[derive(Clone)]
struct HeaderSpan {
    name: Range<u32>,
    value: Range<u32>,
}

impl RawHeaders {
    /// Takes the headers that were found in a text: names and values, which are parts of it.
    pub fn new<'a>(text: Bytes, found: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let lines = found
            .map(|(name, value)| HeaderSpan { name: range_of(&text, name), value: range_of(&text, value) });
        Self { lines: lines.collect(), text }
    }

    /// Iterates over names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.iter().map(|line| (self.at(&line.name), self.at(&line.value)))
    }

    /// Puts them into a map.
    pub fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.lines.len());
        for (name, value) in self.iter() {
            let value = HeaderValue::from_maybe_shared(self.text.slice_ref(value));
            // The parser has checked both.
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) {
                map.append(name, value);
            }
        }
        map
    }

    fn at(&self, place: &Range<u32>) -> &[u8] {
        self.text.get(place.start as usize..place.end as usize).unwrap_or_default()
    }
}

/// Finds a part of a text in it; nothing at all may be anywhere.
fn range_of(text: &[u8], part: &[u8]) -> Range<u32> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let end = start.saturating_add(part.len());
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) if !part.is_empty() => start..end,
        _ => 0..0,
    }
}

impl From<&HeaderMap> for RawHeaders {
    fn from(map: &HeaderMap) -> Self {
        let parts = || map.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        let text = Bytes::from(parts().flatten().copied().collect::<Vec<_>>());
        let mut rest = &text[..];
        let mut next = |part: &[u8]| {
            let (part, behind) = rest.split_at(part.len());
            rest = behind;
            part
        };
        let found = map.iter().map(|(name, value)| (next(name.as_str().as_bytes()), next(value.as_bytes())));
        Self::new(text.clone(), found)
    }
}

impl fmt::Debug for RawHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| String::from_utf8_lossy(name))).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::header::SET_COOKIE;

    use super::*;

    #[test]
    fn raw_headers_convert_to_an_equal_map_and_debug_has_no_values() {
        let mut map = HeaderMap::new();
        for value in ["sentinel", "", "sentinel too"] {
            map.append(SET_COOKIE, HeaderValue::from_static(value));
        }
        map.append("x-last", HeaderValue::from_static("sentinel"));
        let written = RawHeaders::from(&map);
        assert_eq!(written.to_map(), map);
        let printed = format!("{written:?}");
        assert!(printed.contains("set-cookie") && !printed.contains("sentinel"), "{printed}");
    }
}
