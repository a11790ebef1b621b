mod shallow;

use std::collections::HashSet;
use std::fmt;

use bytestring::ByteString;

use super::key::ObjectKey;
use super::scan::{JsonScanner, ScanError};
use super::{JsonWriter, RawJson};
use crate::meta;

/// The members of one JSON object, in order, each value raw.
///
/// Reading refuses equal keys. Look-ups are linear, which is fastest for the handful of members that protocol objects
/// have; objects with many members are refused at [`JsonObject::MAX`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct JsonObject {
    entries: Vec<(ByteString, RawJson)>,
}

/// The reason why a JSON text is not an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedJson {
    /// The text is not JSON.
    #[error("it is not valid JSON")]
    Syntax,
    /// The text is JSON, but not an object.
    #[error("it is not an object")]
    NotAnObject,
    /// Two members have one name.
    #[error("duplicate member `{0}`")]
    Duplicate(String),
    /// The text exceeds the depth limit.
    #[error("it nests deeper than {} levels", JsonScanner::MAX_DEPTH)]
    TooDeep,
    /// There are more members than [`JsonObject::MAX`].
    #[error("it has more than {} members", JsonObject::MAX)]
    TooMany,
}

impl From<ScanError> for MalformedJson {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Syntax => Self::Syntax,
            ScanError::TooDeep => Self::TooDeep,
        }
    }
}

impl JsonObject {
    /// The most members one object may have.
    pub const MAX: usize = 10_000;

    /// Creates an empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The text is not one JSON object, has equal keys, or more than [`JsonObject::MAX`] members.
    pub fn parse(text: &ByteString) -> Result<Self, MalformedJson> {
        let mut scanner = JsonScanner::new(text, JsonScanner::MAX_DEPTH);
        if scanner.peek() != Some(b'{') {
            scanner.skip();
            return Err(scanner.end().map_or_else(MalformedJson::from, |()| MalformedJson::NotAnObject));
        }
        let mut fault = None;
        let members = Self::scan_with(&mut scanner, text, &mut fault, |scanner, _| scanner.value(), |_| ());
        scanner.end()?;
        fault.map_or(Ok(members), Err)
    }

    /// Reads an object without parsing its values, which may nest to any depth.
    ///
    /// # Errors
    /// As [`JsonObject::parse`].
    pub(crate) fn parse_shallow(text: &ByteString) -> Result<Self, MalformedJson> {
        match Self::parse(text) {
            // Slower, but without recursion.
            Err(MalformedJson::TooDeep) => shallow::parse(text),
            parsed => parsed,
        }
    }

    /// Reads the next object and rejects duplicate keys in its values too; stores the first problem other than its
    /// grammar in `fault`. Calls `uncommon` with each name that is not one of [`COMMON_KEYS`].
    pub(crate) fn scan(
        scanner: &mut JsonScanner<'_>,
        text: &ByteString,
        fault: &mut Option<MalformedJson>,
        uncommon: impl FnMut(&str),
    ) -> Self {
        Self::scan_with(scanner, text, fault, JsonScanner::distinct_value, uncommon)
    }

    fn scan_with<'a>(
        scanner: &mut JsonScanner<'a>,
        text: &ByteString,
        fault: &mut Option<MalformedJson>,
        take: impl Fn(&mut JsonScanner<'a>, &mut Option<MalformedJson>) -> Option<RawJson>,
        mut uncommon: impl FnMut(&str),
    ) -> Self {
        let mut members = ObjectBuilder::new();
        scanner.open_object();
        let mut first = true;
        while let Some(key) = scanner.next_key(first, COMMON_KEYS) {
            first = false;
            if let (ObjectKey::Other(name), None) = (&key, &fault) {
                uncommon(name);
            }
            let Some(value) = take(scanner, fault) else { break };
            members.add(key.share(text), value, fault);
        }
        members.members
    }

    /// Returns the value of a member.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the text of a member that is a JSON string.
    pub fn text(&self, key: &str) -> Option<ByteString> {
        self.get(key)?.to_text()
    }

