use std::borrow::Cow;

use bytestring::ByteString;

use super::Raw;
use super::writer::first_special;

/// Walks a JSON text once, checking its grammar and handing out its values as they are.
///
/// General parsers build what they read or call a visitor for it. An envelope needs neither: it needs to know where its
/// members begin and end, and that what lies between is JSON. That is several times cheaper, and bounds the nesting
/// on the way.
pub(crate) struct Scanner<'a> {
    text: &'a ByteString,
    bytes: &'a [u8],
    at: usize,
    limit: u32,
    depth: u32,
    /// What each open container is, innermost in the lowest bit: 1 is an object.
    kinds: u128,
}

/// Why a text cannot be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// It is not JSON.
    Syntax,
    /// It nests deeper than allowed.
    TooDeep,
}

type Scan<T> = Result<T, ScanError>;

impl<'a> Scanner<'a> {
    /// The deepest nesting that can be walked at all.
    pub(crate) const DEEPEST: usize = 127;

    pub(crate) fn new(text: &'a ByteString, depth: usize) -> Self {
        let limit = u32::try_from(depth.min(Self::DEEPEST)).unwrap_or(0);
        Self { text, bytes: text.as_bytes(), at: 0, limit, depth: 0, kinds: 0 }
    }

    /// Returns the first byte of the next token, if there is one.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Steps into the object that comes next.
    pub(crate) fn open_object(&mut self) -> Scan<()> {
        self.take(b'{')?;
        self.push(true)
    }

    /// Steps into the array that comes next.
    pub(crate) fn open_array(&mut self) -> Scan<()> {
        self.take(b'[')?;
        self.push(false)
    }

    /// Returns the next key of the open object and stops before its value; `None` after the last, with the object closed.
    pub(crate) fn next_key(&mut self, first: bool) -> Scan<Option<Cow<'a, str>>> {
        if self.closes(first, b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.take(b':')?;
        Ok(Some(key))
    }

    /// Reports whether the open array has another element; if not, the array is closed.
    pub(crate) fn next_element(&mut self, first: bool) -> Scan<bool> {
        self.closes(first, b']').map(|closed| !closed)
    }

    /// Takes the next value whole.
    pub(crate) fn value(&mut self) -> Scan<Raw> {
        self.peek();
        let start = self.at;
        self.skip()?;
        let text = self.text.get(start..self.at).ok_or(ScanError::Syntax)?;
        Ok(Raw::trusted(self.text.slice_ref(text)))
    }

    /// Passes over the next value.
    pub(crate) fn skip(&mut self) -> Scan<()> {
        let outside = self.depth;
        loop {
            match self.peek().ok_or(ScanError::Syntax)? {
                b'"' => self.skip_string()?,
                b'{' => {
                    self.open_object()?;
                    if !self.closes(true, b'}')? {
                        self.skip_key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.open_array()?;
                    if !self.closes(true, b']')? {
                        continue;
                    }
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => self.skip_number()?,
            }
            // A value is complete; so may be the containers that it ends.
            loop {
                if self.depth == outside {
                    return Ok(());
                }
                let in_object = self.kinds & 1 == 1;
                if !self.closes(false, if in_object { b'}' } else { b']' })? {
                    if in_object {
                        self.skip_key()?;
                    }
                    break;
                }
            }
        }
    }

    /// Checks that nothing but space is left.
    pub(crate) fn end(&mut self) -> Scan<()> {
        if self.peek().is_none() { Ok(()) } else { Err(ScanError::Syntax) }
    }

    /// Takes the string that comes next, borrowed where nothing in it is escaped.
    fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.peek();
        let start = self.at;
        let escaped = self.scan_string()?;
        if escaped {
            let quoted = self.text.get(start..self.at).ok_or(ScanError::Syntax)?;
            return serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| ScanError::Syntax);
        }
        self.text.get(start + 1..self.at - 1).map(Cow::Borrowed).ok_or(ScanError::Syntax)
    }

    fn skip_string(&mut self) -> Scan<()> {
        self.scan_string().map(drop)
    }

    fn skip_key(&mut self) -> Scan<()> {
        self.peek();
        self.skip_string()?;
        self.take(b':')
    }

    /// Passes over a string; reports whether anything in it is escaped.
    #[inline]
    fn scan_string(&mut self) -> Scan<bool> {
        self.exactly(b'"')?;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += first_special(rest).ok_or(ScanError::Syntax)?;
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.skip_escape()?;
                }
                // A bare control character.
                _ => return Err(ScanError::Syntax),
            }
        }
    }

    fn skip_escape(&mut self) -> Scan<()> {
        self.at += 1;
        match self.bytes.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5).ok_or(ScanError::Syntax)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(ScanError::Syntax);
                }
                self.at += 5;
            }
            _ => return Err(ScanError::Syntax),
        }
        Ok(())
    }

    fn skip_number(&mut self) -> Scan<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(ScanError::Syntax),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count > 0 { Ok(()) } else { Err(ScanError::Syntax) }
    }

    fn literal(&mut self, word: &[u8]) -> Scan<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(ScanError::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    /// Moves past a comma to the next item of the open container, or past its end; reports which.
    #[inline]
    fn closes(&mut self, first: bool, end: u8) -> Scan<bool> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                self.pop();
                Ok(true)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(false)
            }
            Some(_) if first => Ok(false),
            _ => Err(ScanError::Syntax),
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Scan<()> {
        self.peek();
        self.exactly(byte)
    }

    #[inline]
    fn exactly(&mut self, byte: u8) -> Scan<()> {
        if self.bytes.get(self.at) != Some(&byte) {
            return Err(ScanError::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    fn push(&mut self, is_object: bool) -> Scan<()> {
        if self.depth >= self.limit {
            return Err(ScanError::TooDeep);
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | u128::from(is_object);
        Ok(())
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn accepts(text: &str) -> Scan<()> {
        let text = ByteString::from(text);
        let mut scanner = Scanner::new(&text, Scanner::DEEPEST);
        scanner.skip()?;
        scanner.end()
    }

    /// Asserts that the scanner and the general parser agree on what JSON is.
    fn agrees(text: &str) {
        let parsed = serde_json::from_str::<&RawValue>(text).is_ok();
        assert_eq!(accepts(text).is_ok(), parsed, "{text:?}");
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
            assert_eq!(Scanner::new(&text, limit).skip(), expected, "{:.40}", text);
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
