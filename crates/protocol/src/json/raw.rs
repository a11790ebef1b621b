use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{JsonObject, JsonScanner, JsonWriter, MalformedJson, replace_lone_surrogates};

/// One JSON value as text, sharing the buffer of the message it came from.
///
/// Two values are equal when their texts are: `1` and `1.0` are different values here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(ByteString);

/// The JSON type of a [`RawJson`] value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// any number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

impl JsonKind {
    /// Returns the type of a value, by the first byte of its text.
    pub(crate) fn of(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'"') => Self::String,
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

impl RawJson {
    /// The value `null`.
    pub const NULL: Self = Self(ByteString::from_static("null"));
    /// The value `{}`.
    pub const EMPTY_OBJECT: Self = Self(ByteString::from_static("{}"));
    /// The value `true`.
    pub const TRUE: Self = Self(ByteString::from_static("true"));

    /// Reads one JSON value from text.
    ///
    /// # Errors
    /// The text is not exactly one JSON value.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        let value: &RawValue = serde_json::from_str(&text)?;
        Ok(Self(text.slice_ref(value.get())))
    }

    /// Serializes a value.
    ///
    /// # Errors
    /// The value has no JSON form, such as a map with keys that are not strings.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_string(value)?.into()))
    }

    /// Creates a JSON string.
    pub fn from_text(text: &str) -> Self {
        let mut writer = JsonWriter::with_capacity(text.len() + 2);
        writer.string(text);
        writer.into_raw()
    }

    /// Wraps text that a parser or our own writer has already shown to be one JSON value.
    pub(crate) fn from_trusted(text: ByteString) -> Self {
        Self(text)
    }

    /// Copies the value out of the message that it came in, so that it no longer keeps that message alive.
    #[must_use]
    pub fn to_owned_buffer(&self) -> Self {
        Self(ByteString::from(self.as_str()))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the JSON text as a shared string.
    pub fn text(&self) -> &ByteString {
        &self.0
    }

    /// Returns the JSON type.
    pub fn kind(&self) -> JsonKind {
        JsonKind::of(&self.0)
    }

    /// Reports whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Deserializes the value, borrowing from it where the type allows.
    ///
    /// # Errors
    /// The value does not have the type's shape.
    pub fn get<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Returns the text of a JSON string, or `None` for any other type.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if !has_escape(inner.as_bytes()) {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str::<String>(&self.0).ok().map(Cow::Owned)
    }

    /// Returns the text of a JSON string, sharing this value's buffer when nothing in it is escaped.
    pub fn to_text(&self) -> Option<ByteString> {
        match self.as_text()? {
            Cow::Borrowed(inner) => Some(self.0.slice_ref(inner)),
            Cow::Owned(text) => Some(text.into()),
        }
    }

    /// Returns the value in a form that the parsers of every language accept: lone surrogates are replaced. `None`
    /// for a value that some reject, since a number in it does not fit a double or it nests too deep.
    pub fn without_lone_surrogates(&self) -> Option<Self> {
        let mut scanner = JsonScanner::new(&self.0, JsonScanner::MAX_DEPTH);
        scanner.skip();
        scanner.end().ok()?;
        if !scanner.is_suspicious() {
            return Some(self.clone());
        }
        let replaced = replace_lone_surrogates(&self.0).map(|text| Self(text.into()));
        let readable = replaced.unwrap_or_else(|| self.clone());
        readable.decode::<serde_json::Value>().is_ok().then_some(readable)
    }

    /// Reads the members of an object.
    ///
    /// # Errors
    /// The value is not an object, or two of its keys are equal.
    pub fn members(&self) -> Result<JsonObject, MalformedJson> {
        JsonObject::parse(&self.0)
    }

    /// Reads the members of an object with values that may exceed the depth limit.
    ///
    /// # Errors
    /// As [`RawJson::members`], but for the depth.
    pub fn shallow_members(&self) -> Result<JsonObject, MalformedJson> {
        JsonObject::parse_shallow(&self.0)
    }

    /// Reports whether this is an object with known keys alone. The values are skipped.
    pub fn has_only_keys(&self, is_known: impl Fn(&str) -> bool) -> bool {
        let mut scanner = JsonScanner::new(&self.0, JsonScanner::MAX_DEPTH);
        scanner.open_object();
        let mut first = true;
        while let Some(key) = scanner.next_key(first, []) {
            if !is_known(&key) {
                return false;
            }
            first = false;
            scanner.skip();
        }
        scanner.end().is_ok()
    }

    /// Reads the elements of an array.
    ///
    /// # Errors
    /// The value is not an array.
    pub fn elements(&self) -> Result<Vec<RawJson>, serde_json::Error> {
        let values: Vec<&RawValue> = serde_json::from_str(&self.0)?;
        Ok(values.into_iter().map(|value| Self(self.0.slice_ref(value.get()))).collect())
    }
}

/// Reports whether a text has a backslash. Most texts are names of a few letters, for which a vectorized search is
/// not worth its setup.
fn has_escape(inner: &[u8]) -> bool {
    const SHORT: usize = 64;
    if inner.len() <= SHORT { inner.contains(&b'\\') } else { memchr::memchr(b'\\', inner).is_some() }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(String::from(Box::<str>::from(value)).into()))
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl RawJson {
    /// Deserializes the value into an owned type; an error names the position of the failure.
    ///
    /// # Errors
    /// The value does not have the type's shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_keeps_every_digit_and_trims_outer_space() {
        let raw = RawJson::parse(" 123456789012345678901234567890.10 ").unwrap();
        assert_eq!(raw.as_str(), "123456789012345678901234567890.10");
        assert_eq!(raw.kind(), JsonKind::Number);
    }

    #[test]
    fn raw_json_text_is_borrowed_unless_escaped() {
        assert!(matches!(RawJson::parse("\"abc\"").unwrap().as_text(), Some(Cow::Borrowed("abc"))));
        assert_eq!(RawJson::parse(r#""a\u0041\n""#).unwrap().as_text().as_deref(), Some("aA\n"));
        assert_eq!(RawJson::parse("12").unwrap().as_text(), None);
    }

    #[test]
    fn keys_of_an_object_are_compared_decoded_and_only_at_the_top() {
        for (text, expected) in [
            ("{}", true),
            (r#"{"a":1,"b":{"c":2}}"#, true),
            (r#" { "b" : [{"c":"}"}] , "\u0061" : null } "#, true),
            (r#"{"a":1,"c":2}"#, false),
            (r#"{"a\n":1}"#, false),
            ("[]", false),
            ("1", false),
            (r#""a""#, false),
        ] {
            let raw = RawJson::parse(text.to_owned()).unwrap();
            assert_eq!(raw.has_only_keys(|key| matches!(key, "a" | "b")), expected, "{text}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_unparsable_json_is_rejected() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (text, expected) in [
            (r#"{"a":"\n"}"#, Some(r#"{"a":"\n"}"#)),
            (r#""\ud83d\ude00""#, Some(r#""\ud83d\ude00""#)),
            (r#"{"a":"\ud83d"}"#, Some(r#"{"a":"\ufffd"}"#)),
            ("[1e400]", None),
            (&deep, None),
        ] {
            let raw = RawJson::parse(text.to_owned()).unwrap();
            assert_eq!(raw.without_lone_surrogates().as_ref().map(RawJson::as_str), expected, "{text:.40}");
        }
    }

    #[test]
    fn raw_json_rejects_trailing_text() {
        assert!(RawJson::parse("1 2").is_err());
        assert!(RawJson::parse("").is_err());
    }
}
