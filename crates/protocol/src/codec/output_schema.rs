//! Output schemas for dialects in which structured content is always an object.
//!
//! Results in those dialects leave objects as they are and wrap every other value as `{"result": value}`. The schema must
//! say the same, so it depends on what the original schema lets through: only objects, no objects, or both.

use crate::json::{JsonKind, Members, Raw, Writer};

/// The deepest nesting that is looked into; what lies deeper is copied as it is.
const DEPTH: usize = 64;
/// The most schemas that are looked at to tell objects from other values; references may come in circles.
const LOOKS: usize = 256;

/// Rewrites an output schema for a dialect whose structured content is always an object, if it has to be.
pub(crate) fn narrow_output_schema(schema: &Raw) -> Option<Raw> {
    let members = schema.members().ok();
    if members.as_ref().and_then(|members| members.text("type")).as_deref() == Some("object") {
        return None;
    }
    let members = members.unwrap_or_default();
    match objects_among(schema, schema, &mut { LOOKS }) {
        Objects::All => Some(with_type(members)),
        Objects::None => Some(wrapped(schema, members)),
        Objects::Some => Some(either(schema, members)),
    }
}

/// How many of the values that a schema allows are objects, as far as one can tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    All,
    None,
    Some,
}

fn objects_among(schema: &Raw, root: &Raw, looks: &mut usize) -> Objects {
    let Some((members, left)) = schema.members().ok().zip(looks.checked_sub(1)) else { return Objects::Some };
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
    let mut sure =
        parts.iter().map(|part| objects_among(part, root, looks)).filter(|part| *part != Objects::Some);
    sure.next().unwrap_or(Objects::Some)
}

fn objects_among_types(types: &Raw) -> Option<Objects> {
    let of = |name: &str| if name == "object" { Objects::All } else { Objects::None };
    match types.kind() {
        JsonKind::String => types.as_text().map(|name| of(&name)),
        JsonKind::Array => {
            types.get::<Vec<String>>().ok().map(|names| merge(names.iter().map(|name| of(name))))
        }
        _ => None,
    }
}

fn merge(mut parts: impl Iterator<Item = Objects>) -> Objects {
    let first = parts.next().unwrap_or(Objects::Some);
    if parts.all(|part| part == first) { first } else { Objects::Some }
}

/// Follows a reference within the document.
fn resolve(reference: &str, root: &Raw) -> Option<Raw> {
    let mut at = root.clone();
    for token in reference.strip_prefix("#/")?.split('/') {
        at = at.members().ok()?.take(&token.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(at)
}

/// Says that the values are objects, which they were anyway.
fn with_type(mut members: Members) -> Raw {
    members.take("type");
    write_object(|writer| {
        writer.verbatim(r#""type":"object""#);
        members.write_into(writer);
    })
}

/// `{"type":"object","properties":{"result":S},"required":["result"]}`
fn wrapped(schema: &Raw, mut members: Members) -> Raw {
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

/// An object as it was, or another value wrapped.
fn either(schema: &Raw, mut members: Members) -> Raw {
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

fn write_dialect(dialect: Option<&Raw>, writer: &mut Writer) {
    if let Some(dialect) = dialect {
        writer.member("$schema", dialect);
    }
}

fn write_object(fill: impl FnOnce(&mut Writer)) -> Raw {
    let mut writer = Writer::with_capacity(256);
    writer.open_object();
    fill(&mut writer);
    writer.close_object();
    writer.into_raw()
}

/// What a value within a schema is.
#[derive(Clone, Copy)]
enum Place {
    /// A schema, or an array of them.
    Schema,
    /// An object whose keys are names and whose values are schemas.
    Named,
}

/// Makes references to the document's root point to `base`, where the schema now is.
fn rebase(schema: &Raw, base: &str) -> Raw {
    rebased(schema, base, Place::Schema, DEPTH).unwrap_or_else(|| schema.clone())
}

/// Returns the rewritten value, or nothing if there was nothing to rewrite.
fn rebased(value: &Raw, base: &str, place: Place, depth: usize) -> Option<Raw> {
    let depth = depth.checked_sub(1)?;
    match value.kind() {
        JsonKind::Object => {
            let mut members = value.members().ok()?;
            if matches!(place, Place::Schema) && has_own_id(&members) {
                // References in here start at this schema, wherever it is.
                return None;
            }
            let changes: Vec<_> = members
                .iter()
                .filter_map(|(key, value)| {
                    Some((key.clone(), rebased_member(key, value, base, place, depth)?))
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
            let changed: Vec<_> =
                elements.iter().map(|element| rebased(element, base, Place::Schema, depth)).collect();
            if changed.iter().all(Option::is_none) {
                return None;
            }
            let mut writer = Writer::with_capacity(value.as_str().len() + 64);
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

fn rebased_member(key: &str, value: &Raw, base: &str, place: Place, depth: usize) -> Option<Raw> {
    // Among names, every key is a name.
    let keyword = if matches!(place, Place::Schema) { key } else { "" };
    match keyword {
        "$ref" | "$dynamicRef" => {
            let reference = value.as_text()?;
            let pointer = reference.strip_prefix('#')?;
            // `#name` is an anchor, and anchors do not depend on the place.
            (pointer.is_empty() || pointer.starts_with('/'))
                .then(|| Raw::from_text(&format!("{base}{pointer}")))
        }
        // Data, in which `$ref` would mean nothing.
        "const" | "enum" | "default" | "examples" => None,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            rebased(value, base, Place::Named, depth)
        }
        _ => rebased(value, base, Place::Schema, depth),
    }
}

fn has_own_id(schema: &Members) -> bool {
    schema.text("$id").is_some_and(|id| !id.starts_with('#'))
}
