//! Blocks of content and contents of resources.

use crate::json::{JsonWriter, RawJson};

use super::super::MalformedModel;
use super::format::{meta, text};
use super::items::{annotations, icons, named_by, role};
use super::object::{MemberRule, object};
use super::{CheckOutcome, RepairLog, malformed};

const TEXT: &[MemberRule] = &[
    MemberRule::required("text", text),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("_meta", meta),
];

const MEDIA: &[MemberRule] = &[
    MemberRule::required("data", text),
    MemberRule::required("mimeType", text),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("_meta", meta),
];

const LINK: &[MemberRule] = &[
    // Any text: unlike a listed address, it is read by the caller of this tool alone.
    MemberRule::required("uri", text),
    MemberRule::optional("name", text),
    MemberRule::optional("title", text),
    MemberRule::optional("description", text),
    MemberRule::optional("mimeType", text),
    MemberRule::optional("size", super::format::natural),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("icons", icons),
    MemberRule::optional("_meta", meta),
];

const EMBEDDED: &[MemberRule] = &[
    MemberRule::required("resource", contents),
    MemberRule::optional("annotations", annotations),
    MemberRule::optional("_meta", meta),
];

const CONTENTS: &[MemberRule] = &[
    MemberRule::required("uri", text),
    MemberRule::optional("mimeType", text),
    MemberRule::essential("text", text),
    MemberRule::essential("blob", text),
    MemberRule::optional("_meta", meta),
];

const MESSAGE: &[MemberRule] = &[MemberRule::required("role", role), MemberRule::required("content", block)];

/// Checks a block of content. One of a kind that no revision has is passed on as text.
pub(super) fn block(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let kind = raw.members()?.text("type");
    match kind.as_deref() {
        Some("text") => object(raw, TEXT, repairs),
        Some("image" | "audio") => object(raw, MEDIA, repairs),
        Some("resource_link") => named_by(raw, "uri", LINK, repairs),
        Some("resource") => object(raw, EMBEDDED, repairs),
        Some(_) => {
            repairs.note(MalformedModel::new("is not a kind of content").within("type"));
            Ok(Some(as_text(raw)))
        }
        None => Err(MalformedModel::new("must be a string").within("type")),
    }
}

fn as_text(block: &RawJson) -> RawJson {
    let mut writer = JsonWriter::with_capacity(block.as_str().len() + 64);
    writer.open_object();
    writer.plain_key("type");
    writer.string("text");
    writer.plain_key("text");
    writer.string(block.as_str());
    writer.close_object();
    writer.into_raw()
}

/// Checks what was read from a resource.
pub(super) fn contents(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    let checked = object(raw, CONTENTS, repairs)?;
    let members = checked.as_ref().unwrap_or(raw).members()?;
    match members.get("text").or_else(|| members.get("blob")) {
        Some(_) => Ok(checked),
        None => malformed("must have either `text` or `blob`"),
    }
}

/// Checks a message of a prompt.
pub(super) fn message(raw: &RawJson, repairs: &mut RepairLog) -> CheckOutcome {
    object(raw, MESSAGE, repairs)
}
