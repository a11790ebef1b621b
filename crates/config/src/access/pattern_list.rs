use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::limits::{MAX_ACCESS_PATTERN_BYTES, MAX_ACCESS_PATTERNS};
use crate::server::NamePattern;

/// One pattern or several, of which one has to match. It is never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct PatternList(Vec<NamePattern>);

impl PatternList {
    /// Makes a list; `None` without a pattern.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Option<Self> {
        let patterns: Vec<_> = patterns.into_iter().map(NamePattern::new).collect();
        (!patterns.is_empty()).then_some(Self(patterns))
    }

    /// Reports whether any pattern matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(text))
    }

    /// Reports whether every text matches, because of a pattern of only `*`.
    pub fn matches_everything(&self) -> bool {
        self.0
            .iter()
            .any(|pattern| !pattern.as_str().is_empty() && pattern.as_str().bytes().all(|b| b == b'*'))
    }

    /// Returns the patterns.
    pub fn iter(&self) -> std::slice::Iter<'_, NamePattern> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a PatternList {
    type Item = &'a NamePattern;
    type IntoIter = std::slice::Iter<'a, NamePattern>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Shows how many patterns there are: they may come from a variable.
impl fmt::Debug for PatternList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatternList({})", self.0.len())
    }
}

impl<'de> Deserialize<'de> for PatternList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PatternListVisitor)
    }
}

struct PatternListVisitor;

impl<'de> Visitor<'de> for PatternListVisitor {
    type Value = PatternList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PatternList, E> {
        checked(vec![NamePattern::new(text)])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<PatternList, A::Error> {
        let mut patterns = Vec::new();
        while let Some(text) = texts.next_element::<String>()? {
            patterns.push(NamePattern::new(text));
        }
        checked(patterns)
    }
}

fn checked<E: Error>(patterns: Vec<NamePattern>) -> Result<PatternList, E> {
    if patterns.is_empty() {
        return Err(E::custom("an empty list matches nothing; leave the key out to match everything"));
    }
    if patterns.len() > MAX_ACCESS_PATTERNS {
        return Err(E::custom(format_args!("at most {MAX_ACCESS_PATTERNS} patterns are possible")));
    }
    if patterns.iter().any(|pattern| pattern.as_str().len() > MAX_ACCESS_PATTERN_BYTES) {
        return Err(E::custom(format_args!("a pattern has at most {MAX_ACCESS_PATTERN_BYTES} bytes")));
    }
    Ok(PatternList(patterns))
}

impl JsonSchema for PatternList {
    fn schema_name() -> Cow<'static, str> {
        "PatternList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One pattern, or a list of them: `*` matches any characters, `?` matches one.",
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ],
        })
    }
}
