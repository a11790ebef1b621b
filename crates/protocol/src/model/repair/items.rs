//! What the items of lists must be, and what servers may call themselves.

use crate::json::{JsonKind, RawJson};

use super::super::MalformedModel;
use super::format::{date_time, flag, fraction, meta, natural, text, uri};
use super::object::{ElementRule, MemberRule, list, object};
use super::output_schema::output_schema;
use super::schema::{ANY_OBJECT, input_schema};
use super::{CheckOutcome, RepairLog, malformed};

const TOOL: &[MemberRule] = &[
    MemberRule::required("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::essential("inputSchema", input_schema),
    MemberRule::optional("outputSchema", output_schema),
    MemberRule::optional("annotations", tool_annotations),
    MemberRule::optional("execution", execution),
    MemberRule::optional("icons", icons),
    MemberRule::optional("_meta", meta),
];

const TOOL_ANNOTATIONS: &[MemberRule] = &[
    MemberRule::optional("title", text),
    MemberRule::optional("readOnlyHint", flag),
    MemberRule::optional("destructiveHint", flag),
    MemberRule::optional("idempotentHint", flag),
    MemberRule::optional("openWorldHint", flag),
];

const EXECUTION: &[MemberRule] = &[MemberRule::optional("taskSupport", task_support)];

const PROMPT: &[MemberRule] = &[
    MemberRule::required("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    // Without the right arguments a prompt cannot be filled in.
    MemberRule::essential("arguments", arguments),
    MemberRule::optional("icons", icons),
    MemberRule::optional("_meta", meta),
];

const ARGUMENT: &[MemberRule] = &[
    MemberRule::required("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::optional("required", flag),
];

const RESOURCE: &[MemberRule] = &[
    MemberRule::required("uri", uri),
    MemberRule::optional("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::optional("mimeType", text),
    MemberRule::optional("size", natural),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("icons", icons),
    MemberRule::optional("_meta", meta),
];

const TEMPLATE: &[MemberRule] = &[
    MemberRule::required("uriTemplate", text),
    MemberRule::optional("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::optional("mimeType", text),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("icons", icons),
    MemberRule::optional("_meta", meta),
];

const ANNOTATIONS: &[MemberRule] = &[
    MemberRule::optional("audience", audience),
    MemberRule::optional("priority", fraction),
    MemberRule::optional("lastModified", date_time),
];

const IMPLEMENTATION: &[MemberRule] = &[
    MemberRule::required("name", text),
    MemberRule::required("version", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::optional("websiteUrl", uri),
    MemberRule::optional("icons", icons),
];

const ICON: &[MemberRule] = &[
    MemberRule::required("src", uri),
    MemberRule::optional("mimeType", text),
    MemberRule::optional("sizes", sizes),
    MemberRule::optional("theme", theme),
];

pub(super) fn tool(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let checked = object(raw, TOOL, repairs)?;
    let mut members = checked.as_ref().unwrap_or(raw).members()?;
    if members.get("inputSchema").is_some() {
        return Ok(checked);
    }
    repairs.note(MalformedModel::new("is missing").within("inputSchema"));
    members.set("inputSchema", RawJson::from_trusted(ANY_OBJECT));
    Ok(Some(members.to_raw()))
}

pub(super) fn prompt(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, PROMPT, repairs)
}

pub(super) fn resource(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    named_by(raw, "uri", RESOURCE, repairs)
}

pub(super) fn template(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    named_by(raw, "uriTemplate", TEMPLATE, repairs)
}

/// Checks what a server calls itself.
pub(super) fn implementation(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, IMPLEMENTATION, repairs)
}

/// Checks an object that is known by an address, and names it by that if it has no name.
pub(super) fn named_by(
    raw: &RawJson,
    address: &str,
    table: &[MemberRule],
    repairs: &mut RepairLog,
) -> CheckOutcome {
    let checked = object(raw, table, repairs)?;
    let mut members = checked.as_ref().unwrap_or(raw).members()?;
    match members.get(address).cloned() {
        Some(address) if members.get("name").is_none() => {
            repairs.note(MalformedModel::new("is missing").within("name"));
            members.set("name", address);
            Ok(Some(members.to_raw()))
        }
        _ => Ok(checked),
    }
}

pub(super) fn annotations(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, ANNOTATIONS, repairs)
}

pub(super) fn icons(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, icon, ElementRule::Optional, repairs)
}

fn icon(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, ICON, repairs)
}

fn sizes(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, text, ElementRule::Optional, repairs)
}

fn theme(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    one_of(raw, &["light", "dark"], "must be `light` or `dark`")
}

fn audience(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, role, ElementRule::Optional, repairs)
}

pub(super) fn role(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    one_of(raw, &["user", "assistant"], "must be `user` or `assistant`")
}

fn tool_annotations(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, TOOL_ANNOTATIONS, repairs)
}

fn execution(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, EXECUTION, repairs)
}

fn task_support(raw: &RawJson, _: &mut RepairLog) -> CheckOutcome {
    one_of(raw, &["forbidden", "optional", "required"], "must be `forbidden`, `optional` or `required`")
}

fn arguments(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    if raw.kind() == JsonKind::Object && raw.members()?.is_empty() {
        repairs.note(MalformedModel::new("must be an array"));
        return Ok(Some(RawJson::from_trusted("[]".into())));
    }
    list(raw, argument, ElementRule::Essential, repairs)
}

fn argument(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, ARGUMENT, repairs)
}

fn one_of(raw: &RawJson, values: &[&str], problem: &'static str) -> CheckOutcome {
    match raw.as_text() {
        Some(text) if values.contains(&&*text) => Ok(None),
        _ => malformed(problem),
    }
}
