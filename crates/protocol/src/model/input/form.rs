//! Simplified forms for the revision 2025-06-18.
//!
//! See [Request Schema](https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation#request-schema).

use bytestring::ByteString;

use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};

/// Converts a form to plain choices and boolean defaults, or names the feature that has no such form.
pub(super) fn simplified(schema: &RawJson) -> Result<RawJson, &'static str> {
    let Ok(mut form) = schema.members() else { return Ok(schema.clone()) };
    let Some(properties) = form.get("properties").and_then(|raw| raw.members().ok()) else {
        return Ok(schema.clone());
    };
    let mut simpler = JsonObject::new();
    let mut changed = false;
    for (name, property) in properties.iter() {
        let simple = simplified_property(property)?;
        changed |= simple.is_some();
        simpler.set(name.clone(), simple.unwrap_or_else(|| property.clone()));
    }
    if !changed {
        return Ok(schema.clone());
    }
    form.set("properties", simpler.to_raw());
    Ok(form.to_raw())
}

/// Returns the simplified property, or `None` if it is simple already.
fn simplified_property(property: &RawJson) -> Result<Option<RawJson>, &'static str> {
    let Ok(members) = property.members() else { return Ok(None) };
    if members.text("type").as_deref() == Some("array") {
        return Err("form fields with several choices");
    }
    let titled = members.get("oneOf").map(titled_choices).transpose()?;
    if titled.is_none() && !members.get("default").is_some_and(is_dropped) {
        return Ok(None);
    }
    let mut writer = JsonWriter::with_capacity(property.as_str().len());
    writer.open_object();
    for (key, value) in members.iter() {
        match (&**key, &titled) {
            ("oneOf", Some((values, titles))) => {
                writer.member("enum", values);
                writer.member("enumNames", titles);
            }
            // The values of the titled choices replace these members.
            ("enum" | "enumNames", Some(_)) => {}
            ("default", _) if is_dropped(value) => {}
            _ => writer.member(key, value),
        }
    }
    writer.close_object();
    Ok(Some(writer.into_raw()))
}

/// Splits `[{"const": value, "title": title}]` into the values and the titles.
fn titled_choices(choices: &RawJson) -> Result<(RawJson, RawJson), &'static str> {
    const OTHER: &str = "form fields with alternatives other than titled choices";
    let mut values = JsonWriter::with_capacity(64);
    let mut titles = JsonWriter::with_capacity(64);
    values.open_array();
    titles.open_array();
    for choice in choices.elements().map_err(|_| OTHER)? {
        let mut choice = choice.members().map_err(|_| OTHER)?;
        let value = choice.take("const").ok_or(OTHER)?;
        titles.raw(choice.get("title").unwrap_or(&value));
        values.raw(&value);
    }
    values.close_array();
    titles.close_array();
    Ok((values.into_raw(), titles.into_raw()))
}

fn is_dropped(default: &RawJson) -> bool {
    default.kind() != JsonKind::Bool
}

/// Fills in the defaults that were not sent to the client, for fields that it omitted.
pub(super) fn with_dropped_defaults(schema: &RawJson, content: &RawJson) -> RawJson {
    let defaults = dropped_defaults(schema).unwrap_or_default();
    let Ok(mut filled) = content.members() else { return content.clone() };
    let before = filled.len();
    for (name, default) in defaults {
        if filled.get(&name).is_none() {
            filled.set(name, default);
        }
    }
    if filled.len() == before { content.clone() } else { filled.to_raw() }
}

fn dropped_defaults(schema: &RawJson) -> Option<Vec<(ByteString, RawJson)>> {
    let properties = schema.members().ok()?.get("properties")?.members().ok()?;
    let default_of = |property: &RawJson| property.members().ok()?.take("default").filter(is_dropped);
    Some(
        properties
            .iter()
            .filter_map(|(name, property)| Some((name.clone(), default_of(property)?)))
            .collect(),
    )
}
