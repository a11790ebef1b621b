//! The official schemas, one for each revision.

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;

const DEFINITIONS: [&str; 5] = [
    "ListToolsResult",
    "ListPromptsResult",
    "ListResourcesResult",
    "ListResourceTemplatesResult",
    "CallToolResult",
];

static VALIDATORS: LazyLock<HashMap<(Revision, &str), Validator>> = LazyLock::new(|| {
    let schemas = [
        (Revision::V2024_11_05, include_str!("../../../protocol/tests/schemas/2024-11-05.json")),
        (Revision::V2025_03_26, include_str!("../../../protocol/tests/schemas/2025-03-26.json")),
        (Revision::V2025_06_18, include_str!("../../../protocol/tests/schemas/2025-06-18.json")),
        (Revision::V2025_11_25, include_str!("../../../protocol/tests/schemas/2025-11-25.json")),
        (Revision::V2026_07_28, include_str!("../../../protocol/tests/schemas/2026-07-28.json")),
    ];
    let each = schemas.into_iter().flat_map(|(revision, text)| {
        let schema: Value = serde_json::from_str(text).unwrap();
        DEFINITIONS.map(|name| ((revision, name), validator(&schema, name)))
    });
    each.collect()
});

fn validator(schema: &Value, definition: &str) -> Validator {
    let definitions = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    let mut root = schema.clone();
    root["$ref"] = json!(format!("#/{definitions}/{definition}"));
    jsonschema::options().should_validate_formats(false).build(&root).unwrap()
}

/// Holds a result against a definition of a revision.
#[track_caller]
pub(crate) fn assert_valid(revision: Revision, definition: &'static str, result: &Value) {
    let errors = VALIDATORS[&(revision, definition)].iter_errors(result);
    let told: Vec<_> = errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(told.is_empty(), "{definition} of {revision}: {told:?}");
}
