use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::access::AccessRule;
use crate::call_rate::CallLimits;
use crate::file::SECTIONS;
use crate::limits::MAX_ACCESS_RULES;
use crate::server::ServerTable;

/// Returns the JSON Schema of `trunkline.toml`, for editors that check and complete.
///
/// `others` has the schemas of the sections that other crates decode, by name. A section without a schema may be any
/// table.
pub fn schema<S: Into<Value>>(others: impl IntoIterator<Item = (&'static str, S)>) -> Value {
    let mut generator = SchemaGenerator::default();
    let server = generator.subschema_for::<ServerTable>();
    let access = generator.subschema_for::<AccessRule>();
    let limits = generator.subschema_for::<CallLimits>();
    let mut properties = Map::new();
    for section in SECTIONS {
        properties.insert((*section).to_owned(), json!({ "type": "object" }));
    }
    properties.extend(others.into_iter().map(|(section, schema)| (section.to_owned(), schema.into())));
    properties.insert(
        "servers".to_owned(),
        json!({
            "description": "Servers, by name.",
            "type": "object",
            "additionalProperties": server,
        }),
    );
    properties.insert("limits".to_owned(), limits.into());
    properties.insert(
        "env".to_owned(),
        json!({
            "description": "Environment variables of all programs, unless they set them themselves.",
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
    );
    properties.insert(
        "access".to_owned(),
        json!({
            "description": "Access rules; the first that matches decides, and what none allows is denied.",
            "type": "array",
            "maxItems": MAX_ACCESS_RULES,
            "items": access,
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trunkline.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": generator.definitions(),
    })
}
