//! Calls that ended with an earlier process: the client that resumes the stream of one gets an error for it.
//!
//! A store that outlives the process gets a note about the request as the second event of each stream. The note is
//! never sent. A stream that has a note, but neither a running call nor a response, belongs to a lost call.

use trunkline_protocol::{RawJson, Refusal, RequestId};
use trunkline_session::{EventId, StreamEvent as StoredEvent, StreamId};

use super::endpoint::HttpServiceInner;
use crate::edge::legacy::{self, LiveSession};

/// The beginning of a note; no message begins like this.
const NOTE: &str = r#"{"trunkline/request":"#;

/// Writes the note about a request.
pub(super) fn note(id: &RequestId) -> String {
    format!("{NOTE}{}}}", id.to_raw().as_str())
}

/// Reports whether an event is a note.
pub(super) fn is_note(data: &str) -> bool {
    data.starts_with(NOTE)
}

impl HttpServiceInner {
    /// Returns the error for a call that no process runs any more; `None` if the call was answered, or is unknown.
    pub(super) async fn lost_call_error(&self, session: &LiveSession, stream: StreamId) -> Option<String> {
        if !self.sessions.events().outlives_process() {
            return None;
        }
        let stored = self.replay(session, EventId { stream, seq: 0 }).await.ok()?;
        let id = unanswered_request(&stored)?;
        let refusal = Refusal::INTERNAL
            .with_message("the call ended without a result: the server was restarted; call again");
        Some(legacy::refuse(Some(&id), &refusal, session.revision()).message)
    }
}

/// Returns the request of a stream, unless the stream has the response.
fn unanswered_request(stored: &[StoredEvent]) -> Option<RequestId> {
    let text = |event: &StoredEvent| String::from_utf8_lossy(&event.data).into_owned();
    let note = stored.first().map(text).filter(|note| is_note(note))?;
    let id = RawJson::parse(note).ok()?.shallow_members().ok()?.take("trunkline/request")?;
    let is_response = |message: String| {
        let members = RawJson::parse(message).ok().and_then(|message| message.shallow_members().ok());
        members.is_some_and(|members| {
            members.get("method").is_none()
                && members.get("id").is_some_and(|own| own.as_str() == id.as_str())
        })
    };
    let is_answered = stored.iter().skip(1).map(text).any(is_response);
    if is_answered { None } else { RequestId::from_raw(id) }
}