    /// Removes a member and returns its value.
    pub fn take(&mut self, key: &str) -> Option<RawJson> {
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(index).1)
    }

    /// Sets a member: in place if it exists, else at the end.
    pub fn set(&mut self, key: impl Into<ByteString>, value: RawJson) {
        let key = key.into();
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, slot)) => *slot = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ByteString, &RawJson)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Writes the members into the object that the writer has open.
    pub fn write_into(&self, writer: &mut JsonWriter) {
        for (key, value) in &self.entries {
            writer.member(key, value);
        }
    }

    /// Renders the object.
    pub fn to_raw(&self) -> RawJson {
        let mut writer = JsonWriter::with_capacity(64);
        writer.open_object();
        self.write_into(&mut writer);
        writer.close_object();
        writer.into_raw()
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FromIterator<(ByteString, RawJson)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (ByteString, RawJson)>>(entries: I) -> Self {
        let mut members = Self::new();
        for (key, value) in entries {
            members.set(key, value);
        }
        members
    }
}

/// A builder of members that detects duplicate keys.
pub(crate) struct ObjectBuilder {
    pub(crate) members: JsonObject,
    /// Holds further keys in a set, since a linear search for each of many members would be quadratic.
    seen: Option<HashSet<ByteString>>,
}

/// The most keys for which a linear search is the cheapest.
const LINEAR_SEARCH_MAX: usize = 16;

/// The keys that every request has.
pub(crate) const COMMON_KEYS: [&str; 9] = [
    "name",
    "arguments",
    "_meta",
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::PROGRESS_TOKEN,
    "uri",
    "cursor",
];

impl ObjectBuilder {
    pub(crate) fn new() -> Self {
        Self { members: JsonObject { entries: Vec::with_capacity(4) }, seen: None }
    }

    /// Adds a member, or stores the reason against it in `fault`.
    pub(crate) fn add(&mut self, key: ByteString, value: RawJson, fault: &mut Option<MalformedJson>) {
        if self.repeats(&key) {
            fault.get_or_insert_with(|| MalformedJson::Duplicate(key.chars().take(64).collect()));
        } else if self.members.len() >= JsonObject::MAX {
            fault.get_or_insert(MalformedJson::TooMany);
        } else {
            self.members.entries.push((key, value));
        }
    }

    fn repeats(&mut self, key: &ByteString) -> bool {
        if self.members.len() < LINEAR_SEARCH_MAX {
            return self.members.get(key).is_some();
        }
        let members = &self.members;
        let seen = self.seen.get_or_insert_with(|| members.iter().map(|(key, _)| key.clone()).collect());
        !seen.insert(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JsonObject, MalformedJson> {
        JsonObject::parse(&ByteString::from(text))
    }

    #[test]
    fn members_keep_order_and_verbatim_values() {
        let members = parse(r#"{"b": 1.0, "a" :[ 1,2 ]}"#).unwrap();
        assert_eq!(members.to_raw().as_str(), r#"{"b":1.0,"a":[ 1,2 ]}"#);
    }

    #[test]
    fn json_object_rejects_duplicate_keys_in_any_spelling() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(parse(text).unwrap_err().to_string().contains("duplicate member `a`"), "{text}");
        }
    }

    #[test]
    fn json_object_rejects_duplicate_keys_in_large_objects() {
        let mut text = String::from("{");
        for n in 0..200 {
            text.push_str(&format!("\"k{n}\":{n},"));
        }
        text.push_str("\"k150\":0}");
        assert!(parse(&text).unwrap_err().to_string().contains("duplicate member `k150`"));
    }

    #[test]
    fn shallow_parse_reads_members_of_any_depth() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let text = ByteString::from(format!(r#"{{"\u0061": {}, "b":"c"}}"#, deep(100_000)));
        assert_eq!(JsonObject::parse(&text), Err(MalformedJson::TooDeep));
        let members = JsonObject::parse_shallow(&text).unwrap();
        assert_eq!(members.get("a").map(|raw| raw.as_str().len()), Some(200_000));
        assert_eq!(members.text("b").as_deref(), Some("c"));
        for (text, expected) in [
            (format!(r#"{{"a":{},"a":1}}"#, deep(500)), MalformedJson::Duplicate("a".to_owned())),
            (format!(r#"{{"a":{}"#, deep(500)), MalformedJson::Syntax),
            (deep(500), MalformedJson::NotAnObject),
        ] {
            assert_eq!(JsonObject::parse_shallow(&text.into()), Err(expected));
        }
    }

    #[test]
    fn members_set_replaces_in_place() {
        let mut members = parse(r#"{"a":1,"b":2}"#).unwrap();
        members.set("a", RawJson::NULL);
        members.set("c", RawJson::TRUE);
        assert_eq!(members.to_raw().as_str(), r#"{"a":null,"b":2,"c":true}"#);
    }
}
