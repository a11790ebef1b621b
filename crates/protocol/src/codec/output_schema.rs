//! Output schemas for dialects in which structured content is always an object.
//!
//! Results in those dialects leave objects as they are and wrap every other value as `{"result": value}`. The schema must
//! describe the same values, so it depends on what the original schema allows: only objects, no objects, or both.
//!
//! See [Output Schema](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema).

use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};

/// The deepest nesting that is rewritten; deeper values are copied verbatim.
const MAX_REBASE_DEPTH: usize = 64;
/// The most schemas visited to distinguish objects from other values; references may be circular.
const MAX_SCHEMA_VISITS: usize = 256;

/// Rewrites an output schema, if necessary, for a dialect with structured content that is always an object.
pub(crate) fn narrow_output_schema(schema: &RawJson) -> Option<RawJson> {
    let members = schema.members().ok();
    if members.as_ref().and_then(|members| members.text("type")).as_deref() == Some("object") {
        return None;
    }
    let members = members.unwrap_or_default();
    match objects_among(schema, schema, &mut { MAX_SCHEMA_VISITS }) {
        ObjectCoverage::All => Some(with_type(members)),
        ObjectCoverage::None => Some(wrapped(schema, members)),
        ObjectCoverage::Some => Some(either(schema, members)),
    }
}

/// How many of the values that a schema allows are objects, as far as the schema determines it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjectCoverage {
    All,
    None,
    Some,
}

fn objects_among(schema: &RawJson, root: &RawJson, looks: &mut usize) -> ObjectCoverage {
    let Some((members, left)) = schema.members().ok().zip(looks.checked_sub(1)) else {
        return ObjectCoverage::Some;
    };
    *looks = left;
    if let Some(by_type) = members.get("type").and_then(objects_among_types) {
        return by_type;
    }
    if let Some(target) = members.text("$ref").and_then(|reference| resolve(&reference, root)) {
        return objects_among(&target, root, looks);
    }
    for combinator in ["oneOf", "anyOf"] {
        if let Some(branches) = members.get(combinator).and_then(|raw| raw.elements().ok()) {
            return merge(branches.iter().map(|branch| objects_among(branch, root, looks)));
        }
    }
    let parts = members.get("allOf").and_then(|raw| raw.elements().ok()).unwrap_or_default();
    let mut sure = parts
        .iter()
        .map(|part| objects_among(part, root, looks))
        .filter(|part| *part != ObjectCoverage::Some);
    sure.next().unwrap_or(ObjectCoverage::Some)
}

fn objects_among_types(types: &RawJson) -> Option<ObjectCoverage> {
    let of = |name: &str| if name == "object" { ObjectCoverage::All } else { ObjectCoverage::None };
    match types.kind() {
        JsonKind::String => types.as_text().map(|name| of(&name)),
        JsonKind::Array => {
            types.get::<Vec<String>>().ok().map(|names| merge(names.iter().map(|name| of(name))))
        }
        _ => None,
    }
}

fn merge(mut parts: impl Iterator<Item = ObjectCoverage>) -> ObjectCoverage {
    let first = parts.next().unwrap_or(ObjectCoverage::Some);
    if parts.all(|part| part == first) { first } else { ObjectCoverage::Some }
}

