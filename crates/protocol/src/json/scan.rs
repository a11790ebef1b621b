mod number;

use std::borrow::Cow;

use bytestring::ByteString;

use super::RawJson;
use super::key::ObjectKey;
use super::writer::{first_in_word, first_special};

/// Scans a JSON text once, checks its grammar and returns its values verbatim.
///
/// General parsers build a value or call a visitor. An envelope needs neither: it needs the positions of its members,
/// and the certainty that the text between is JSON. That is several times cheaper, and limits the nesting too.
///
/// Text that is not JSON ends the scan: there are no more keys, elements and values, and [`JsonScanner::outcome`] has
/// the reason. So every token is returned in registers; a `Result` around it would go through memory.
pub(crate) struct JsonScanner<'a> {
    text: &'a ByteString,
    bytes: &'a [u8],
    at: usize,
    limit: u32,
    depth: u32,
    /// What each open container is, innermost in the lowest bit: 1 is an object.
    kinds: u128,
    /// Whether the latest string holds an escape.
    escaped: bool,
    /// Whether a token so far has the grammar of JSON and may still be rejected by a typed parser.
    suspicious: bool,
    failure: Option<ScanError>,
}

/// A key that was skipped.
pub(crate) struct ScannedKey {
    /// Its offset.
    pub(crate) start: usize,
    /// The index of the known key.
    pub(crate) index: Option<usize>,
}

/// The reason why a scan failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// It is not JSON.
    Syntax,
    /// It nests deeper than allowed.
    TooDeep,
}

impl<'a> JsonScanner<'a> {
    /// The deepest nesting that a scanner supports.
    pub(crate) const MAX_DEPTH: usize = 127;

    pub(crate) fn new(text: &'a ByteString, depth: usize) -> Self {
        let limit = u32::try_from(depth.min(Self::MAX_DEPTH)).unwrap_or(0);
        let bytes = text.as_bytes();
        Self {
            text,
            bytes,
            at: 0,
            limit,
            depth: 0,
            kinds: 0,
            escaped: false,
            suspicious: false,
            failure: None,
        }
    }

    /// Reports whether the text so far holds an escape that may be half of a surrogate pair, or a number that may not fit
    /// a double: both have the grammar of JSON, and typed parsers reject the whole message because of them.
    pub(crate) fn is_suspicious(&self) -> bool {
        self.suspicious
    }

    /// Reports whether everything so far was JSON.
    ///
    /// # Errors
    /// The first thing that was not.
    pub(crate) fn outcome(&self) -> Result<(), ScanError> {
        self.failure.map_or(Ok(()), Err)
    }

