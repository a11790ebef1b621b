use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use trunkline_protocol::RawJson;

/// Makes the schema of a form: an object of plain fields, without references, nulls or others that a form cannot
/// show.
///
/// A field that a form cannot show is left out and logged. A type that requires the field then never accepts a
/// response, which the first test of its author shows.
pub(crate) fn form_schema<T: JsonSchema>() -> RawJson {
    let schema = super::generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    let given = schema.get("properties").and_then(Value::as_object);
    let mut properties = Map::new();
    for (name, property) in given.into_iter().flatten() {
        match plain_field(property) {
            Some(field) => drop(properties.insert(name.clone(), field)),
            None => tracing::error!(form = %T::schema_name(), field = %name, "a form cannot show this field"),
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<_> =
        required.filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name))).collect();
    let mut form = json!({ "type": "object", "properties": properties });
    if let (Some(form), false) = (form.as_object_mut(), required.is_empty()) {
        form.insert("required".to_owned(), json!(required));
    }
    form.into()
}

/// Reduces a property to what a form can show, if it can show the property at all.
fn plain_field(property: &Value) -> Option<Value> {
    let outer = property.as_object()?;
    // `Option<T>`: the form shows the field of a `T`, and the user may leave it empty.
    let mut field = match outer.get("anyOf").and_then(Value::as_array) {
        None => outer.clone(),
        Some(alternatives) => {
            let mut field = sole(alternatives.iter().filter(|schema| !is_null(schema)))?.as_object()?.clone();
            field.extend(
                outer
                    .iter()
                    .filter(|(key, _)| *key != "anyOf")
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            field
        }
    };
    if field.get("default").is_some_and(Value::is_null) {
        field.remove("default");
    }
    titled_choices(&mut field);
    let kind = kind_of(&field)?;
    let kept: &[&str] = match kind.as_str() {
        "string" => &["minLength", "maxLength", "pattern", "format", "enum", "enumNames", "oneOf"],
        "integer" | "number" => &["minimum", "maximum"],
        "boolean" => &[],
        "array" => {
            let choices = plain_field(field.get("items")?)?;
            field.insert("items".to_owned(), several_choices(&choices)?);
            &["items", "minItems", "maxItems"]
        }
        _ => return None,
    };
    field.retain(|key, _| {
        kept.contains(&key.as_str()) || ["title", "description", "default"].contains(&key.as_str())
    });
    drop_unknown_format(&mut field);
    if let Some(Value::Array(choices)) = field.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    field.insert("type".to_owned(), kind.into());
    Some(Value::Object(field))
}

/// Returns the one type of a field, leaving out `null`.
fn kind_of(field: &Map<String, Value>) -> Option<String> {
    let kind = match field.get("type")? {
        Value::Array(kinds) => sole(kinds.iter().filter(|kind| **kind != "null"))?,
        kind => kind,
    };
    kind.as_str().map(str::to_owned)
}

/// Turns the alternatives of an enum with described variants into choices with titles.
fn titled_choices(field: &mut Map<String, Value>) {
    let Some(alternatives) = field.get("oneOf").and_then(Value::as_array) else { return };
    let choice = |schema: &Value| {
        let value = schema.get("const")?.as_str()?;
        let title =
            ["title", "description"].iter().find_map(|key| schema.get(key)?.as_str()).unwrap_or(value);
        Some(json!({ "const": value, "title": title }))
    };
    // Variants without descriptions come together as one `enum` among the alternatives.
    let choices = alternatives.iter().map(|schema| match schema.get("enum").and_then(Value::as_array) {
        Some(values) => values.iter().map(|value| choice(&json!({ "const": value }))).collect(),
        None => choice(schema).map(|choice| vec![choice]),
    });
    match choices.collect::<Option<Vec<Vec<_>>>>() {
        Some(choices) => {
            field.insert("oneOf".to_owned(), choices.concat().into());
            field.insert("type".to_owned(), "string".into());
        }
        // Not choices, so nothing that a form can show.
        None => drop(field.remove("type")),
    }
}

/// Turns the choices of one item into those of several.
fn several_choices(choices: &Value) -> Option<Value> {
    match (choices.get("enum"), choices.get("oneOf")) {
        (Some(values), None) => Some(json!({ "type": "string", "enum": values })),
        (None, Some(titled)) => Some(json!({ "anyOf": titled })),
        _ => None,
    }
}

fn drop_unknown_format(field: &mut Map<String, Value>) {
    let known = |format: &Value| ["email", "uri", "date", "date-time"].iter().any(|known| format == known);
    if !field.get("format").is_some_and(known) {
        field.remove("format");
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Returns the only item, if there is exactly one.
fn sole<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let only = items.next()?;
    items.next().is_none().then_some(only)
}

#[cfg(test)]
#[expect(dead_code, reason = "only the schemas matter")]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    enum OrderSize {
        Small,
        Large,
    }

    #[derive(JsonSchema)]
    enum OrderColour {
        /// Like the sky.
        Blue,
        Red,
        Green,
    }

    #[derive(JsonSchema)]
    struct OrderForm {
        /// Who orders.
        name: String,
        #[schemars(email)]
        address: Option<String>,
        #[schemars(range(min = 1, max = 9))]
        pieces: u8,
        gift: bool,
        size: OrderSize,
        other_size: Option<OrderSize>,
        colour: Option<OrderColour>,
        colours: Vec<OrderColour>,
        price: Option<f32>,
        history: Vec<String>,
    }

    #[test]
    fn form_schema_contains_only_supported_fields() {
        let schema: Value = form_schema::<OrderForm>().decode().unwrap();
        let colours = json!([
            { "const": "Red", "title": "Red" },
            { "const": "Green", "title": "Green" },
            { "const": "Blue", "title": "Like the sky." },
        ]);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Who orders." },
                    "address": { "type": "string", "format": "email" },
                    "pieces": { "type": "integer", "minimum": 1, "maximum": 9 },
                    "gift": { "type": "boolean" },
                    "size": { "type": "string", "enum": ["Small", "Large"] },
                    "other_size": { "type": "string", "enum": ["Small", "Large"] },
                    "colour": { "type": "string", "oneOf": colours },
                    "colours": { "type": "array", "items": { "anyOf": colours } },
                    "price": { "type": "number" },
                },
                "required": ["name", "pieces", "gift", "size", "colours"],
            })
        );
    }

    #[test]
    fn non_object_type_makes_an_empty_form_schema() {
        assert_eq!(form_schema::<String>().as_str(), r#"{"properties":{},"type":"object"}"#);
    }
}
