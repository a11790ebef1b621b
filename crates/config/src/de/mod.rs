//! Reads any `Deserialize` type out of a tree of values, and says of every mistake where it is.
//!
//! Strings have their variables expanded on the way. A key that a struct does not have is refused, with the one that was
//! probably meant.

mod access;
mod fault;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use self::access::{Choice, Elements, Forms, Members};
pub(crate) use self::fault::Fault;
use crate::near::nearest;
use crate::node::{Kind, Node};
use crate::text::{TEMPLATE, TEXT, VERBATIM};
use crate::variables::Expander;

/// Reads a value; a fault names its place within the text and its keys from here on.
pub(crate) fn read<T: DeserializeOwned>(node: &Node, expander: &Expander<'_>) -> Result<T, Fault> {
    T::deserialize(Reader { node, expander })
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    expander: &'a Expander<'a>,
}

impl<'a> Reader<'a> {
    fn expanded(self, text: &str) -> Result<String, Fault> {
        self.expander.expand(text).map_err(|error| Fault::new(error.to_string()).placed(&self.node.span))
    }

    fn any<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(yes) => visitor.visit_bool(*yes),
            Kind::Integer(number) => visitor.visit_i64(*number),
            Kind::Float(number) => visitor.visit_f64(*number),
            Kind::Text(text) => visitor.visit_string(self.expanded(text)?),
            Kind::Array(elements) => visitor.visit_seq(Elements::new(elements, self.expander)),
            Kind::Table(entries) => visitor.visit_map(Members::new(entries, self.expander)),
        }
    }

    /// Gives both forms of a text to one who wants them.
    fn both<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Kind::Text(written) = &self.node.kind else {
            return Err(Error::invalid_type(Unexpected::Other(self.node.described()), &"a string"));
        };
        let value = self.expanded(written)?;
        // A text that is kept is written the way that we spell variables.
        let written = if self.expander.keeps() { value.clone() } else { written.clone() };
        visitor.visit_newtype_struct(Forms(written, value))
    }

    /// Refuses keys that a struct does not have, whatever the struct itself would do with them.
    fn check_keys(self, known: &'static [&'static str]) -> Result<(), Fault> {
        let Some(entries) = self.node.entries() else {
            let fault: Fault = Error::invalid_type(Unexpected::Other(self.node.described()), &"a table");
            return Err(fault.placed(&self.node.span));
        };
        match entries.iter().find(|entry| !known.contains(&&*entry.key)) {
            None => Ok(()),
            Some(entry) => {
                let message = unknown_key(&entry.key, known.iter().copied());
                Err(Fault::new(message).within(&entry.key).placed(&entry.key_span))
            }
        }
    }
}

/// Says that a key is not known, and which one was probably meant or which ones there are.
pub(crate) fn unknown_key<'k>(key: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let key: String = key.chars().take(64).collect();
    match nearest(&key, known.clone()) {
        Some(near) => format!("`{key}` is not a key here; did you mean `{near}`?"),
        None => {
            let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            format!("`{key}` is not a key here; there are {}", known.join(", "))
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.any(visitor).map_err(|fault| fault.placed(&self.node.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let read = match (name, &self.node.kind) {
            (TEXT, _) => self.both(visitor),
            (TEMPLATE, Kind::Text(text)) => {
                let expanded = self.expander.expand_template(text);
                expanded.map_err(|error| Fault::new(error.to_string())).and_then(|text| {
                    let plain: StringDeserializer<Fault> = text.into_deserializer();
                    visitor.visit_newtype_struct(plain)
                })
            }
            (VERBATIM, Kind::Text(text)) => {
                let plain: StringDeserializer<Fault> = text.clone().into_deserializer();
                visitor.visit_newtype_struct(plain)
            }
            _ => visitor.visit_newtype_struct(self),
        };
        read.map_err(|fault| fault.placed(&self.node.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.check_keys(fields)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let read = match &self.node.kind {
            Kind::Text(text) => visitor.visit_enum(StringDeserializer::new(self.expanded(text)?)),
            Kind::Table(entries) => match entries.as_slice() {
                [only] => visitor.visit_enum(Choice::new(only, self.expander)),
                _ => Err(Fault::new("it has to be a table with exactly one key".to_owned())),
            },
            _ => Err(Error::invalid_type(Unexpected::Other(self.node.described()), &"a string")),
        };
        read.map_err(|fault| fault.placed(&self.node.span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}