    /// Checks that nothing but space is left.
    ///
    /// # Errors
    /// As [`JsonScanner::outcome`].
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        if self.peek().is_some() {
            self.fail(ScanError::Syntax);
        }
        self.outcome()
    }

    /// Returns the current offset.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the first byte of the next token, if there is one.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        // Most programs write no space between tokens.
        match self.bytes.get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_past_space(),
        }
    }

    #[cold]
    fn peek_past_space(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Opens the next object.
    #[inline]
    pub(crate) fn open_object(&mut self) {
        self.take(b'{');
        self.push(true);
    }

    /// Opens the next array.
    #[inline]
    pub(crate) fn open_array(&mut self) {
        self.take(b'[');
        self.push(false);
    }

    /// Returns the next key of the open object, and stops before its value. Known keys have a fast path.
    ///
    /// `None` after the last, with the object closed.
    #[inline(always)]
    pub(crate) fn next_key<const N: usize>(
        &mut self,
        first: bool,
        known: [&'static str; N],
    ) -> Option<ObjectKey<'a>> {
        if self.closes(first, b'}') {
            return None;
        }
        match self.known_index(known).and_then(|index| Some((*known.get(index)?, index))) {
            Some((key, index)) => Some(ObjectKey::Known(key, index)),
            None => self.any_key().map(ObjectKey::Other),
        }
    }

    /// Skips the next key of the open object, and returns its index among the known keys, if it is one; the caller
    /// decides what an unknown key means.
    ///
    /// `None` after the last, with the object closed.
    #[inline(always)]
    pub(crate) fn next_known<const N: usize>(
        &mut self,
        first: bool,
        known: &'static [&'static str; N],
    ) -> Option<ScannedKey> {
        if self.closes(first, b'}') {
            return None;
        }
        self.peek();
        let start = self.at;
        let index = match self.known_index(*known) {
            Some(index) => Some(index),
            None => self.any_index(known),
        };
        Some(ScannedKey { start, index })
    }

    #[inline(never)]
    fn any_index(&mut self, known: &[&'static str]) -> Option<usize> {
        let inner = self.string()?;
        let key = self.read(inner);
        self.take(b':');
        key.and_then(|key| known.iter().position(|known| *known == key))
    }

    /// Takes a key; one that does not decode ends the scan.
    #[inline(never)]
    fn any_key(&mut self) -> Option<Cow<'a, str>> {
        let inner = self.string()?;
        // The key is decoded before the colon is checked, which does not affect it.
        let key = self.read(inner);
        match key {
            Some(_) => self.take(b':'),
            None => self.fail(ScanError::Syntax),
        }
        key
    }

    /// Takes the next key if it is one of these in its usual spelling, without scanning it. Returns its index.
    ///
    /// Always inlined: for keys that are constants a comparison is a few instructions, and no call.
    #[inline(always)]
    fn known_index<const N: usize>(&mut self, known: [&'static str; N]) -> Option<usize> {
        let inner = self.bytes.get(self.at..)?.strip_prefix(b"\"")?;
        for (index, key) in known.into_iter().enumerate() {
            if inner.get(key.len()..key.len() + 2) == Some(b"\":") && inner.starts_with(key.as_bytes()) {
                self.at += key.len() + 3;
                return Some(index);
            }
        }
        None
    }

    /// Takes the next bytes, if they are this text.
    #[inline]
    pub(crate) fn take_exactly(&mut self, expected: &str) -> bool {
        let is_next = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(expected.as_bytes()));
        if is_next {
            self.at += expected.len();
        }
        is_next
    }

    /// Takes the next number, if it is a natural one of limited length in its only spelling.
    pub(crate) fn natural(&mut self) -> Option<u64> {
        /// The number of digits that always fit.
        const DIGITS: usize = 19;
        let rest = self.bytes.get(self.at..)?;
        let (mut number, mut length) = (0_u64, 0);
        for byte in rest.iter().take(DIGITS).take_while(|byte| byte.is_ascii_digit()) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            length += 1;
        }
        let is_only_way = length == 1 || (length > 1 && rest.first() != Some(&b'0'));
        // Any other byte after it would be a part of the number, or no JSON.
        let ends = matches!(rest.get(length), Some(b',' | b'}'));
        (is_only_way && ends).then(|| {
            self.at += length;
            number
        })
    }

    /// Decodes the last string, unless it has no meaning: half of a surrogate pair is grammatical, but no text.
    #[inline]
    pub(crate) fn read(&self, inner: &'a str) -> Option<Cow<'a, str>> {
        if self.escaped { unescape(inner).map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
    }

    /// Reports whether the open array has another element; if not, the array is closed.
    pub(crate) fn next_element(&mut self, first: bool) -> bool {
        !self.closes(first, b']')
    }

    /// Takes the next value whole.
    #[inline(never)]
    pub(crate) fn value(&mut self) -> Option<RawJson> {
        self.value_with(|scanner| {
            scanner.skip();
        })
    }

    /// Takes the text of the next value, without the reference count of a [`RawJson`].
    #[inline]
    pub(crate) fn value_text(&mut self) -> Option<&'a str> {
        self.peek();
        let start = self.at;
        if self.skip() { self.text.get(start..self.at) } else { None }
    }

    /// Takes the next value whole; `walk` finds its end.
    #[inline]
    pub(crate) fn value_with(&mut self, walk: impl FnOnce(&mut Self)) -> Option<RawJson> {
        self.peek();
        let start = self.at;
        walk(self);
        let text = if self.failure.is_none() { self.text.get(start..self.at) } else { None };
        text.map(|text| RawJson::from_trusted(self.text.slice_ref(text)))
    }

    /// Takes the next string, as written between its quotes.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        self.peek();
        let start = self.at + 1;
        if self.skip_string() { self.text.get(start..self.at - 1) } else { None }
    }

    /// Skips the next value; reports whether it is one.
    #[inline]
    pub(crate) fn skip(&mut self) -> bool {
        // Most values are strings.
        if self.peek() == Some(b'"') { self.skip_string() } else { self.skip_any() }
    }

    fn skip_any(&mut self) -> bool {
        let outside = self.depth;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string();
                }
                Some(b'{') => {
                    self.open_object();
                    if !self.closes(true, b'}') {
                        self.skip_key();
                        continue;
                    }
                }
                Some(b'[') => {
                    self.open_array();
                    if !self.closes(true, b']') {
                        continue;
                    }
                }
                Some(b't') => self.literal(b"true"),
                Some(b'f') => self.literal(b"false"),
                Some(b'n') => self.literal(b"null"),
                Some(_) => self.skip_number(),
                None => self.fail(ScanError::Syntax),
            }
            // A value is complete; so may be the containers that it ends.
            loop {
                if self.failure.is_some() {
                    return false;
                }
                if self.depth == outside {
                    return true;
                }
                let in_object = self.kinds & 1 == 1;
                if !self.closes(false, if in_object { b'}' } else { b']' }) {
                    if in_object {
                        self.skip_key();
                    }
                    break;
                }
            }
        }
    }

    #[inline]
    fn skip_key(&mut self) {
        self.peek();
        self.skip_string();
        self.take(b':');
    }

    /// Skips a string; reports whether it is one.
    #[inline]
    fn skip_string(&mut self) -> bool {
        if self.bytes.get(self.at) != Some(&b'"') {
            self.fail(ScanError::Syntax);
            return false;
        }
        let mut at = self.at + 1;
        // Keys and most strings are short and plain: two machine words decide them inline.
        for _ in 0..2 {
            let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { break };
            match first_in_word(*word) {
                None => at += word.len(),
                Some(offset) if self.bytes.get(at + offset) == Some(&b'"') => {
                    self.at = at + offset + 1;
                    self.escaped = false;
                    return true;
                }
                Some(_) => break,
            }
        }
        self.skip_long_string(at)
    }

    /// Skips the rest of a string, from the end of its plain prefix.
    #[inline(never)]
    fn skip_long_string(&mut self, from: usize) -> bool {
        self.at = from;
        self.escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += first_special(rest).unwrap_or(rest.len());
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return true;
                }
                Some(b'\\') if self.skip_escape() => self.escaped = true,
                // A bare control character, an escape that is none, or the end.
                _ => {
                    self.fail(ScanError::Syntax);
                    return false;
                }
            }
        }
    }

    fn skip_escape(&mut self) -> bool {
        self.at += 1;
        match self.bytes.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5).unwrap_or_default();
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return false;
                }
                self.suspicious |=
                    matches!(digits, [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
                self.at += 5;
            }
            _ => return false,
        }
        true
    }

    fn literal(&mut self, word: &[u8]) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
        } else {
            self.fail(ScanError::Syntax);
        }
    }

    /// Moves past a comma to the next item of the open container, or past its end; reports whether that was the end,
    /// as which a failure counts too.
    #[inline]
    fn closes(&mut self, first: bool, end: u8) -> bool {
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                self.pop();
                true
            }
            Some(b',') if !first => {
                self.at += 1;
                false
            }
            Some(_) if first => false,
            _ => {
                self.fail(ScanError::Syntax);
                true
            }
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) {
        if self.peek() == Some(byte) {
            self.at += 1;
        } else {
            self.fail(ScanError::Syntax);
        }
    }

    #[inline]
    fn push(&mut self, is_object: bool) {
        if self.depth >= self.limit {
            self.fail(ScanError::TooDeep);
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | u128::from(is_object);
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
    }

    /// Ends the scan; the first reason counts.
    #[cold]
    fn fail(&mut self, why: ScanError) {
        self.failure.get_or_insert(why);
        self.at = self.bytes.len();
    }
}

