//! Repair of relayed results.

use crate::codec::Dialect;
use crate::json::{JsonKind, JsonScanner, RawJson};
use crate::method::Method;

use super::super::{CompleteResult, MalformedModel};
use super::content::{block, contents, message};
use super::format::{flag, natural, text};
use super::object::{ElementRule, MemberRule, list, object, to_array};
use super::{CheckOutcome, RepairLog, ValueCheck, readable};

const TOOL: &[MemberRule] =
    &[MemberRule::essential("content", blocks), MemberRule::essential("isError", flag)];
const PROMPT: &[MemberRule] =
    &[MemberRule::optional("description", text), MemberRule::required("messages", messages)];
const READ: &[MemberRule] = &[MemberRule::required("contents", all_contents)];
const COMPLETE: &[MemberRule] = &[MemberRule::required("completion", completion)];
const COMPLETION: &[MemberRule] = &[
    MemberRule::required("values", values),
    MemberRule::optional("total", natural),
    MemberRule::optional("hasMore", flag),
];

/// Checks the result of a method as a server of a dialect sent it, and repairs what can be; `None` if there is nothing to
/// repair.
///
/// # Errors
/// The result cannot be repaired.
pub(crate) fn repaired_result(
    method: Method,
    from: &Dialect,
    raw: &RawJson,
    repairs: &mut RepairLog,
) -> Result<Option<RawJson>, MalformedModel> {
    let check: ValueCheck = match (method, from.structured_any) {
        (Method::ToolsCall, true) => tool,
        (Method::ToolsCall, false) => tool_with_object,
        (Method::PromptsGet, _) => |raw, repairs| object(raw, PROMPT, repairs),
        (Method::ResourcesRead, _) => |raw, repairs| object(raw, READ, repairs),
        (Method::Complete, _) => complete,
        _ => |_, _| Ok(None),
    };
    let legible = readable(raw, JsonScanner::MAX_DEPTH, repairs)?;
    let repaired = check(legible.as_ref().unwrap_or(raw), repairs)?;
    Ok(repaired.or(legible))
}

/// Checks the result of a tool; without anything for the model its content is empty.
fn tool(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let checked = object(raw, TOOL, repairs)?;
    let mut members = checked.as_ref().unwrap_or(raw).members()?;
    if members.get("content").is_some() {
        return Ok(checked);
    }
    repairs.note(MalformedModel::new("is missing").within("content"));
    members.set("content", to_array(&[]));
    Ok(Some(members.to_raw()))
}

/// Checks the result of a tool of a revision in which structured content is an object, so that `null` means that there is
/// none.
fn tool_with_object(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let checked = tool(raw, repairs)?;
    let mut members = checked.as_ref().unwrap_or(raw).members()?;
    match members.get("structuredContent").map(RawJson::kind) {
        Some(JsonKind::Null) => {
            members.take("structuredContent");
            Ok(Some(members.to_raw()))
        }
        _ => Ok(checked),
    }
}

fn complete(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, COMPLETE, repairs)
}

fn completion(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let checked = object(raw, COMPLETION, repairs)?;
    let mut members = checked.as_ref().unwrap_or(raw).members()?;
    let values = members.get("values").and_then(|values| values.elements().ok()).unwrap_or_default();
    match values.get(..CompleteResult::MAX) {
        Some(first) if values.len() > first.len() => {
            repairs.note(MalformedModel::new("has too many elements").within("values"));
            members.set("values", to_array(first));
            members.set("hasMore", RawJson::TRUE);
            Ok(Some(members.to_raw()))
        }
        _ => Ok(checked),
    }
}

fn blocks(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, block, ElementRule::Essential, repairs)
}

fn messages(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, message, ElementRule::Essential, repairs)
}

fn all_contents(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, contents, ElementRule::Essential, repairs)
}

fn values(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    list(raw, text, ElementRule::Optional, repairs)
}
