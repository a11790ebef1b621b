use trunkline_protocol::codec::{Dialect, ServerResult};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, JsonWriter, RawJson, Refusal, Request, Revision};
use trunkline_session::{SessionId, SessionRecord};

use crate::caller_identity::CallerIdentity;
use crate::server_core::{ServerCore, now};

/// A handshake that can be accepted: the session's record and the response.
pub(crate) struct AcceptedHandshake {
    pub(crate) record: SessionRecord,
    pub(crate) response: String,
}

/// The `_meta` key of the session's id in the response, for clients that want it there.
const SESSION_ID: &str = "trunkline/sessionId";

/// Reads `initialize` and makes its response.
///
/// See [Version Negotiation](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation).
pub(crate) fn accept_handshake(
    core: &ServerCore,
    request: &Request,
    caller: CallerIdentity<'_>,
) -> Result<AcceptedHandshake, Refusal> {
    let requested = request.params.text("protocolVersion")?;
    let revision = core
        .revisions
        .negotiate(&requested)
        .ok_or_else(|| Refusal::unsupported_version(&requested, core.revisions))?;
    // Copied, because a slice would keep the whole body of the request alive for as long as the session lives.
    let capabilities = match request.params.get("capabilities") {
        None => RawJson::EMPTY_OBJECT,
        Some(raw) if raw.kind() == JsonKind::Object => raw.to_owned_buffer(),
        Some(_) => return Err(Refusal::INVALID_PARAMS.with_message("`capabilities` must be an object")),
    };
    let id = SessionId::random();
    let record = SessionRecord {
        id,
        principal: caller.principal.clone(),
        revision,
        capabilities,
        client: request.params.get("clientInfo").map(RawJson::to_owned_buffer),
        log_level: None,
        subscriptions: std::collections::BTreeSet::new(),
        created: now(),
    };
    let mut described = describe(core, revision, caller);
    if core.session_in_meta {
        described.set("_meta", RawJson::from(serde_json::json!({ SESSION_ID: id.to_string() })));
    }
    let answer = core.result(&request.id, &ServerResult::Object(described), revision);
    Ok(AcceptedHandshake { record, response: answer })
}

fn describe(core: &ServerCore, revision: Revision, caller: CallerIdentity<'_>) -> JsonObject {
    let mut server_info = JsonWriter::with_capacity(96);
    core.handler.identity().write(Dialect::of(revision), &mut server_info);
    let mut members = JsonObject::new();
    members.set("protocolVersion", RawJson::from_text(revision.as_str()));
    for (key, value) in core.describe(revision, caller).iter() {
        members.set(key.clone(), value.clone());
    }
    members.set("serverInfo", server_info.into_raw());
    members
}
