use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, RawJson};

use super::field_type::{BoundedField, FormField, TextField};

/// One field of a form: its name, its description for the user, and its allowed values.
pub struct FieldDefinition<T> {
    name: &'static str,
    operations: FieldOperations<T>,
    title: Option<&'static str>,
    description: Option<&'static str>,
    format: Option<&'static str>,
    min: Option<FieldBound<T>>,
    max: Option<FieldBound<T>>,
    default: Option<fn() -> T>,
}

/// The operations of a field's type; resolved once, so that an unsupported type is one compiler error.
struct FieldOperations<T> {
    describe: fn(&mut JsonObject),
    to_value: fn(&T) -> Value,
    read: fn(&Value) -> Result<T, String>,
    absent: fn() -> Option<T>,
}

struct FieldBound<T> {
    keyword: &'static str,
    phrase: &'static str,
    bound: f64,
    size: fn(&T) -> Option<f64>,
}

impl<T> FieldDefinition<T> {
    /// Names a field.
    pub const fn new(name: &'static str) -> Self
    where
        T: FormField,
    {
        let kind = FieldOperations {
            describe: T::describe,
            to_value: T::to_value,
            read: T::read,
            absent: T::absent,
        };
        Self {
            name,
            operations: kind,
            title: None,
            description: None,
            format: None,
            min: None,
            max: None,
            default: None,
        }
    }

    /// Sets what humans call the field.
    #[must_use]
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the description of what to fill in.
    #[must_use]
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Sets the value of the field if the user leaves it empty.
    #[must_use]
    pub fn default_with(mut self, default: fn() -> T) -> Self {
        self.default = Some(default);
        self
    }

    /// Sets the format of the text: `email`, `uri`, `date` or `date-time`.
    #[must_use]
    pub fn format(mut self, format: &'static str) -> Self
    where
        T: TextField,
    {
        self.format = Some(format);
        self
    }

    /// Sets the least number, length or count.
    #[must_use]
    pub fn min(mut self, bound: f64) -> Self
    where
        T: BoundedField,
    {
        self.min =
            Some(FieldBound { keyword: T::MIN_KEYWORD, phrase: T::BOUND_PHRASE, bound, size: T::size });
        self
    }

    /// Sets the greatest number, length or count.
    #[must_use]
    pub fn max(mut self, bound: f64) -> Self
    where
        T: BoundedField,
    {
        self.max =
            Some(FieldBound { keyword: T::MAX_KEYWORD, phrase: T::BOUND_PHRASE, bound, size: T::size });
        self
    }

    fn is_required(&self) -> bool {
        self.default.is_none() && (self.operations.absent)().is_none()
    }

    fn schema(&self) -> RawJson {
        let mut schema = JsonObject::new();
        (self.operations.describe)(&mut schema);
        for (keyword, text) in
            [("title", self.title), ("description", self.description), ("format", self.format)]
        {
            if let Some(text) = text {
                schema.set(keyword, RawJson::from_text(text));
            }
        }
        for bound in self.min.iter().chain(&self.max) {
            schema.set(bound.keyword, plain_number(bound.bound));
        }
        let default = self.default.map(|default| (self.operations.to_value)(&default()));
        if let Some(default) = default.filter(|default| !default.is_null()) {
            schema.set("default", default.into());
        }
        schema.to_raw()
    }

    fn read(&self, raw: Option<&RawJson>) -> Result<T, String> {
        let raw = raw.filter(|raw| raw.kind() != JsonKind::Null);
        let Some(raw) = raw else {
            let left_out = self.default.map(|default| default()).or_else(self.operations.absent);
            return left_out.ok_or_else(|| "is missing".to_owned());
        };
        let value: Value = raw.get().map_err(|error| error.to_string())?;
        let read = (self.operations.read)(&value)?;
        for (bound, words, beyond) in
            [(&self.min, "at least", Ordering::Less), (&self.max, "at most", Ordering::Greater)]
        {
            let Some(bound) = bound else { continue };
            let size = (bound.size)(&read);
            if size.and_then(|size| size.partial_cmp(&bound.bound)) == Some(beyond) {
                return Err(format!("must {} {words} {}", bound.phrase, bound.bound));
            }
        }
        Ok(read)
    }
}

impl<T> fmt::Debug for FieldDefinition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldDefinition").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Writes a whole number without its fraction.
fn plain_number(number: f64) -> RawJson {
    let text = number.to_string();
    RawJson::parse(text).unwrap_or(RawJson::NULL)
}

/// The schema of a form under construction; its fields keep their order.
#[derive(Debug, Default)]
pub struct FormSchema {
    properties: JsonObject,
    required: Vec<&'static str>,
}

impl FormSchema {
    /// Adds a field.
    #[must_use]
    pub fn with<T>(mut self, field: &FieldDefinition<T>) -> Self {
        self.properties.set(field.name, field.schema());
        if field.is_required() {
            self.required.push(field.name);
        }
        self
    }

    /// Returns the schema.
    pub fn finish(self) -> RawJson {
        let mut schema = JsonObject::new();
        schema.set("type", RawJson::from_text("object"));
        schema.set("properties", self.properties.to_raw());
        if !self.required.is_empty() {
            schema.set("required", Value::from(self.required).into());
        }
        schema.to_raw()
    }
}

/// What a user filled in.
#[derive(Debug)]
pub struct FormAnswers {
    members: JsonObject,
}

impl FormAnswers {
    /// Reads the answer to a form.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(content: &RawJson) -> Result<Self, String> {
        content.members().map(|members| Self { members }).map_err(|error| error.to_string())
    }

    /// Reads one field.
    ///
    /// # Errors
    /// A message that names the field.
    pub fn field<T>(&self, field: &FieldDefinition<T>) -> Result<T, String> {
        field.read(self.members.get(field.name)).map_err(|problem| format!("`{}` {problem}", field.name))
    }
}
