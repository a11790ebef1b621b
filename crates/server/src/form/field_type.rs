use serde_json::Value;
use trunkline_protocol::{JsonObject, RawJson};

use super::choice::FormChoice;

/// A type that a field of a form can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "a form cannot show this",
    note = "a field is text, a number, a boolean, an enum that derives `Form`, a `Vec` of such an enum, or an `Option` of \
            one of these"
)]
pub trait FormField: Sized {
    /// Adds the keywords of the type to the schema of a field.
    fn describe(schema: &mut JsonObject);

    /// Writes a value; `null` is none.
    fn to_value(&self) -> Value;

    /// Reads what the user filled in.
    ///
    /// # Errors
    /// What the field must be, without its name.
    fn read(value: &Value) -> Result<Self, String>;

    /// Returns the value of a field that was left out, if it may be left out.
    fn absent() -> Option<Self> {
        None
    }
}

/// A type with values that have a size which a form can bound: the number itself, or the length of text or of a list.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has nothing that `min` and `max` could bound",
    label = "has no size",
    note = "bounds are for numbers, for the length of text and for how many are chosen"
)]
pub trait BoundedField: FormField {
    /// The keyword of the lower bound.
    const MIN_KEYWORD: &'static str;
    /// The keyword of the upper bound.
    const MAX_KEYWORD: &'static str;

    /// What a value must do, before the words for a bound.
    const BOUND_PHRASE: &'static str;

    /// Measures a value, if there is one.
    fn size(&self) -> Option<f64>;
}

/// A type that is text, and may have a format.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text, so it has no format",
    label = "not text",
    note = "`format` is for `String` and `Option<String>`"
)]
pub trait TextField: FormField {}

impl FormField for String {
    fn describe(schema: &mut JsonObject) {
        schema.set("type", RawJson::from_text("string"));
    }

    fn to_value(&self) -> Value {
        self.as_str().into()
    }

    fn read(value: &Value) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| "must be text".to_owned())
    }
}

impl TextField for String {}

impl BoundedField for String {
    const MIN_KEYWORD: &'static str = "minLength";
    const MAX_KEYWORD: &'static str = "maxLength";
    const BOUND_PHRASE: &'static str = "have a length of";

    fn size(&self) -> Option<f64> {
        length(self.chars().count())
    }
}

impl FormField for bool {
    fn describe(schema: &mut JsonObject) {
        schema.set("type", RawJson::from_text("boolean"));
    }

    fn to_value(&self) -> Value {
        (*self).into()
    }

    fn read(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "must be true or false".to_owned())
    }
}

macro_rules! numbers {
    ($kind:literal, $words:literal: $($type:ty)*) => {
        $(impl FormField for $type {
            fn describe(schema: &mut JsonObject) {
                schema.set("type", RawJson::from_text($kind));
            }

            fn to_value(&self) -> Value {
                (*self).into()
            }

            fn read(value: &Value) -> Result<Self, String> {
                serde::Deserialize::deserialize(value).map_err(|_| $words.to_owned())
            }
        }

        impl BoundedField for $type {
            const MIN_KEYWORD: &'static str = "minimum";
            const MAX_KEYWORD: &'static str = "maximum";
            const BOUND_PHRASE: &'static str = "be";

            fn size(&self) -> Option<f64> {
                self.to_value().as_f64()
            }
        })*
    };
}

numbers!("integer", "must be an integer": i8 i16 i32 i64 isize);
numbers!("integer", "must be an integer that is not negative": u8 u16 u32 u64 usize);
numbers!("number", "must be a number": f32 f64);

impl<C: FormChoice> BoundedField for Vec<C> {
    const MIN_KEYWORD: &'static str = "minItems";
    const MAX_KEYWORD: &'static str = "maxItems";
    const BOUND_PHRASE: &'static str = "choose";

    fn size(&self) -> Option<f64> {
        length(self.len())
    }
}

/// A field that the user may leave empty.
impl<T: FormField> FormField for Option<T> {
    fn describe(schema: &mut JsonObject) {
        T::describe(schema);
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn read(value: &Value) -> Result<Self, String> {
        T::read(value).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: TextField> TextField for Option<T> {}

impl<T: BoundedField> BoundedField for Option<T> {
    const MIN_KEYWORD: &'static str = T::MIN_KEYWORD;
    const MAX_KEYWORD: &'static str = T::MAX_KEYWORD;
    const BOUND_PHRASE: &'static str = T::BOUND_PHRASE;

    fn size(&self) -> Option<f64> {
        self.as_ref().and_then(T::size)
    }
}

/// Returns a length as a number that bounds are compared with; one too great for that is greater than every bound.
fn length(count: usize) -> Option<f64> {
    Some(u32::try_from(count).map_or(f64::INFINITY, f64::from))
}
