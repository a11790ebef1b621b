use serde_json::{Value, json};
use trunkline_protocol::{JsonObject, RawJson};

use super::field_type::FormField;

/// An enum with variants that a user chooses from: what `#[derive(Form)]` makes of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a choice of a form",
    label = "not a choice",
    note = "put `#[derive(Form)]` on an enum whose variants have no data"
)]
pub trait FormChoice: Sized {
    /// The value of each variant, and its title if that differs.
    const CHOICES: &'static [(&'static str, Option<&'static str>)];

    /// Returns the value of the variant.
    fn value(&self) -> &'static str;

    /// Returns the variant with a value.
    fn from_value(value: &str) -> Option<Self>;
}

fn has_titles<C: FormChoice>() -> bool {
    C::CHOICES.iter().any(|(_, title)| title.is_some())
}

fn values<C: FormChoice>() -> RawJson {
    C::CHOICES.iter().map(|(value, _)| Value::from(*value)).collect::<Value>().into()
}

fn titled<C: FormChoice>() -> RawJson {
    let choices = C::CHOICES.iter();
    choices
        .map(|(value, title)| json!({ "const": value, "title": title.unwrap_or(value) }))
        .collect::<Value>()
        .into()
}

fn read_choice<C: FormChoice>(value: &Value) -> Result<C, String> {
    value.as_str().and_then(C::from_value).ok_or_else(|| {
        let names: Vec<_> = C::CHOICES.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("must be one of {}", names.join(", "))
    })
}

#[diagnostic::do_not_recommend]
impl<C: FormChoice> FormField for C {
    fn describe(schema: &mut JsonObject) {
        schema.set("type", RawJson::from_text("string"));
        if has_titles::<C>() {
            schema.set("oneOf", titled::<C>());
        } else {
            schema.set("enum", values::<C>());
        }
    }

    fn to_value(&self) -> Value {
        self.value().into()
    }

    fn read(value: &Value) -> Result<Self, String> {
        read_choice(value)
    }
}

/// Several of the choices.
impl<C: FormChoice> FormField for Vec<C> {
    fn describe(schema: &mut JsonObject) {
        let mut items = JsonObject::new();
        if has_titles::<C>() {
            items.set("anyOf", titled::<C>());
        } else {
            items.set("type", RawJson::from_text("string"));
            items.set("enum", values::<C>());
        }
        schema.set("type", RawJson::from_text("array"));
        schema.set("items", items.to_raw());
    }

    fn to_value(&self) -> Value {
        self.iter().map(FormChoice::value).collect()
    }

    fn read(value: &Value) -> Result<Self, String> {
        let chosen = value.as_array().ok_or_else(|| "must be a list".to_owned())?;
        chosen.iter().map(read_choice).collect()
    }
}
