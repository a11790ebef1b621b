//! Rejection of duplicate keys in every object of a value.
//!
//! A value that is forwarded verbatim is parsed again by its receiver, which may take the first of two equal keys
//! where we took the last. So request parameters are checked at every depth, in the same pass that finds their end.

use std::borrow::Cow;
use std::collections::HashSet;

use super::scan::JsonScanner;
use super::{MalformedJson, RawJson};

impl<'a> JsonScanner<'a> {
    /// Takes the next value whole; stores the first duplicate key of an object within it in `fault`.
    #[inline]
    pub(crate) fn distinct_value(&mut self, fault: &mut Option<MalformedJson>) -> Option<RawJson> {
        match self.peek() {
            Some(b'{' | b'[') => self.value_with(|scanner| scanner.skip_distinct(fault)),
            _ => self.value(),
        }
    }

    /// Skips the next value. The nesting that a scanner allows bounds the recursion.
    fn skip_distinct(&mut self, fault: &mut Option<MalformedJson>) {
        match self.peek() {
            Some(b'{') => {
                let mut keys = DistinctKeys::default();
                self.open_object();
                let mut first = true;
                while let Some(key) = self.next_key(first, []) {
                    first = false;
                    keys.add(key.read(), fault);
                    self.skip_distinct(fault);
                }
            }
            Some(b'[') => {
                self.open_array();
                let mut first = true;
                while self.next_element(first) {
                    first = false;
                    self.skip_distinct(fault);
                }
            }
            _ => {
                self.skip();
            }
        }
    }
}

/// The keys of one object so far.
#[derive(Default)]
pub(crate) struct DistinctKeys<'a> {
    inline: [&'a str; LINEAR_SEARCH_MAX],
    count: usize,
    /// Holds further keys in a set, since a linear search for each of many keys would be quadratic.
    overflow: Option<HashSet<Cow<'a, str>>>,
}

/// The most keys for which a linear search is the cheapest.
const LINEAR_SEARCH_MAX: usize = 8;

impl<'a> DistinctKeys<'a> {
    /// Adds a key; stores a duplicate in `fault`.
    #[inline]
    pub(crate) fn add(&mut self, key: Cow<'a, str>, fault: &mut Option<MalformedJson>) {
        match (key, self.inline.split_at_mut_checked(self.count)) {
            (Cow::Borrowed(key), Some((known, [slot, ..]))) if self.overflow.is_none() => {
                if known.contains(&key) {
                    return repeated(key, fault);
                }
                *slot = key;
                self.count += 1;
            }
            (key, _) => self.add_to_overflow(key, fault),
        }
    }

    #[cold]
    fn add_to_overflow(&mut self, key: Cow<'a, str>, fault: &mut Option<MalformedJson>) {
        let few = self.inline.get(..self.count).unwrap_or_default();
        let many = self.overflow.get_or_insert_with(|| few.iter().map(|key| Cow::Borrowed(*key)).collect());
        if many.contains(&key) {
            return repeated(&key, fault);
        }
        many.insert(key);
    }
}

#[cold]
fn repeated(key: &str, fault: &mut Option<MalformedJson>) {
    fault.get_or_insert_with(|| MalformedJson::Duplicate(key.chars().take(64).collect()));
}

#[cfg(test)]
mod tests {
    use bytestring::ByteString;

    use super::super::ScanError;
    use super::*;

    fn walk(text: &str) -> Result<Option<String>, ScanError> {
        let text = ByteString::from(text);
        let mut scanner = JsonScanner::new(&text, 64);
        let mut fault = None;
        let value = scanner.distinct_value(&mut fault);
        scanner.end()?;
        assert_eq!(value.unwrap().as_str(), text.trim());
        Ok(fault.map(|fault| fault.to_string()))
    }

    #[test]
    fn duplicate_keys_are_detected_at_every_depth_and_in_any_spelling() {
        let many = (0..500).map(|n| format!("\"k{n}\":{n},")).collect::<String>();
        for (text, repeated) in [
            (r#"{"a":1,"a":2}"#.to_owned(), Some("a")),
            (r#"{"a":1,"b":{"a":2,"c":[{"a":3,"b":4}]}}"#.to_owned(), None),
            (r#"{"a":[[{"b":1},{"b":1}],{"b":1,"c":{},"b":[]}]}"#.to_owned(), Some("b")),
            (r#"{"a":1,"\u0061":2}"#.to_owned(), Some("a")),
            (r#"{"\u0061":1,"a":2}"#.to_owned(), Some("a")),
            (r#"{"a":1,"\u0062":2,"c":3,"b":4}"#.to_owned(), Some("b")),
            (r#"{"a":1,"\u0062":2,"c":3,"d":4}"#.to_owned(), None),
            (format!("{{{many}\"x\":0}}"), None),
            (format!("{{{many}\"k499\":0}}"), Some("k499")),
            (format!("{{{many}\"k7\":0}}"), Some("k7")),
            (r#" [ "a" , "a" ] "#.to_owned(), None),
        ] {
            let expected = repeated.map(|key| format!("duplicate member `{key}`"));
            assert_eq!(walk(&text), Ok(expected), "{text:.60}");
        }
    }

    #[test]
    fn duplicate_key_scan_stops_at_invalid_json() {
        for text in [r#"{"a":1,"#, r#"{"a":[1,{"b"}]}"#, "[1,]", r#"{"\ud800":1}"#, "{]", "[}"] {
            assert_eq!(walk(text), Err(ScanError::Syntax), "{text}");
        }
        assert_eq!(walk(&"[".repeat(200_000)), Err(ScanError::TooDeep));
        assert_eq!(walk(&"{\"a\":".repeat(200_000)), Err(ScanError::TooDeep));
    }
}
