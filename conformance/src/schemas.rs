//! Tools that test the schemas of arguments.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::prelude::*;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("json_schema_2020_12_tool")
            .description("Takes arguments whose schema uses much of JSON Schema 2020-12.")
            .input_schema(contact_schema())
            .run_raw(async |_, arguments| format!("received {arguments}")),
        Tool::new("test_custom_header")
            .description("Takes an argument that modern clients repeat in the header `Mcp-Param-Value`.")
            .mirror("value", "Value")
            .run(async |Mirrored { value }| format!("received {value}")),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Mirrored {
    /// What the header repeats.
    value: String,
}

fn contact_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
