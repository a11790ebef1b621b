//! The parts of values, as serde walks over them.

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::{DecodeError, NodeDeserializer};
use crate::node::{ConfigNode, TableEntry};
use crate::variables::VariableExpander;

/// The elements of a list.
pub(super) struct ArrayAccess<'a> {
    elements: std::iter::Enumerate<std::slice::Iter<'a, ConfigNode>>,
    expander: &'a VariableExpander<'a>,
}

impl<'a> ArrayAccess<'a> {
    pub(super) fn new(elements: &'a [ConfigNode], expander: &'a VariableExpander<'a>) -> Self {
        Self { elements: elements.iter().enumerate(), expander }
    }
}

impl<'de> SeqAccess<'de> for ArrayAccess<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some((index, node)) = self.elements.next() else { return Ok(None) };
        let read = seed.deserialize(NodeDeserializer { node, expander: self.expander });
        read.map(Some).map_err(|fault| fault.with_span(&node.span).within(&index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

/// The members of a table.
pub(super) struct TableAccess<'a> {
    entries: std::slice::Iter<'a, TableEntry>,
    current: Option<&'a TableEntry>,
    expander: &'a VariableExpander<'a>,
}

impl<'a> TableAccess<'a> {
    pub(super) fn new(entries: &'a [TableEntry], expander: &'a VariableExpander<'a>) -> Self {
        Self { entries: entries.iter(), current: None, expander }
    }
}

impl<'de> MapAccess<'de> for TableAccess<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        self.current = self.entries.next();
        let Some(entry) = self.current else { return Ok(None) };
        let key: StringDeserializer<DecodeError> = entry.key.clone().into_deserializer();
        let read = seed.deserialize(key);
        read.map(Some).map_err(|fault| fault.with_span(&entry.key_span).within(&entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        let entry = self
            .current
            .take()
            .ok_or_else(|| DecodeError::new("a value was read before its key".to_owned()))?;
        let read = seed.deserialize(NodeDeserializer { node: &entry.value, expander: self.expander });
        read.map_err(|fault| fault.with_span(&entry.value.span).within(&entry.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A variant that is written as a table with its name as the only key.
pub(super) struct VariantTableAccess<'a> {
    entry: &'a TableEntry,
    expander: &'a VariableExpander<'a>,
}

impl<'a> VariantTableAccess<'a> {
    pub(super) fn new(entry: &'a TableEntry, expander: &'a VariableExpander<'a>) -> Self {
        Self { entry, expander }
    }

    fn value(&self) -> NodeDeserializer<'a> {
        NodeDeserializer { node: &self.entry.value, expander: self.expander }
    }

    fn within_entry(&self, fault: DecodeError) -> DecodeError {
        fault.with_span(&self.entry.value.span).within(&self.entry.key)
    }
}

impl<'de> EnumAccess<'de> for VariantTableAccess<'_> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), DecodeError> {
        let name: StringDeserializer<DecodeError> = self.entry.key.clone().into_deserializer();
        let variant = seed.deserialize(name).map_err(|fault| fault.with_span(&self.entry.key_span))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for VariantTableAccess<'_> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Err(self.within_entry(DecodeError::new("it is written without a value, as a string".to_owned())))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(self.value()).map_err(|fault| self.within_entry(fault))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.value().deserialize_any(visitor).map_err(|fault| self.within_entry(fault))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.value().deserialize_struct("", fields, visitor).map_err(|fault| self.within_entry(fault))
    }
}

/// A text as written and as expanded, as a sequence of two.
pub(super) struct TextForms(pub(super) String, pub(super) String);

impl<'de> Deserializer<'de> for TextForms {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(SeqDeserializer::new([self.0, self.1].into_iter()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
