//! The stored form of the sessions of one row: JSON with a version.

use std::fmt;

use trunkline_client::ResumableSession;
use trunkline_protocol::{JsonWriter, RawJson};
use trunkline_session::{RecordError, Timestamp};

use crate::upstream::{InputSet, RootsDigest};

/// The newest version that this build reads, and the one that it writes.
const VERSION: u64 = 1;

/// The most sessions in one row. Callers with different capabilities or roots have different sessions.
pub(super) const MAX_SESSIONS: usize = 16;

/// The longest session in a row. One with longer instructions is not stored.
const MAX_SESSION_BYTES: usize = 16 << 10;

/// The sessions of one server that the same callers share.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    /// The process that it belongs to.
    pub(super) owner: String,
    /// Until when it belongs to that process in a shared store, unless the lease is renewed.
    pub(super) leased_until: Timestamp,
    pub(super) sessions: Vec<UpstreamSession>,
}

/// A session with a server, as another process needs it to continue it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UpstreamSession {
    /// The capabilities that the server was sent.
    pub(crate) input: InputSet,
    /// Whether the server has ever requested roots.
    pub(crate) asks_roots: bool,
    /// The roots that it was sent.
    pub(crate) sent_roots: Option<RootsDigest>,
    /// The session of the client, in its stored form.
    client: String,
}

impl UpstreamSession {
    /// Describes a session; `None` if it is too long to be stored.
    pub(crate) fn new(
        input: InputSet,
        asks_roots: bool,
        sent_roots: Option<RootsDigest>,
        session: &ResumableSession,
    ) -> Option<Self> {
        let client = session.to_json();
        (client.len() <= MAX_SESSION_BYTES).then_some(Self { input, asks_roots, sent_roots, client })
    }

    /// Returns the session of the client.
    pub(crate) fn to_resumable(&self) -> Option<ResumableSession> {
        ResumableSession::from_json(&self.client).ok()
    }
}

/// Shows no session id.
impl fmt::Debug for UpstreamSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSession").field("input", &self.input).finish_non_exhaustive()
    }
}

impl SessionRow {
    pub(super) fn to_raw(&self) -> RawJson {
        let mut writer = JsonWriter::with_capacity(256);
        writer.open_object();
        writer.plain_key("v");
        writer.unsigned(VERSION);
        writer.plain_key("owner");
        writer.string(&self.owner);
        writer.plain_key("leasedUntil");
        writer.unsigned(self.leased_until.0);
        writer.plain_key("sessions");
        writer.open_array();
        for session in self.sessions.iter().take(MAX_SESSIONS) {
            writer.open_object();
            writer.plain_key("input");
            writer.unsigned(session.input.bits().into());
            writer.plain_key("asksRoots");
            writer.boolean(session.asks_roots);
            if let Some(digest) = session.sent_roots {
                writer.plain_key("sentRoots");
                writer.string(&format!("{:032x}", u128::from_be_bytes(digest)));
            }
            // As text, since its version is its own.
            writer.plain_key("client");
            writer.string(&session.client);
            writer.close_object();
        }
        writer.close_array();
        writer.close_object();
        writer.into_raw()
    }

    /// Reads a row of this version or an older one. A session that cannot be read is left out, and a new one is opened.
    pub(super) fn from_raw(raw: &RawJson) -> Result<Self, RecordError> {
        let members = raw.members().map_err(|_| RecordError::Malformed)?;
        match members.get("v").and_then(|version| version.get::<u64>().ok()) {
            Some(1..=VERSION) => {}
            Some(newer) if newer > VERSION => return Err(RecordError::Newer(newer)),
            _ => return Err(RecordError::Malformed),
        }
        let read = || {
            let sessions = members.get("sessions")?.elements().ok()?;
            Some(Self {
                owner: (*members.text("owner")?).to_owned(),
                leased_until: Timestamp(members.get("leasedUntil")?.get().ok()?),
                sessions: sessions.iter().take(MAX_SESSIONS).filter_map(read_session).collect(),
            })
        };
        read().ok_or(RecordError::Malformed)
    }
}

fn read_session(raw: &RawJson) -> Option<UpstreamSession> {
    let members = raw.members().ok()?;
    let sent_roots = match members.text("sentRoots") {
        Some(digest) => Some(u128::from_str_radix(&digest, 16).ok()?.to_be_bytes()),
        None => None,
    };
    let client = (*members.text("client")?).to_owned();
    ResumableSession::from_json(&client).ok()?;
    Some(UpstreamSession {
        input: InputSet::from_bits(members.get("input")?.get().ok()?),
        asks_roots: members.get("asksRoots")?.get().ok()?,
        sent_roots,
        client,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> SessionRow {
        let client = r#"{"v":1,"session":"sentinel","protocolVersion":"2025-06-18","capabilities":{}}"#;
        let session = ResumableSession::from_json(client).unwrap();
        let stored = |roots| UpstreamSession::new(InputSet::from_bits(5), true, roots, &session).unwrap();
        let sessions = vec![stored(None), stored(Some([7; 16]))];
        SessionRow { owner: "me".to_owned(), leased_until: Timestamp(9), sessions }
    }

    #[test]
    fn row_of_sessions_is_read_back_as_it_was_written() {
        let read = SessionRow::from_raw(&row().to_raw()).unwrap();
        assert_eq!((read.owner.as_str(), read.leased_until), ("me", Timestamp(9)));
        assert_eq!(read.sessions, row().sessions);
        assert!(!format!("{read:?}").contains("sentinel"));
    }

    #[test]
    fn row_of_a_newer_build_is_refused_and_a_session_of_one_is_left_out() {
        let changed = |from: &str, to: &str| {
            let text = row().to_raw().as_str().replacen(from, to, 1);
            SessionRow::from_raw(&RawJson::parse(text).unwrap())
        };
        assert_eq!(changed("\"v\":1", "\"v\":2").unwrap_err(), RecordError::Newer(2));
        assert_eq!(changed("\"owner\"", "\"other\"").unwrap_err(), RecordError::Malformed);
        assert_eq!(changed("\\\"v\\\":1", "\\\"v\\\":2").unwrap().sessions.len(), 1);
    }
}
