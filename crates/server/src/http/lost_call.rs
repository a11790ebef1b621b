//! Calls that ended with an earlier process: the client that resumes the stream of one gets an error for it.
//!
//! A store that outlives the process gets a note about the request as the second event of each stream. The note is
//! never sent. A stream that has a note, but neither a running call nor a response, belongs to a lost call.

use trunkline_protocol::{RawJson, Refusal, RequestId};
use trunkline_session::{EventId, ProcessId, StreamEvent as StoredEvent, StreamId};

use super::endpoint::HttpServiceInner;
use crate::edge::legacy::{self, LiveSession};

/// The beginning of a note; no message begins like this.
const NOTE: &str = r#"{"trunkline/request":"#;

/// Writes the note about a request, and about the process that runs its call where several share the store.
pub(super) fn note(id: &RequestId, process: Option<ProcessId>) -> String {
    let owner = process.map(|process| format!(r#","process":"{process}""#)).unwrap_or_default();
    format!("{NOTE}{}{owner}}}", id.to_raw().as_str())
}

/// Reports whether an event is a note.
pub(super) fn is_note(data: &str) -> bool {
    data.starts_with(NOTE)
}

impl HttpServiceInner {
    /// Returns the other process that runs the call of a stream, unless the call was answered.
    pub(super) async fn owner_of_stream(&self, session: &LiveSession, stream: StreamId) -> Option<ProcessId> {
        let stored = self.replay(session, EventId { stream, seq: 0 }).await.ok()?;
        unanswered_request(&stored)?.process.filter(|process| session.process() != Some(*process))
    }

    /// Returns the error for a call that no process runs any more; `None` if the call was answered, or is unknown.
    pub(super) async fn lost_call_error(&self, session: &LiveSession, stream: StreamId) -> Option<String> {
        if !self.sessions.events().outlives_process() {
            return None;
        }
        let stored = self.replay(session, EventId { stream, seq: 0 }).await.ok()?;
        let id = unanswered_request(&stored)?.id;
        let refusal = Refusal::INTERNAL
            .with_message("the call ended without a result: the server was restarted; call again");
        Some(legacy::refuse(Some(&id), &refusal, session.revision()).message)
    }
}

/// A request without a response.
struct UnansweredRequest {
    id: RequestId,
    /// The process that runs its call, if the store is shared.
    process: Option<ProcessId>,
}

/// Returns the request of a stream, unless the stream has the response.
fn unanswered_request(stored: &[StoredEvent]) -> Option<UnansweredRequest> {
    let text = |event: &StoredEvent| String::from_utf8_lossy(&event.data).into_owned();
    let note = stored.first().map(text).filter(|note| is_note(note))?;
    let mut note = RawJson::parse(note).ok()?.shallow_members().ok()?;
    let process = note.text("process").and_then(|process| ProcessId::parse(&process));
    let id = note.take("trunkline/request")?;
    let is_response = |message: String| {
        let members = RawJson::parse(message).ok().and_then(|message| message.shallow_members().ok());
        members.is_some_and(|members| {
            members.get("method").is_none()
                && members.get("id").is_some_and(|own| own.as_str() == id.as_str())
        })
    };
    let is_answered = stored.iter().skip(1).map(text).any(is_response);
    if is_answered { None } else { Some(UnansweredRequest { id: RequestId::from_raw(id)?, process }) }
}