#[cold]
fn unescape(inner: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{inner}\"")).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn accepts(text: &str) -> Result<(), ScanError> {
        let text = ByteString::from(text);
        let mut scanner = JsonScanner::new(&text, JsonScanner::MAX_DEPTH);
        scanner.skip();
        scanner.end()
    }

    /// Asserts that the scanner and the general parser agree on what JSON is.
    fn agrees(text: &str) {
        let parsed = serde_json::from_str::<&RawValue>(text).is_ok();
        assert_eq!(accepts(text).is_ok(), parsed, "{text:?}");
    }

    #[test]
    fn texts_that_typed_parsers_may_reject_are_suspicious() {
        for (text, expected) in [
            (r#"{"a":"\u0041\n","b":[1.5,1e5,-12,1E-99]}"#, false),
            (r#""\ud83d\ude00""#, true),
            (r#""\uDc00""#, true),
            (r#""\ud7ff\ue000\\ud800""#, false),
            ("[1e400]", true),
            (&"9".repeat(400), true),
        ] {
            let text = ByteString::from(text);
            let mut scanner = JsonScanner::new(&text, JsonScanner::MAX_DEPTH);
            scanner.skip();
            assert_eq!((scanner.end(), scanner.is_suspicious()), (Ok(()), expected), "{text:.40}");
        }
    }

    #[test]
    fn scanner_agrees_with_a_general_parser_on_edges() {
        for text in [
            "",
            " ",
            "null",
            "nul",
            "truE",
            "true ",
            "0",
            "-0",
            "-",
            "01",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1e+",
            "1E-3",
            "+1",
            "\"\"",
            "\"",
            "\"a",
            "\"\\\"\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12aG\"",
            "\"\\ud800\"",
            "\"\t\"",
            "\"\u{7f}é\"",
            "[]",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[[],{}]",
            "{}",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "{\"a\":[}]",
            "[}",
            "{]",
            "{\"a\":1}}",
            "1 2",
            "\u{feff}1",
            "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":\"\"}",
            " \n\t\r{ \"a\" : [ 1 , 2 ] } \n",
            "\u{a0}1",
            "NaN",
            "Infinity",
            "'a'",
            "[1]//x",
        ] {
            agrees(text);
        }
    }

    #[test]
    fn scanner_bounds_the_nesting_and_nothing_else() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, limit, expected) in [
            (deep(64), 64, Ok(())),
            (deep(65), 64, Err(ScanError::TooDeep)),
            (deep(127), 1000, Ok(())),
            (deep(128), 1000, Err(ScanError::TooDeep)),
            (format!("\"{}\"", "[".repeat(500)), 1, Ok(())),
            (format!("[{}1]", "[],".repeat(1000)), 2, Ok(())),
            ("[".repeat(200_000), 64, Err(ScanError::TooDeep)),
        ] {
            let text = ByteString::from(text);
            let mut scanner = JsonScanner::new(&text, limit);
            assert_eq!(scanner.skip(), expected.is_ok(), "{:.40}", text);
            assert_eq!(scanner.outcome(), expected, "{:.40}", text);
        }
    }

    #[test]
    fn number_fast_path_applies_only_to_unambiguous_numbers() {
        for (text, number) in [
            ("7,", Some(7)),
            ("0}", Some(0)),
            ("9999999999999999999,", Some(9_999_999_999_999_999_999)),
            ("18446744073709551615,", None),
            ("01,", None),
            ("-7,", None),
            ("7.0,", None),
            ("7e1,", None),
            ("7 ,", None),
            ("7", None),
            ("\"7\",", None),
            (",", None),
        ] {
            let text = ByteString::from(text);
            let mut scanner = JsonScanner::new(&text, 1);
            assert_eq!(scanner.natural(), number, "{text}");
            assert_eq!(scanner.at, if number.is_some() { text.len() - 1 } else { 0 }, "{text}");
        }
    }

    #[test]
    fn escaped_and_plain_keys_are_equal_for_known_and_unknown_names() {
        for (text, known) in [
            (r#"{"name":1}"#, true),
            (r#"{"name" :1}"#, false),
            (r#"{ "name": 1 }"#, true),
            (r#"{"n\u0061me":1}"#, false),
        ] {
            let text = ByteString::from(text);
            for expected in [["uri", "name"], ["nam", "names"]] {
                let mut scanner = JsonScanner::new(&text, 1);
                scanner.open_object();
                let key = scanner.next_key(true, expected).unwrap();
                assert_eq!(
                    matches!(key, ObjectKey::Known(..)),
                    known && expected.contains(&"name"),
                    "{text}"
                );
                assert_eq!(&*key, "name", "{text}");
                assert_eq!(key.share(&text), "name", "{text}");
                assert_eq!(scanner.value_text(), Some("1"), "{text}");
                assert!(scanner.next_key(false, expected).is_none() && scanner.end().is_ok(), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn scanner_agrees_with_a_general_parser_on_near_json(text in "[\\[\\]{}:,\"\\\\0-9eE+.tfnrualse \\-]{0,24}") {
            agrees(&text);
        }

        #[test]
        fn scanner_agrees_with_a_general_parser_on_any_text(text in "\\PC{0,40}") {
            agrees(&text);
        }
    }
}
