use serde_json::Value;

/// Keywords that forbid values which a Rust type of the same shape would accept.
const CONSTRAINT_KEYWORDS: [&str; 31] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "enum",
    "const",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "$dynamicRef",
    "contentSchema",
];

/// Keywords with a value that is not a schema, so that nested keywords have no meaning.
const DATA_KEYWORDS: [&str; 5] = ["default", "examples", "required", "description", "title"];

/// Reports whether a schema made from a type is stricter than the type.
pub(super) fn is_stricter_than_type(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return schema == &Value::Bool(false) };
    members.iter().any(|(keyword, value)| match keyword.as_str() {
        // Here the keys are names of properties and not keywords.
        "properties" | "$defs" => {
            value.as_object().is_some_and(|schemas| schemas.values().any(is_stricter_than_type))
        }
        "minimum" | "maximum" => !is_bound_of_type(schema, keyword, value),
        "anyOf" => !is_option(value),
        keyword if CONSTRAINT_KEYWORDS.contains(&keyword) => true,
        keyword if DATA_KEYWORDS.contains(&keyword) => false,
        "additionalProperties" => is_stricter_than_type(value),
        _ => match value {
            Value::Object(_) => is_stricter_than_type(value),
            Value::Array(schemas) => {
                schemas.iter().any(|schema| schema.is_object() && is_stricter_than_type(schema))
            }
            _ => false,
        },
    })
}

/// Reports whether a bound is that of the integer type which the format names.
fn is_bound_of_type(schema: &Value, keyword: &str, bound: &Value) -> bool {
    let (least, greatest) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Some("int16") => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Some("uint8") => (0, i64::from(u8::MAX)),
        Some("uint16") => (0, i64::from(u16::MAX)),
        Some("uint32" | "uint64" | "uint128" | "uint") => return keyword == "minimum" && bound == 0,
        _ => return false,
    };
    *bound == if keyword == "minimum" { least } else { greatest }
}

/// Reports whether alternatives are those of an optional value: a schema no stricter than its type, or null.
fn is_option(alternatives: &Value) -> bool {
    let null = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("null");
    let Some([first, second]) = alternatives.as_array().map(Vec::as_slice) else { return false };
    let other = if null(&first) { second } else { first };
    (null(&first) || null(&second)) && !is_stricter_than_type(other)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct UnconstrainedType {
        byte: u8,
        small: i16,
        count: u64,
        name: Option<String>,
        maximum: Vec<i64>,
        inner: Option<Box<UnconstrainedType>>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct RangedType {
        #[schemars(range(min = 1, max = 10))]
        level: u8,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct NestedType {
        items: Vec<RangedType>,
    }

    #[test]
    fn schemas_of_plain_types_are_no_stricter_than_the_types() {
        assert!(
            !crate::schema::input::<UnconstrainedType>().is_stricter,
            "{:?}",
            crate::schema::input::<UnconstrainedType>()
        );
        assert!(crate::schema::input::<RangedType>().is_stricter);
        assert!(crate::schema::input::<NestedType>().is_stricter);
    }

    #[test]
    fn schema_constraints_are_found_at_any_depth() {
        for (schema, expected) in [
            (json!({ "type": "object", "properties": { "pattern": { "type": "string" } } }), false),
            (json!({ "properties": { "a": { "type": "string", "pattern": "^x" } } }), true),
            (json!({ "properties": { "a": { "type": "integer", "minimum": 0 } } }), true),
            (json!({ "properties": { "a": { "type": "integer", "format": "uint", "minimum": 0 } } }), false),
            (json!({ "properties": { "a": { "default": { "pattern": "x" } } } }), false),
            (json!({ "additionalProperties": false }), true),
            (json!({ "additionalProperties": true }), false),
            (json!({ "additionalProperties": { "type": "string" } }), false),
            (json!({ "additionalProperties": { "type": "string", "maxLength": 3 } }), true),
            (json!({ "items": { "enum": ["a"] } }), true),
            (json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] }), false),
            (json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] }), true),
            (
                json!({ "$defs": { "A": { "multipleOf": 2 } }, "properties": { "a": { "$ref": "#/$defs/A" } } }),
                true,
            ),
        ] {
            assert_eq!(is_stricter_than_type(&schema), expected, "{schema}");
        }
    }
}
