//! The parts of values, as serde walks over them.

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Fault, Reader};
use crate::node::{Entry, Node};
use crate::variables::Expander;

/// The elements of a list.
pub(super) struct Elements<'a> {
    elements: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    expander: &'a Expander<'a>,
}

impl<'a> Elements<'a> {
    pub(super) fn new(elements: &'a [Node], expander: &'a Expander<'a>) -> Self {
        Self { elements: elements.iter().enumerate(), expander }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.elements.next() else { return Ok(None) };
        let read = seed.deserialize(Reader { node, expander: self.expander });
        read.map(Some).map_err(|fault| fault.placed(&node.span).within(&index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

/// The members of a table.
pub(super) struct Members<'a> {
    entries: std::slice::Iter<'a, Entry>,
    current: Option<&'a Entry>,
    expander: &'a Expander<'a>,
}

impl<'a> Members<'a> {
    pub(super) fn new(entries: &'a [Entry], expander: &'a Expander<'a>) -> Self {
        Self { entries: entries.iter(), current: None, expander }
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.current = self.entries.next();
        let Some(entry) = self.current else { return Ok(None) };
        let key: StringDeserializer<Fault> = entry.key.clone().into_deserializer();
        let read = seed.deserialize(key);
        read.map(Some).map_err(|fault| fault.placed(&entry.key_span).within(&entry.key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let entry =
            self.current.take().ok_or_else(|| Fault::new("a value was read before its key".to_owned()))?;
        let read = seed.deserialize(Reader { node: &entry.value, expander: self.expander });
        read.map_err(|fault| fault.placed(&entry.value.span).within(&entry.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A variant that is written as a table with its name as the only key.
pub(super) struct Choice<'a> {
    entry: &'a Entry,
    expander: &'a Expander<'a>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(entry: &'a Entry, expander: &'a Expander<'a>) -> Self {
        Self { entry, expander }
    }

    fn reader(&self) -> Reader<'a> {
        Reader { node: &self.entry.value, expander: self.expander }
    }

    fn below(&self, fault: Fault) -> Fault {
        fault.placed(&self.entry.value.span).within(&self.entry.key)
    }
}

impl<'de> EnumAccess<'de> for Choice<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name: StringDeserializer<Fault> = self.entry.key.clone().into_deserializer();
        let variant = seed.deserialize(name).map_err(|fault| fault.placed(&self.entry.key_span))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(self.below(Fault::new("it is written without a value, as a string".to_owned())))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.reader()).map_err(|fault| self.below(fault))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.reader().deserialize_any(visitor).map_err(|fault| self.below(fault))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.reader().deserialize_struct("", fields, visitor).map_err(|fault| self.below(fault))
    }
}

/// What is written and what it stands for, as a sequence of two.
pub(super) struct Forms(pub(super) String, pub(super) String);

impl<'de> Deserializer<'de> for Forms {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(SeqDeserializer::new([self.0, self.1].into_iter()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
