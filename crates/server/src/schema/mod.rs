//! JSON Schemas made from types, and checks against schemas.

mod constraints;
mod form_schema;
mod validator;

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value};

pub(crate) use self::form_schema::form_schema;
pub(crate) use self::validator::SchemaValidator;

/// The schema of a type that arguments are read into.
#[derive(Debug)]
pub(crate) struct InputSchema {
    pub(crate) schema: Map<String, Value>,
    /// The schema forbids something that the type would let pass.
    pub(crate) is_stricter: bool,
    /// The type would let unknown properties pass, and the schema does not.
    pub(crate) checks_names: bool,
}

/// Marks a type that itself refuses unknown properties, so that the schema need not be checked for them. The
/// attribute macros add it, and it is removed before the schema is published.
const STRICT: &str = "x-trunkline-strict";

/// Makes the schema of a type that arguments are read into.
pub(crate) fn input<T: JsonSchema>() -> InputSchema {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = generate::<T>(settings);
    let is_stricter = match schema.remove(STRICT) {
        Some(_) => {
            let mut checked = schema.clone();
            checked.remove("additionalProperties");
            constraints::is_stricter_than_type(&Value::Object(checked))
        }
        None => constraints::is_stricter_than_type(&Value::Object(schema.clone())),
    };
    let checks_names = forbid_unknown_properties(&mut schema);
    // The protocol requires the keyword even where alternatives or a map already imply it.
    schema.entry("type").or_insert_with(|| "object".into());
    drop_machine_formats(&mut schema);
    InputSchema { schema, is_stricter, checks_names }
}

/// Forbids properties that the type does not name: a misspelt optional argument would otherwise be ignored. Reports
/// whether the schema had to be changed for it.
///
/// A type that takes any properties has a schema for them, or alternatives with their own properties.
fn forbid_unknown_properties(schema: &mut Map<String, Value>) -> bool {
    const OPEN: [&str; 9] = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "oneOf",
        "anyOf",
        "allOf",
        "if",
        "$ref",
        "$dynamicRef",
    ];
    let is_closed = schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.contains_key("properties")
        && !OPEN.iter().any(|keyword| schema.contains_key(*keyword));
    if is_closed {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    is_closed
}

/// Makes the schema of a type that results are written from, if it has any constraint.
pub(crate) fn output<T: JsonSchema>() -> Option<Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = generate::<T>(settings);
    drop_machine_formats(&mut schema);
    (!schema.is_empty()).then_some(Value::Object(schema))
}

/// Makes a schema without references where the type allows: many models and clients do not follow them.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        // 2020-12 is the default dialect of the protocol, so it need not be named.
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type means nothing to a model.
    if schema.get("title").and_then(Value::as_str) == Some(&T::schema_name()) {
        schema.remove("title");
    }
    std::mem::take(schema.ensure_object())
}

/// Drops formats such as `int64`, which JSON Schema does not define and which strict validators refuse.
fn drop_machine_formats(schema: &mut Map<String, Value>) {
    let mut whole = Schema::from(std::mem::take(schema));
    DropMachineFormats.transform(&mut whole);
    *schema = std::mem::take(whole.ensure_object());
}

struct DropMachineFormats;

impl Transform for DropMachineFormats {
    fn transform(&mut self, schema: &mut Schema) {
        if schema.get("format").and_then(Value::as_str).is_some_and(is_machine_format) {
            schema.remove("format");
        }
        transform_subschemas(self, schema);
    }
}

fn is_machine_format(format: &str) -> bool {
    let integer = format.strip_prefix('u').unwrap_or(format).strip_prefix("int");
    matches!(integer, Some("" | "8" | "16" | "32" | "64" | "128")) || matches!(format, "float" | "double")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::function::NoArguments;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct SearchArguments {
        /// What to look for.
        query: String,
        limit: Option<u32>,
        place: SearchPlace,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct SearchPlace {
        latitude: f64,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct RecursiveTree {
        children: Vec<RecursiveTree>,
    }

    #[test]
    fn input_schemas_are_inlined_without_references() {
        let schema = input::<SearchArguments>();
        assert_eq!(
            Value::Object(schema.schema),
            json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "What to look for." },
                    "limit": { "type": ["integer", "null"], "minimum": 0 },
                    "place": {
                        "type": "object",
                        "properties": { "latitude": { "type": "number" } },
                        "required": ["latitude"],
                    },
                },
                "required": ["query", "place"],
                "additionalProperties": false,
            })
        );
        assert!(!schema.is_stricter && schema.checks_names);
    }

    #[test]
    fn input_schemas_always_have_type_object() {
        assert_eq!(input::<Value>().schema.get("type"), Some(&json!("object")));
        let map = input::<BTreeMap<String, String>>().schema;
        assert_eq!(
            Value::Object(map),
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        );
        let none = Value::Object(input::<NoArguments>().schema);
        assert_eq!(none, json!({ "type": "object", "additionalProperties": false }));
    }

    #[test]
    fn recursive_type_has_a_schema_that_compiles() {
        let schema = Value::Object(input::<RecursiveTree>().schema);
        let check = SchemaValidator::compile(&schema).unwrap();
        assert!(check.violation(&json!({ "children": [{ "children": [] }] })).is_none());
        assert!(check.violation(&json!({ "children": [{ "children": 1 }] })).is_some());
    }

    #[test]
    fn unconstrained_type_has_no_output_schema() {
        assert_eq!(output::<Value>(), None);
        assert_eq!(output::<i64>(), Some(json!({ "type": "integer" })));
    }
}
