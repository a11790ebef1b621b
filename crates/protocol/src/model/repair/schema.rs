//! Input schemas: the checks that clients apply when they list tools.

use bytestring::ByteString;

use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};
use crate::shorten::shorten;

use super::super::MalformedModel;
use super::object::to_array;
use super::{CheckOutcome, RepairLog, malformed};

/// The schema that any arguments fit, which are always an object.
pub(super) const ANY_OBJECT: ByteString = ByteString::from_static(r#"{"type":"object"}"#);

/// A schema that nothing fits.
const FALSE_SCHEMA: ByteString = ByteString::from_static(r#"{"not":{}}"#);

/// Checks the schema of a tool's arguments.
///
/// Arguments are always an object. So a schema without a type means an object, and so does an empty array, which is
/// how PHP writes an empty object.
pub(super) fn input_schema(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let is_empty_schema = match raw.kind() {
        JsonKind::Object => false,
        JsonKind::Bool => raw.as_str() == "true",
        JsonKind::Array => is_empty_array(raw),
        _ => return malformed("must be the schema of an object"),
    };
    if is_empty_schema {
        repairs.note(MalformedModel::new("must be an object"));
        return Ok(Some(RawJson::from_trusted(ANY_OBJECT)));
    }
    let mut members = raw.members()?;
    let is_typed = object_type(&mut members, repairs)?;
    let has_members = schema_members(&mut members, repairs)?;
    Ok((is_typed || has_members).then(|| members.to_raw()))
}

/// Sets `type` to `object`; reports whether it was different.
fn object_type(members: &mut JsonObject, repairs: &mut RepairLog) -> Result<bool, MalformedModel> {
    let is_object = |text: &str| text.eq_ignore_ascii_case("object");
    let fits = match members.get("type") {
        Some(raw) if raw.as_text().as_deref() == Some("object") => return Ok(false),
        Some(raw) => match raw.kind() {
            JsonKind::Null => true,
            JsonKind::String => raw.as_text().is_some_and(|text| is_object(&text)),
            // Among several types it is the only one that arguments can have.
            JsonKind::Array => {
                let types = raw.elements().unwrap_or_default();
                types.iter().any(|each| each.as_text().is_some_and(|text| is_object(&text)))
            }
            _ => false,
        },
        None => true,
    };
    let problem = MalformedModel::new("must be `object`").within("type");
    if !fits {
        return Err(problem);
    }
    repairs.note(problem);
    members.set("type", RawJson::from_trusted(ByteString::from_static("\"object\"")));
    Ok(true)
}

/// Checks the members of a schema that clients look at themselves; reports whether any is different now.
pub(super) fn schema_members(
    members: &mut JsonObject,
    repairs: &mut RepairLog,
) -> Result<bool, MalformedModel> {
    let mut is_changed = false;
    let checks = [("properties", properties as fn(&RawJson, &mut RepairLog) -> _), ("required", required)];
    for (key, check) in checks {
        let Some(value) = members.get(key) else { continue };
        match repairs.within(|problem| problem.within(key), |repairs| check(value, repairs)) {
            Ok(MemberOutcome::Unchanged) => continue,
            Ok(MemberOutcome::Replaced(instead)) => members.set(key, instead),
            Ok(MemberOutcome::Dropped) => drop(members.take(key)),
            Err(problem) => return Err(MalformedModel::within(problem, key)),
        }
        is_changed = true;
    }
    if members.get("$schema").is_some_and(|schema| schema.as_text().is_none()) {
        repairs.note(MalformedModel::new("must be a string").within("$schema"));
        members.take("$schema");
        is_changed = true;
    }
    Ok(is_changed)
}

/// The outcome for a member.
enum MemberOutcome {
    Unchanged,
    Replaced(RawJson),
    Dropped,
}

fn properties(raw: &RawJson, repairs: &mut RepairLog) -> Result<MemberOutcome, MalformedModel> {
    match raw.kind() {
        JsonKind::Object => {}
        JsonKind::Null => return Ok(MemberOutcome::Dropped),
        JsonKind::Array if is_empty_array(raw) => {
            repairs.note(MalformedModel::new("must be an object"));
            return Ok(MemberOutcome::Replaced(RawJson::EMPTY_OBJECT));
        }
        _ => return Err(MalformedModel::new("must be an object")),
    }
    let mut is_changed = false;
    let mut writer = JsonWriter::with_capacity(raw.as_str().len());
    writer.open_object();
    for (name, schema) in raw.members()?.iter() {
        let instead = match schema.kind() {
            JsonKind::Object => None,
            // Newer schemas have these two for anything and nothing, and older revisions know neither.
            JsonKind::Bool if schema.as_str() == "false" => Some(RawJson::from_trusted(FALSE_SCHEMA)),
            JsonKind::Bool => Some(RawJson::EMPTY_OBJECT),
            JsonKind::Null => record_untyped_property(repairs, name),
            JsonKind::Array if is_empty_array(schema) => record_untyped_property(repairs, name),
            _ => return Err(MalformedModel::new("must be an object").within(&shorten(name))),
        };
        is_changed |= instead.is_some();
        writer.member(name, instead.as_ref().unwrap_or(schema));
    }
    writer.close_object();
    Ok(if is_changed { MemberOutcome::Replaced(writer.into_raw()) } else { MemberOutcome::Unchanged })
}

/// Records a property without a schema, which may have any value.
fn record_untyped_property(repairs: &mut RepairLog, name: &str) -> Option<RawJson> {
    repairs.note(MalformedModel::new("must be an object").within(&shorten(name)));
    Some(RawJson::EMPTY_OBJECT)
}

/// Checks the names of required properties. If they are malformed, the server itself still validates each call.
fn required(raw: &RawJson, repairs: &mut RepairLog) -> Result<MemberOutcome, MalformedModel> {
    let problem = || MalformedModel::new("must be an array of strings");
    let is_name = |raw: &RawJson| raw.as_text().is_some();
    match raw.kind() {
        JsonKind::Null => return Ok(MemberOutcome::Dropped),
        JsonKind::String if is_name(raw) => {
            repairs.note(problem());
            return Ok(MemberOutcome::Replaced(to_array(std::slice::from_ref(raw))));
        }
        JsonKind::Array => {}
        _ => {
            repairs.note(problem());
            return Ok(MemberOutcome::Dropped);
        }
    }
    let elements = raw.elements().map_err(|_| problem())?;
    if elements.iter().all(is_name) {
        return Ok(MemberOutcome::Unchanged);
    }
    repairs.note(problem());
    let names: Vec<RawJson> = elements.into_iter().filter(is_name).collect();
    Ok(MemberOutcome::Replaced(to_array(&names)))
}

fn is_empty_array(raw: &RawJson) -> bool {
    raw.kind() == JsonKind::Array && raw.elements().is_ok_and(|elements| elements.is_empty())
}
