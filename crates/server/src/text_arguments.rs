//! Reading a type out of named texts, which is all that prompts and URI templates have.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// Reads a type from texts by name; numbers and booleans are read from their texts.
///
/// # Errors
/// A message that names the text which does not fit.
pub(crate) fn read<T: DeserializeOwned>(
    texts: impl IntoIterator<Item = (String, String)>,
) -> Result<T, String> {
    T::deserialize(TextMapDeserializer { entries: texts.into_iter(), value: None })
        .map_err(|error| error.to_string())
}

struct TextMapDeserializer<I> {
    entries: I,
    value: Option<(String, String)>,
}

impl<'de, I: Iterator<Item = (String, String)>> Deserializer<'de> for TextMapDeserializer<I> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, I: Iterator<Item = (String, String)>> MapAccess<'de> for TextMapDeserializer<I> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.value = self.entries.next();
        let key = self.value.as_ref().map(|(name, _)| name.clone());
        key.map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, text) = self.value.take().unwrap_or_default();
        seed.deserialize(TextDeserializer(text))
            .map_err(|error| Error::custom(format_args!("`{name}`: {error}")))
    }
}

struct TextDeserializer(String);

impl TextDeserializer {
    fn parse<T: FromStr<Err: Display>>(&self, kind: &str) -> Result<T, Error> {
        self.0.trim().parse().map_err(|_| Error::custom(format_args!("must be {kind}")))
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident, $kind:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parse($kind)?)
        })*
    };
}

impl<'de> Deserializer<'de> for TextDeserializer {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    parsed! {
        deserialize_bool => visit_bool, "true or false";
        deserialize_i8 => visit_i8, "an integer";
        deserialize_i16 => visit_i16, "an integer";
        deserialize_i32 => visit_i32, "an integer";
        deserialize_i64 => visit_i64, "an integer";
        deserialize_i128 => visit_i128, "an integer";
        deserialize_u8 => visit_u8, "an integer that is not negative";
        deserialize_u16 => visit_u16, "an integer that is not negative";
        deserialize_u32 => visit_u32, "an integer that is not negative";
        deserialize_u64 => visit_u64, "an integer that is not negative";
        deserialize_u128 => visit_u128, "an integer that is not negative";
        deserialize_f32 => visit_f32, "a number";
        deserialize_f64 => visit_f64, "a number";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::function::NoArguments;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum TestUnit {
        Metric,
        Imperial,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct TestId(u64);

    #[derive(Debug, PartialEq, Deserialize)]
    struct TestArguments {
        id: TestId,
        ratio: Option<f64>,
        deep: Option<bool>,
        unit: TestUnit,
        note: String,
    }

    fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn text_arguments_deserialize_into_types() {
        let given =
            texts(&[("id", "7"), ("deep", "true"), ("unit", "metric"), ("note", "12"), ("other", "x")]);
        let read = read::<TestArguments>(given).unwrap();
        let expected = TestArguments {
            id: TestId(7),
            ratio: None,
            deep: Some(true),
            unit: TestUnit::Metric,
            note: "12".to_owned(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn text_argument_errors_name_the_argument() {
        for (pairs, expected) in [
            (vec![("id", "-7")], "`id`: must be an integer that is not negative"),
            (vec![("id", "7"), ("ratio", "half")], "`ratio`: must be a number"),
            (vec![("id", "7"), ("unit", "miles")], "`unit`: unknown variant `miles`"),
            (vec![("id", "7"), ("unit", "metric")], "missing field `note`"),
        ] {
            let error = read::<TestArguments>(texts(&pairs)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn text_arguments_deserialize_into_maps_and_unit() {
        let pairs = texts(&[("a", "1"), ("b", "2")]);
        let map: BTreeMap<String, String> = read(pairs.clone()).unwrap();
        assert_eq!(map.into_iter().collect::<Vec<_>>(), pairs);
        assert_eq!(read::<NoArguments>(pairs), Ok(NoArguments));
    }
}
