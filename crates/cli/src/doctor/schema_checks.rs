use jsonschema::Draft;
use serde_json::Value;
use trunkline_protocol::RawJson;
use trunkline_protocol::mirror::MirroredParams;

use super::finding::Findings;
use crate::schema::{JsonType, ValueShape};

/// How deep schemas are looked through for references.
const MAX_DEPTH: usize = 32;

/// Looks at the schema of a tool's arguments.
pub(super) fn check_input(schema: &RawJson, findings: &mut Findings) {
    let Ok(value) = schema.get::<Value>() else {
        findings.problem("cannot parse its inputSchema");
        return;
    };
    if value.get("type").and_then(Value::as_str) != Some("object") {
        findings.problem("its inputSchema needs \"type\": \"object\"");
    }
    check_schema("inputSchema", &value, findings);
    if let Err(error) = MirroredParams::from_schema(&value) {
        findings.problem(format!("modern HTTP clients skip it: {error}"));
    }
    for combinator in ["anyOf", "oneOf", "allOf"] {
        if value.get(combinator).is_some() {
            findings.warning(format!(
                "its inputSchema has {combinator} at the top level, which some models reject"
            ));
        }
    }
    check_properties(&value, &ValueShape::from_schema(schema), findings);
}

/// Looks at the schema of a tool's result.
pub(super) fn check_output(schema: &RawJson, findings: &mut Findings) {
    match schema.get::<Value>() {
        Ok(value) => check_schema("outputSchema", &value, findings),
        Err(_) => findings.problem("cannot parse its outputSchema"),
    }
}

fn check_schema(which: &str, schema: &Value, findings: &mut Findings) {
    let mut elsewhere = Vec::new();
    collect_references(schema, 0, &mut elsewhere);
    elsewhere.sort_unstable();
    elsewhere.dedup();
    for reference in &elsewhere {
        findings.warning(format!("its {which} refers to {reference}, which clients do not fetch"));
    }
    let dialect = schema.get("$schema").map(|dialect| dialect.as_str().unwrap_or_default());
    if let Some(dialect) = dialect.filter(|dialect| Draft::from_schema_uri(dialect) == Draft::Unknown) {
        findings.warning(format!("its {which} has an unknown dialect: {dialect:?}"));
        return;
    }
    let mut options = jsonschema::options().offline();
    if dialect.is_none() {
        options = options.with_draft(Draft::Draft202012);
    }
    // An external reference was reported already, and alone prevents compilation.
    if elsewhere.is_empty()
        && let Err(error) = options.build(schema)
    {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
        findings.problem(format!("its {which} is not a valid JSON Schema{place}: {error}"));
    }
}

fn collect_references<'s>(schema: &'s Value, depth: usize, elsewhere: &mut Vec<&'s str>) {
    if depth > MAX_DEPTH {
        return;
    }
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(reference) if matches!(key.as_str(), "$ref" | "$dynamicRef") => {
                        elsewhere.extend((!reference.starts_with('#')).then_some(reference));
                    }
                    _ => collect_references(value, depth + 1, elsewhere),
                }
            }
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect_references(element, depth + 1, elsewhere));
        }
        _ => {}
    }
}

fn check_properties(schema: &Value, shape: &ValueShape, findings: &mut Findings) {
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if shape.property(name).is_none() && !shape.allows_additional {
            findings.problem(format!("required argument `{name}` is not in properties"));
        }
    }
    for property in &shape.properties {
        let inner = &property.shape;
        if inner.types.is_empty() && inner.choices.is_empty() {
            findings.warning(format!("argument `{}` has no type", property.name));
        }
        if inner.is_exactly(JsonType::Array) && inner.items.is_none() {
            findings.warning(format!("argument `{}` is an array without an item type", property.name));
        }
        findings.check_hidden(&format!("argument `{}`", property.name), &property.name);
        findings.check_hidden(
            &format!("the description of argument `{}`", property.name),
            inner.description.as_deref().unwrap_or_default(),
        );
    }
    let described = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    let silent = shape.properties.iter().filter(|property| !described(&property.shape.description)).count();
    if silent > 0 {
        findings.note(format!("{silent} of {} arguments have no description", shape.properties.len()));
    }
}
