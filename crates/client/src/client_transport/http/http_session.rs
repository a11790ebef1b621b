use http::header::{HeaderName, HeaderValue};
use trunkline_protocol::Revision;
use trunkline_transport::Secret;
use trunkline_transport::http::{HeaderLines, ResponseHeaders};

use super::mcp_headers;
use super::response_head::InSession;
use crate::resumable_session::{ResumableSession, is_valid_id};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The result of a handshake: the session id, if the server has sessions, and the revision.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpSession {
    id: Option<HeaderValue>,
    revision: Option<Revision>,
}

impl HttpSession {
    /// Reads the session id from the response to `initialize`. It must be visible ASCII.
    pub(super) fn from_headers(headers: &ResponseHeaders) -> Result<Self, String> {
        let name = SESSION_ID;
        let mut ids = headers.get_all(&name);
        let (id, other) = (ids.next(), ids.next());
        if other.is_some() || id.is_some_and(|id| !is_valid_id(id)) {
            return Err(
                "the server gave an id of a session that is not one piece of printable ASCII".to_owned()
            );
        }
        let mut id = id.and_then(|id| HeaderValue::from_bytes(id).ok());
        if let Some(id) = &mut id {
            // The id authenticates requests of the session.
            id.set_sensitive(true);
        }
        Ok(Self { id, revision: None })
    }

    /// Continues a session that another client opened.
    pub(super) fn resume(session: &ResumableSession) -> Self {
        Self { id: session.id_header(), revision: Some(session.revision()) }
    }

    /// Returns the session id, if the server has sessions.
    pub(super) fn id(&self) -> Option<Secret> {
        self.id.as_ref()?.to_str().ok().map(Secret::new)
    }

    /// Sets the revision that requests of the session carry.
    pub(super) fn set_revision(&mut self, revision: Revision) {
        self.revision = Some(revision);
    }

    /// Adds the session id to the headers of a request, if there is one.
    pub(super) fn add_session_id(&self, headers: &mut HeaderLines) -> InSession {
        let Some(id) = &self.id else { return InSession::No };
        headers.add(&SESSION_ID, id);
        InSession::Yes
    }

    /// Adds the session id and the revision, for a request that mirrors no body.
    pub(super) fn add_session_headers(&self, headers: &mut HeaderLines) -> InSession {
        if let Some(revision) = self.revision {
            mcp_headers::add_version_header(headers, revision);
        }
        self.add_session_id(headers)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::resumable_session::MAX_SESSION_ID_BYTES;

    #[test]
    fn session_id_must_be_single_visible_ascii_and_bounded() {
        let long = "x".repeat(MAX_SESSION_ID_BYTES + 1);
        let table: &[(&[&str], Option<InSession>)] = &[
            (&[], Some(InSession::No)),
            (&["abc-123~!"], Some(InSession::Yes)),
            (&[""], None),
            (&["a b"], None),
            (&["a\tb"], None),
            (&["a", "a"], None),
            (&[&long], None),
        ];
        for (ids, expected) in table {
            let mut headers = HeaderMap::new();
            for id in *ids {
                headers.append(SESSION_ID, HeaderValue::from_str(id).unwrap());
            }
            let session = HttpSession::from_headers(&(&headers).into())
                .ok()
                .map(|session| session.add_session_id(&mut HeaderLines::default()));
            assert_eq!(session, *expected, "{ids:?}");
        }
    }

    #[test]
    fn session_id_is_never_printed() {
        let headers = HeaderMap::from_iter([(SESSION_ID, HeaderValue::from_static("sentinel"))]);
        let session = HttpSession::from_headers(&(&headers).into()).unwrap();
        let mut sent = HeaderLines::default();
        session.add_session_id(&mut sent);
        assert_eq!(sent.as_bytes(), b"mcp-session-id: sentinel\r\n");
        assert!(!format!("{session:?} {sent:?}").contains("sentinel"));
    }
}