/// Follows a reference within the document.
fn resolve(reference: &str, root: &RawJson) -> Option<RawJson> {
    let mut at = root.clone();
    for token in reference.strip_prefix("#/")?.split('/') {
        at = at.members().ok()?.take(&token.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(at)
}

/// Adds `"type": "object"` to a schema that allows only objects.
fn with_type(mut members: JsonObject) -> RawJson {
    members.take("type");
    write_object(|writer| {
        writer.verbatim(r#""type":"object""#);
        members.write_into(writer);
    })
}

/// `{"type":"object","properties":{"result":S},"required":["result"]}`
fn wrapped(schema: &RawJson, mut members: JsonObject) -> RawJson {
    let dialect = members.take("$schema");
    let inner = if dialect.is_some() { members.to_raw() } else { schema.clone() };
    write_object(|writer| {
        write_dialect(dialect.as_ref(), writer);
        writer.verbatim(r#""type":"object","properties":{"result":"#);
        writer.raw(&rebase(&inner, "#/properties/result"));
        writer.close_object();
        writer.verbatim(r#""required":["result"]"#);
    })
}

/// Writes the schema of an object as it was, or of another value wrapped.
fn either(schema: &RawJson, mut members: JsonObject) -> RawJson {
    let dialect = members.take("$schema");
    let inner = if dialect.is_some() { members.to_raw() } else { schema.clone() };
    write_object(|writer| {
        write_dialect(dialect.as_ref(), writer);
        writer.verbatim(r#""type":"object","anyOf":["#);
        writer.raw(&rebase(&inner, "#/anyOf/0"));
        writer.verbatim(
            r##"{"type":"object","properties":{"result":{"$ref":"#/anyOf/0"}},"required":["result"]}"##,
        );
        writer.close_array();
    })
}

fn write_dialect(dialect: Option<&RawJson>, writer: &mut JsonWriter) {
    if let Some(dialect) = dialect {
        writer.member("$schema", dialect);
    }
}

fn write_object(fill: impl FnOnce(&mut JsonWriter)) -> RawJson {
    let mut writer = JsonWriter::with_capacity(256);
    writer.open_object();
    fill(&mut writer);
    writer.close_object();
    writer.into_raw()
}

/// The role of a value within a schema.
#[derive(Clone, Copy)]
enum SchemaPosition {
    /// A schema, or an array of them.
    Schema,
    /// An object that maps names to schemas.
    Named,
}

/// Rewrites references to the document's root to `base`, the new position of the schema.
fn rebase(schema: &RawJson, base: &str) -> RawJson {
    rebased(schema, base, SchemaPosition::Schema, MAX_REBASE_DEPTH).unwrap_or_else(|| schema.clone())
}

/// Returns the rewritten value, or `None` if nothing changed.
fn rebased(value: &RawJson, base: &str, position: SchemaPosition, depth: usize) -> Option<RawJson> {
    let depth = depth.checked_sub(1)?;
    match value.kind() {
        JsonKind::Object => {
            let mut members = value.members().ok()?;
            if matches!(position, SchemaPosition::Schema) && has_own_id(&members) {
                // References in here start at this schema, wherever it is.
                return None;
            }
            let changes: Vec<_> = members
                .iter()
                .filter_map(|(key, value)| {
                    Some((key.clone(), rebased_member(key, value, base, position, depth)?))
                })
                .collect();
            if changes.is_empty() {
                return None;
            }
            for (key, value) in changes {
                members.set(key, value);
            }
            Some(members.to_raw())
        }
        JsonKind::Array => {
            let elements = value.elements().ok()?;
            let changed: Vec<_> = elements
                .iter()
                .map(|element| rebased(element, base, SchemaPosition::Schema, depth))
                .collect();
            if changed.iter().all(Option::is_none) {
                return None;
            }
            let mut writer = JsonWriter::with_capacity(value.as_str().len() + 64);
            writer.open_array();
            for (element, changed) in elements.iter().zip(&changed) {
                writer.raw(changed.as_ref().unwrap_or(element));
            }
            writer.close_array();
            Some(writer.into_raw())
        }
        _ => None,
    }
}

fn rebased_member(
    key: &str,
    value: &RawJson,
    base: &str,
    position: SchemaPosition,
    depth: usize,
) -> Option<RawJson> {
    // Among names, every key is a name.
    let keyword = if matches!(position, SchemaPosition::Schema) { key } else { "" };
    match keyword {
        "$ref" | "$dynamicRef" => {
            let reference = value.as_text()?;
            let pointer = reference.strip_prefix('#')?;
            // `#name` is an anchor, and anchors do not depend on the position.
            (pointer.is_empty() || pointer.starts_with('/'))
                .then(|| RawJson::from_text(&format!("{base}{pointer}")))
        }
        // Data, in which `$ref` would mean nothing.
        "const" | "enum" | "default" | "examples" => None,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            rebased(value, base, SchemaPosition::Named, depth)
        }
        _ => rebased(value, base, SchemaPosition::Schema, depth),
    }
}

fn has_own_id(schema: &JsonObject) -> bool {
    schema.text("$id").is_some_and(|id| !id.starts_with('#'))
}
