use bytestring::ByteString;

use super::RawJson;

/// Builds JSON text in one buffer.
///
/// Commas are placed by looking at the last byte written, so the caller only opens, fills and closes.
#[derive(Debug, Default)]
pub struct JsonWriter {
    out: String,
}

impl JsonWriter {
    /// Creates a writer with a buffer capacity of `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes) }
    }

    /// Opens an object, as an element or as the value of the key just written.
    pub fn open_object(&mut self) {
        self.separate();
        self.out.push('{');
    }

    /// Closes the object that is open.
    pub fn close_object(&mut self) {
        self.out.push('}');
    }

    /// Opens an array, as an element or as the value of the key just written.
    pub fn open_array(&mut self) {
        self.separate();
        self.out.push('[');
    }

    /// Closes the array that is open.
    pub fn close_array(&mut self) {
        self.out.push(']');
    }

    /// Writes a key; the next thing written is its value.
    pub fn key(&mut self, key: &str) {
        self.separate();
        self.quote(key);
        self.out.push(':');
    }

    /// Writes a key that needs no escaping; the next thing written is its value.
    pub fn plain_key(&mut self, key: &'static str) {
        self.separate();
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    /// Writes a key and a raw value.
    pub fn member(&mut self, key: &str, value: &RawJson) {
        self.key(key);
        self.out.push_str(value.as_str());
    }

    /// Writes a raw value, as an element or as the value of the key just written.
    pub fn raw(&mut self, value: &RawJson) {
        self.separate();
        self.out.push_str(value.as_str());
    }

    /// Writes text that is already JSON, such as a constant.
    pub fn verbatim(&mut self, json: &str) {
        self.separate();
        self.out.push_str(json);
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.verbatim(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.separate();
        self.out.push_str(itoa::Buffer::new().format(value));
    }

    /// Writes an integer that is never negative.
    pub fn unsigned(&mut self, value: u64) {
        self.separate();
        self.out.push_str(itoa::Buffer::new().format(value));
    }

    /// Writes a number in its shortest form; what JSON cannot express becomes `null`.
    pub fn number(&mut self, value: f64) {
        use std::fmt::Write as _;
        self.separate();
        // 2^53: up to here every integer has one exact spelling without a fraction.
        let _ = if !value.is_finite() {
            write!(self.out, "null")
        } else if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            write!(self.out, "{value:.0}")
        } else {
            write!(self.out, "{value}")
        };
    }

    /// Returns the length of what was written.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Reports whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Ends the writing and returns the text.
    pub fn into_string(self) -> String {
        self.out
    }

    /// Returns the one value that was written.
    pub fn into_raw(self) -> RawJson {
        RawJson::from_trusted(ByteString::from(self.out))
    }

    fn separate(&mut self) {
        if !matches!(self.out.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(',');
        }
    }

    /// Quotes text by copying whole runs: the scan is branch-free within a block, so that it is vectorized.
    fn quote(&mut self, text: &str) {
        self.out.reserve(text.len() + 2);
        self.out.push('"');
        let mut rest = text;
        while let Some(at) = first_special(rest.as_bytes()) {
            let (clean, tail) = rest.split_at(at);
            self.out.push_str(clean);
            let mut chars = tail.chars();
            if let Some(special) = chars.next() {
                self.escape(special);
            }
            rest = chars.as_str();
        }
        self.out.push_str(rest);
        self.out.push('"');
    }

    fn escape(&mut self, special: char) {
        use std::fmt::Write as _;
        match special {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            control => {
                let _ = write!(self.out, "\\u{:04x}", u32::from(control));
            }
        }
    }
}

/// Finds the first byte that a JSON string must escape (RFC 8259 §7).
///
/// Most strings are short, so the first bytes are looked at a word at a time; long ones in blocks, which the compiler
/// vectorizes.
#[inline]
pub(super) fn first_special(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut rest = bytes;
    for _ in 0..SHORT / WORD {
        let Some((word, tail)) = rest.split_first_chunk::<WORD>() else { return first_in_tail(rest, at) };
        if let Some(offset) = first_in_word(*word) {
            return Some(at + offset);
        }
        at += WORD;
        rest = tail;
    }
    first_in_long(rest, at)
}

const WORD: usize = 8;
const SHORT: usize = 64;

fn first_in_long(bytes: &[u8], before: usize) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut at = before;
    let mut blocks = bytes.chunks_exact(BLOCK);
    for block in &mut blocks {
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            return first_in_tail(block, at);
        }
        at += BLOCK;
    }
    first_in_tail(blocks.remainder(), at)
}

fn first_in_tail(bytes: &[u8], before: usize) -> Option<usize> {
    bytes.iter().position(|byte| is_special(*byte)).map(|offset| before + offset)
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Finds the first special byte of a word by arithmetic on all eight at once.
///
/// A borrow can only mark bytes above one that is truly marked, so the lowest mark is always right.
#[inline]
pub(super) const fn first_in_word(word: [u8; WORD]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    let quotes = word ^ (ONES * b'"' as u64);
    let slashes = word ^ (ONES * b'\\' as u64);
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    let marks =
        (controls | (quotes.wrapping_sub(ONES) & !quotes) | (slashes.wrapping_sub(ONES) & !slashes)) & HIGHS;
    if marks == 0 { None } else { Some(marks.trailing_zeros() as usize / WORD) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writer_places_commas() {
        let mut w = JsonWriter::default();
        w.open_object();
        w.plain_key("a");
        w.open_array();
        w.integer(-1);
        w.string("x");
        w.open_object();
        w.close_object();
        w.open_array();
        w.close_array();
        w.close_array();
        w.key("b\"");
        w.boolean(true);
        w.member("c", &RawJson::NULL);
        w.close_object();
        assert_eq!(w.into_string(), r#"{"a":[-1,"x",{},[]],"b\"":true,"c":null}"#);
    }

    #[test]
    fn writer_numbers_are_shortest_and_legal() {
        for (value, text) in [(1.0, "1"), (0.5, "0.5"), (-3.0, "-3"), (f64::NAN, "null"), (95.5, "95.5")] {
            let mut w = JsonWriter::default();
            w.number(value);
            assert_eq!(w.into_string(), text);
        }
    }

    proptest! {
        #[test]
        fn first_special_byte_is_found_in_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(first_special(&bytes), bytes.iter().position(|byte| is_special(*byte)));
            let plain: Vec<u8> = bytes.iter().map(|byte| byte | 0x80).chain(bytes.iter().copied()).collect();
            prop_assert_eq!(first_special(&plain), plain.iter().position(|byte| is_special(*byte)));
        }

        #[test]
        fn writer_strings_read_back_exactly(text in "\\PC{0,40}[\\x00-\\x7f]{0,200}") {
            let mut w = JsonWriter::default();
            w.string(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&w.into_string()).unwrap(), text);
        }
    }
}
