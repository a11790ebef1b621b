//! How a single member is read and written, by its Rust type: `String` is required, `Option` and `Vec` are not.

use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};

use super::MalformedModel;

/// A type that is one JSON value.
pub(super) trait ModelValue: Sized {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel>;
    fn write_value(&self, dialect: &Dialect, writer: &mut JsonWriter);
}

/// A type that is the value of a member, or its absence.
pub(super) trait ModelField: Sized {
    fn read_field(value: Option<RawJson>) -> Result<Self, MalformedModel>;
    fn write_field(&self, key: &'static str, dialect: &Dialect, writer: &mut JsonWriter);
}

impl<T: ModelValue> ModelField for T {
    fn read_field(value: Option<RawJson>) -> Result<Self, MalformedModel> {
        T::read_value(&value.ok_or_else(|| MalformedModel::new("is missing"))?)
    }

    fn write_field(&self, key: &'static str, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.plain_key(key);
        self.write_value(dialect, writer);
    }
}

// Many peers write `null` for what they do not have, so it reads as absence.
impl<T: ModelValue> ModelField for Option<T> {
    fn read_field(value: Option<RawJson>) -> Result<Self, MalformedModel> {
        value.filter(|raw| !raw.is_null()).map(|raw| T::read_value(&raw)).transpose()
    }

    fn write_field(&self, key: &'static str, dialect: &Dialect, writer: &mut JsonWriter) {
        if let Some(value) = self {
            value.write_field(key, dialect, writer);
        }
    }
}

impl<T: ModelValue> ModelField for Vec<T> {
    fn read_field(value: Option<RawJson>) -> Result<Self, MalformedModel> {
        value.filter(|raw| !raw.is_null()).map_or_else(|| Ok(Self::new()), |raw| read_list(&raw))
    }

    fn write_field(&self, key: &'static str, dialect: &Dialect, writer: &mut JsonWriter) {
        if !self.is_empty() {
            writer.plain_key(key);
            write_list(self, dialect, writer);
        }
    }
}

pub(super) fn read_list<T: ModelValue>(raw: &RawJson) -> Result<Vec<T>, MalformedModel> {
    let elements = raw.elements().map_err(|_| MalformedModel::new("must be an array"))?;
    elements.iter().enumerate().map(|(index, raw)| T::read_value(raw).map_err(|e| e.at(index))).collect()
}

pub(super) fn write_list<T: ModelValue>(list: &[T], dialect: &Dialect, writer: &mut JsonWriter) {
    writer.open_array();
    for item in list {
        item.write_value(dialect, writer);
    }
    writer.close_array();
}

impl ModelValue for String {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        raw.as_text().map(Into::into).ok_or_else(|| MalformedModel::new("must be a string"))
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.string(self);
    }
}

impl ModelValue for bool {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        raw.get().map_err(|_| MalformedModel::new("must be true or false"))
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.boolean(*self);
    }
}

impl ModelValue for f64 {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        raw.get().map_err(|_| MalformedModel::new("must be a number"))
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.number(*self);
    }
}

impl ModelValue for u64 {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        // 2^53: a peer that has only floating numbers may write `12.0`, and means an integer up to here.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if let Ok(number) = raw.get() {
            return Ok(number);
        }
        match raw.get::<f64>() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the guard keeps it in range"
            )]
            Ok(number) if number.fract() == 0.0 && (0.0..=EXACT).contains(&number) => Ok(number as Self),
            _ => Err(MalformedModel::new("must be an integer that is not negative")),
        }
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.unsigned(*self);
    }
}

impl ModelValue for RawJson {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        Ok(raw.clone())
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.raw(self);
    }
}

impl ModelValue for JsonObject {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        Ok(raw.members()?)
    }

    fn write_value(&self, _: &Dialect, writer: &mut JsonWriter) {
        writer.open_object();
        self.write_into(writer);
        writer.close_object();
    }
}

/// Takes the typed members out of an object one by one; the rest is carried.
pub(super) struct ObjectReader(pub(super) JsonObject);

impl ObjectReader {
    pub(super) fn open(raw: &RawJson) -> Result<Self, MalformedModel> {
        if raw.kind() != JsonKind::Object {
            return Err(MalformedModel::new("must be an object"));
        }
        Ok(Self(raw.members()?))
    }

    /// Opens a result without its `resultType`, which selects how to read it and is no part of it.
    pub(super) fn open_result(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = Self::open(raw)?;
        reader.0.take("resultType");
        Ok(reader)
    }

    pub(super) fn take<T: ModelField>(&mut self, key: &str) -> Result<T, MalformedModel> {
        T::read_field(self.0.take(key)).map_err(|error| error.within(key))
    }

    /// Takes a required array.
    pub(super) fn take_list<T: ModelValue>(&mut self, key: &str) -> Result<Vec<T>, MalformedModel> {
        let list = self.0.take(key).ok_or_else(|| MalformedModel::new("is missing"));
        list.and_then(|raw| read_list(&raw)).map_err(|error| error.within(key))
    }
}

/// Writes carried members into the open object, except the members that the type writes itself.
pub(super) fn write_rest(rest: &JsonObject, typed: &[&str], writer: &mut JsonWriter) {
    for (key, value) in rest.iter() {
        if !typed.iter().any(|name| key == name) {
            writer.member(key, value);
        }
    }
}

/// Writes the `_meta` of an entity or a content block.
///
/// A revision that has no `_meta` there still receives the member `ui`, which clients that do not know it ignore.
pub(super) fn write_entity_meta(meta: Option<&JsonObject>, dialect: &Dialect, writer: &mut JsonWriter) {
    let Some(meta) = meta else { return };
    if dialect.entity_meta {
        meta.write_field("_meta", dialect, writer);
    } else if let Some(ui) = meta.get("ui") {
        writer.plain_key("_meta");
        writer.open_object();
        writer.member("ui", ui);
        writer.close_object();
    }
}
