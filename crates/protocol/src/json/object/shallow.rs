//! Objects of any depth, for callers that forward their values one by one.

use std::fmt;

use bytestring::ByteString;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{JsonObject, MalformedJson, ObjectBuilder};
use crate::json::RawJson;

/// Reads an object with `serde_json`, which skips raw values without recursion.
pub(super) fn parse(text: &ByteString) -> Result<JsonObject, MalformedJson> {
    if !text.trim_start().starts_with('{') {
        return Err(MalformedJson::NotAnObject);
    }
    let mut fault = None;
    let mut parser = serde_json::Deserializer::from_str(text);
    let reading = ShallowVisitor { text, fault: &mut fault };
    let members = parser.deserialize_map(reading).map_err(|_| MalformedJson::Syntax)?;
    parser.end().map_err(|_| MalformedJson::Syntax)?;
    fault.map_or(Ok(members), Err)
}

struct ShallowVisitor<'a> {
    text: &'a ByteString,
    fault: &'a mut Option<MalformedJson>,
}

impl<'de> Visitor<'de> for ShallowVisitor<'_> {
    type Value = JsonObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<JsonObject, M::Error> {
        let mut collector = ObjectBuilder::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            let value = RawJson::from_trusted(self.text.slice_ref(value.get()));
            collector.add(key.into(), value, self.fault);
        }
        Ok(collector.members)
    }
}
