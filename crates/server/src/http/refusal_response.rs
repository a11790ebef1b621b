//! Responses to refused requests, in the revision of the request.

use http::header::{ACCEPT_ENCODING, ALLOW, CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Response};
use trunkline_protocol::era::HeaderOccurrence;
use trunkline_protocol::{Era, Refusal, RequestId, Revision, emit};
use trunkline_session::{Principal, SessionId};

use super::body::McpResponseBody;
use super::endpoint::{HttpServiceInner, respond};
use super::mcp_headers::McpHeaders;
use crate::edge::RenderedResponse;
use crate::metrics::process;

impl HttpServiceInner {
    /// Returns the revision in which a request to the endpoint is refused.
    pub(super) fn refusal_revision(&self, headers: &McpHeaders<'_>, principal: &Principal) -> Revision {
        let session = match headers.session {
            HeaderOccurrence::Once(id) => SessionId::parse(id),
            _ => None,
        };
        choose_revision(named_revision(headers), session.and_then(|id| self.sessions.revision(id, principal)))
    }
}

/// Returns the revision for the refusal of a request of which only the headers are known.
pub(super) fn header_revision(headers: &McpHeaders<'_>) -> Revision {
    choose_revision(named_revision(headers), None)
}

/// Chooses the revision of a refusal: that of the session, unless the request names a modern one.
fn choose_revision(named: Option<Revision>, session: Option<Revision>) -> Revision {
    match (named, session) {
        (Some(named), _) if named.era() == Era::Modern => named,
        (_, Some(session)) => session,
        (Some(named), None) => named,
        (None, None) => Revision::NEWEST,
    }
}

/// Returns the revision that a request names.
pub(super) fn named_revision(headers: &McpHeaders<'_>) -> Option<Revision> {
    let HeaderOccurrence::Once(name) = headers.version else { return None };
    std::str::from_utf8(name).ok().and_then(Revision::parse)
}

/// Makes the response to a refused request.
#[cold]
pub(super) fn refusal_response(
    refusal: &Refusal,
    id: Option<&RequestId>,
    revision: Revision,
) -> Response<McpResponseBody> {
    process::count_refusal(refusal);
    let answer = RenderedResponse {
        message: emit::error(id, refusal, revision),
        status: refusal.status(revision.era()),
    };
    let mut response = respond(answer, false);
    let headers = response.headers_mut();
    if refusal.is_same_kind(&Refusal::NOT_ALLOWED) {
        headers.insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE, OPTIONS"));
    }
    if refusal.is_same_kind(&Refusal::UNSUPPORTED_MEDIA) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if refusal.is_same_kind(&Refusal::UPGRADE_REQUIRED) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_uses_the_session_revision_unless_the_request_is_modern() {
        use Revision as R;
        for (named, session, expected) in [
            (None, None, R::NEWEST),
            (Some(R::V2025_06_18), None, R::V2025_06_18),
            (Some(R::V2026_07_28), None, R::V2026_07_28),
            (None, Some(R::V2025_03_26), R::V2025_03_26),
            (Some(R::V2025_11_25), Some(R::V2025_03_26), R::V2025_03_26),
            (Some(R::V2026_07_28), Some(R::V2025_03_26), R::V2026_07_28),
        ] {
            assert_eq!(choose_revision(named, session), expected, "{named:?} in {session:?}");
        }
    }
}
