//! Deserializes any `Deserialize` type from a tree of values; every error has a position.
//!
//! Variables in strings are expanded. A key that a struct does not have is rejected, with a suggestion.

mod access;
mod decode_error;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use self::access::{ArrayAccess, TableAccess, TextForms, VariantTableAccess};
pub(crate) use self::decode_error::DecodeError;
use crate::node::{ConfigNode, NodeKind};
use crate::suggestion::nearest;
use crate::text::{TEMPLATE, TEXT, VERBATIM};
use crate::variables::VariableExpander;

/// Decodes a value; an error has its position in the text and its path of keys.
pub(crate) fn read<T: DeserializeOwned>(
    node: &ConfigNode,
    expander: &VariableExpander<'_>,
) -> Result<T, DecodeError> {
    T::deserialize(NodeDeserializer { node, expander })
}

#[derive(Clone, Copy)]
struct NodeDeserializer<'a> {
    node: &'a ConfigNode,
    expander: &'a VariableExpander<'a>,
}

impl<'a> NodeDeserializer<'a> {
    fn expanded(self, text: &str) -> Result<String, DecodeError> {
        self.expander
            .expand(text)
            .map_err(|error| DecodeError::new(error.to_string()).with_span(&self.node.span))
    }

    fn deserialize_node<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.kind {
            NodeKind::Null => visitor.visit_unit(),
            NodeKind::Bool(yes) => visitor.visit_bool(*yes),
            NodeKind::Integer(number) => visitor.visit_i64(*number),
            NodeKind::Float(number) => visitor.visit_f64(*number),
            NodeKind::Text(text) => visitor.visit_string(self.expanded(text)?),
            NodeKind::Array(elements) => visitor.visit_seq(ArrayAccess::new(elements, self.expander)),
            NodeKind::Table(entries) => visitor.visit_map(TableAccess::new(entries, self.expander)),
        }
    }

    /// Passes both forms of a text to a visitor that accepts them.
    fn expand_both<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let NodeKind::Text(written) = &self.node.kind else {
            return Err(Error::invalid_type(Unexpected::Other(self.node.kind_name()), &"a string"));
        };
        let value = self.expanded(written)?;
        // An unexpanded text uses our spelling of variables.
        let written = if self.expander.is_disabled() { value.clone() } else { written.clone() };
        visitor.visit_newtype_struct(TextForms(written, value))
    }

    /// Refuses keys that a struct does not have, whatever the struct itself would do with them.
    fn check_keys(self, known: &'static [&'static str]) -> Result<(), DecodeError> {
        let Some(entries) = self.node.entries() else {
            let fault: DecodeError =
                Error::invalid_type(Unexpected::Other(self.node.kind_name()), &"a table");
            return Err(fault.with_span(&self.node.span));
        };
        match entries.iter().find(|entry| !known.contains(&&*entry.key)) {
            None => Ok(()),
            Some(entry) => {
                let message = unknown_key(&entry.key, known.iter().copied());
                Err(DecodeError::new(message).within(&entry.key).with_span(&entry.key_span))
            }
        }
    }
}

/// Returns the message for an unknown key, with a suggestion or the list of known keys.
pub(crate) fn unknown_key<'k>(key: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    let key: String = key.chars().take(64).collect();
    match nearest(&key, known.clone()) {
        Some(near) => format!("`{key}` is not a known key; did you mean `{near}`?"),
        None => {
            let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            format!("`{key}` is not a known key; known keys are {}", known.join(", "))
        }
    }
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_node(visitor).map_err(|fault| fault.with_span(&self.node.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.kind {
            NodeKind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let read = match (name, &self.node.kind) {
            (TEXT, _) => self.expand_both(visitor),
            (TEMPLATE, NodeKind::Text(text)) => {
                let expanded = self.expander.expand_template(text);
                expanded.map_err(|error| DecodeError::new(error.to_string())).and_then(|text| {
                    let plain: StringDeserializer<DecodeError> = text.into_deserializer();
                    visitor.visit_newtype_struct(plain)
                })
            }
            (VERBATIM, NodeKind::Text(text)) => {
                let plain: StringDeserializer<DecodeError> = text.clone().into_deserializer();
                visitor.visit_newtype_struct(plain)
            }
            _ => visitor.visit_newtype_struct(self),
        };
        read.map_err(|fault| fault.with_span(&self.node.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.check_keys(fields)?;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let read = match &self.node.kind {
            NodeKind::Text(text) => visitor.visit_enum(StringDeserializer::new(self.expanded(text)?)),
            NodeKind::Table(entries) => match entries.as_slice() {
                [only] => visitor.visit_enum(VariantTableAccess::new(only, self.expander)),
                _ => Err(DecodeError::new("expected a table with exactly one key".to_owned())),
            },
            _ => Err(Error::invalid_type(Unexpected::Other(self.node.kind_name()), &"a string")),
        };
        read.map_err(|fault| fault.with_span(&self.node.span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}
