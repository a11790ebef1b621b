use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Raw, Writer};
use crate::meta;

/// The members of one JSON object, in order, each value raw.
///
/// Reading refuses equal keys. Look-ups are linear, which is fastest for the handful of members that protocol objects
/// have; objects with many members are refused at [`Members::MAX`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Members {
    entries: Vec<(ByteString, Raw)>,
}

/// What is wrong with a JSON text that should have been an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedJson {
    /// The text is not JSON, or not of the expected type.
    #[error("{0}")]
    Syntax(String),
}

impl Members {
    /// The most members one object may have.
    pub const MAX: usize = 10_000;

    /// Makes an empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The text is not one JSON object, has equal keys, or more than [`Members::MAX`] members.
    pub fn parse(text: &ByteString) -> Result<Self, MalformedJson> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = MembersSeed(text).deserialize(&mut deserializer).and_then(|members| {
            deserializer.end()?;
            Ok(members)
        });
        members.map_err(|error| MalformedJson::Syntax(error.to_string()))
    }

    /// Returns the value of a member.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the text of a member that is a JSON string.
    pub fn text(&self, key: &str) -> Option<ByteString> {
        self.get(key)?.to_text()
    }

    /// Removes a member and returns its value.
    pub fn take(&mut self, key: &str) -> Option<Raw> {
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(index).1)
    }

    /// Sets a member, in place if it is there, at the end if not.
    pub fn set(&mut self, key: impl Into<ByteString>, value: Raw) {
        let key = key.into();
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, slot)) => *slot = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ByteString, &Raw)> {
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
    pub fn write_into(&self, writer: &mut Writer) {
        for (key, value) in &self.entries {
            writer.member(key, value);
        }
    }

    /// Renders the object.
    pub fn to_raw(&self) -> Raw {
        let mut writer = Writer::with_capacity(64);
        writer.open_object();
        self.write_into(&mut writer);
        writer.close_object();
        writer.into_raw()
    }

    /// Appends a member, refusing an equal key by a linear look, so `limit` must be small.
    pub(crate) fn push_unique<E: serde::de::Error>(
        &mut self,
        key: ByteString,
        value: Raw,
        limit: usize,
    ) -> Result<(), E> {
        if self.entries.len() >= limit {
            return Err(E::custom(format_args!("an object has more than {limit} members")));
        }
        if self.get(&key).is_some() {
            return Err(E::custom(format_args!("duplicate member `{key}`")));
        }
        self.entries.push((key, value));
        Ok(())
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FromIterator<(ByteString, Raw)> for Members {
    fn from_iter<I: IntoIterator<Item = (ByteString, Raw)>>(entries: I) -> Self {
        let mut members = Self::new();
        for (key, value) in entries {
            members.set(key, value);
        }
        members
    }
}

/// Reads an object out of `0`, the text being deserialized, so that values can share its buffer.
pub(crate) struct MembersSeed<'s>(pub(crate) &'s ByteString);

impl<'de> DeserializeSeed<'de> for MembersSeed<'de> {
    type Value = Members;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersSeed<'de> {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members { entries: Vec::with_capacity(4) };
        // Beyond a handful of members a linear duplicate check would be quadratic, so a set takes over.
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let key = shared_key(self.0, key);
            let value: &'de RawValue = map.next_value()?;
            let value = Raw::trusted(self.0.slice_ref(value.get()));
            if members.len() < LINEAR {
                members.push_unique(key, value, LINEAR)?;
                continue;
            }
            if seen.is_empty() {
                seen.extend(members.iter().map(|(key, _)| key.clone()));
            }
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("duplicate member `{key}`")));
            }
            if members.len() >= Members::MAX {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Err(A::Error::custom(format_args!(
                    "an object has more than {} members",
                    Members::MAX
                )));
            }
            members.entries.push((key, value));
        }
        Ok(members)
    }
}

const LINEAR: usize = 16;

/// Reads a string, sharing the buffer when nothing in it is escaped.
pub(crate) struct TextSeed<'s>(pub(crate) &'s ByteString);

impl<'de> DeserializeSeed<'de> for TextSeed<'de> {
    type Value = ByteString;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<ByteString, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'de> {
    type Value = ByteString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<ByteString, E> {
        Ok(self.0.slice_ref(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<ByteString, E> {
        Ok(text.into())
    }
}

/// Reads a key, borrowing it when nothing in it is escaped.
pub(crate) struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Turns a key into a shared string: a constant for those that every request has, since a slice must count references.
pub(crate) fn shared_key(text: &ByteString, key: Cow<'_, str>) -> ByteString {
    const COMMON: [&str; 8] = [
        "name",
        "arguments",
        "uri",
        "cursor",
        meta::PROGRESS_TOKEN,
        meta::CLIENT_INFO,
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
    ];
    if let Some(common) = COMMON.into_iter().find(|common| *common == key) {
        return ByteString::from_static(common);
    }
    match key {
        Cow::Borrowed(key) => text.slice_ref(key),
        Cow::Owned(key) => key.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Members, MalformedJson> {
        Members::parse(&ByteString::from(text))
    }

    #[test]
    fn members_keep_order_and_verbatim_values() {
        let members = parse(r#"{"b": 1.0, "a" :[ 1,2 ]}"#).unwrap();
        assert_eq!(members.to_raw().as_str(), r#"{"b":1.0,"a":[ 1,2 ]}"#);
    }

    #[test]
    fn members_refuse_equal_keys_however_they_are_spelled() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(parse(text).unwrap_err().to_string().contains("duplicate member `a`"), "{text}");
        }
    }

    #[test]
    fn members_refuse_equal_keys_in_large_objects() {
        let mut text = String::from("{");
        for n in 0..200 {
            text.push_str(&format!("\"k{n}\":{n},"));
        }
        text.push_str("\"k150\":0}");
        assert!(parse(&text).unwrap_err().to_string().contains("duplicate member `k150`"));
    }

    #[test]
    fn members_set_replaces_in_place() {
        let mut members = parse(r#"{"a":1,"b":2}"#).unwrap();
        members.set("a", Raw::NULL);
        members.set("c", Raw::TRUE);
        assert_eq!(members.to_raw().as_str(), r#"{"a":null,"b":2,"c":true}"#);
    }
}
