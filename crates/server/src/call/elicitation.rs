use std::sync::{Arc, Weak};

use trunkline_protocol::emit;

use super::call_state::CallState;
use super::context::Context;
use super::scope::SessionState;

/// The URL elicitations that are recorded for one call; beyond it the oldest is removed.
const MAX_ELICITATIONS: usize = 64;

/// Notifies a client that its user has completed a URL elicitation, also after the end of the call that requested
/// it.
#[derive(Clone, Debug)]
pub struct ElicitationCompleter {
    session: Weak<SessionState>,
    /// The elicitation's id.
    id: String,
}

impl ElicitationCompleter {
    /// Returns the id of the elicitation.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sends the notification. It is dropped if the client's session is over, or if the client listens to no
    /// stream.
    pub fn notify(&self) {
        if let Some(session) = self.session.upgrade() {
            session.notify(elicitation_complete(&self.id));
        }
    }
}

impl Context {
    /// Returns the completer of the URL elicitation that the client was sent under this key; `None` if there was
    /// none, or if the revision has no such notification.
    pub fn elicitation_completer(&self, key: &str) -> Option<ElicitationCompleter> {
        let session = self.shared().scope().session()?;
        let id = self.shared().elicitation_id(key)?;
        Some(ElicitationCompleter { session: Arc::downgrade(session), id })
    }
}

impl CallState {
    /// Records the id of a URL elicitation that the client is sent.
    pub(crate) fn record_elicitation(&self, key: &str, id: &str) {
        let mut state = self.lock();
        if state.elicitations.len() >= MAX_ELICITATIONS {
            state.elicitations.remove(0);
        }
        state.elicitations.push((key.to_owned(), id.to_owned()));
    }

    fn elicitation_id(&self, key: &str) -> Option<String> {
        let state = self.lock();
        state.elicitations.iter().rev().find(|(known, _)| known == key).map(|(_, id)| id.clone())
    }
}

/// Writes the notification that a URL elicitation is complete.
pub(crate) fn elicitation_complete(id: &str) -> String {
    emit::notification("notifications/elicitation/complete", |writer| {
        writer.open_object();
        writer.plain_key("elicitationId");
        writer.string(id);
        writer.close_object();
    })
}
