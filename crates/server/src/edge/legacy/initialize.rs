use trunkline_protocol::codec::{Dialect, Reply};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Members, Raw, Refusal, Request, Revision, Writer};
use trunkline_session::{Principal, SessionId, SessionRecord};

use crate::core::{Core, now};

/// A handshake that can be accepted: what to remember and what to answer.
pub(crate) struct Handshake {
    pub(crate) record: SessionRecord,
    pub(crate) answer: String,
}

/// Where the answer has the session's id, for clients that want it there.
const SESSION_ID: &str = "trunkline/sessionId";

/// Reads `initialize` and makes its answer.
pub(crate) fn handshake(core: &Core, request: &Request, principal: Principal) -> Result<Handshake, Refusal> {
    let requested = request.params.text("protocolVersion")?;
    let revision = core
        .revisions
        .negotiate(&requested)
        .ok_or_else(|| Refusal::unsupported_version(&requested, core.revisions))?;
    // Copied, because a slice would keep the whole body of the request alive for as long as the session lives.
    let capabilities = match request.params.get("capabilities") {
        None => Raw::EMPTY_OBJECT,
        Some(raw) if raw.kind() == JsonKind::Object => raw.detached(),
        Some(_) => return Err(Refusal::INVALID_PARAMS.because("`capabilities` must be an object")),
    };
    let id = SessionId::random();
    let record = SessionRecord {
        id,
        principal,
        revision,
        capabilities,
        client: request.params.get("clientInfo").map(Raw::detached),
        log_level: None,
        created: now(),
    };
    let mut described = describe(core, revision);
    if core.session_in_meta {
        described.set("_meta", Raw::from(serde_json::json!({ SESSION_ID: id.to_string() })));
    }
    let answer = core.result(&request.id, &Reply::Object(described), revision);
    Ok(Handshake { record, answer })
}

fn describe(core: &Core, revision: Revision) -> Members {
    let mut server_info = Writer::with_capacity(96);
    core.handler.identity().write(Dialect::of(revision), &mut server_info);
    let mut members = Members::new();
    members.set("protocolVersion", Raw::from_text(revision.as_str()));
    for (key, value) in core.describe(revision).iter() {
        members.set(key.clone(), value.clone());
    }
    members.set("serverInfo", server_info.into_raw());
    members
}
