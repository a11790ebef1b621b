use std::sync::{Arc, Weak};

use trunkline_protocol::emit;

use super::call_state::CallState;
use super::context::Context;
use super::scope::SessionState;

/// The pages of one call that are remembered; beyond it the oldest is forgotten.
const MAX_ELICITATIONS: usize = 64;

/// Tells a client that its user is done at a page, also when the call that sent the user there is over.
#[derive(Clone, Debug)]
pub struct ElicitationCompleter {
    session: Weak<SessionState>,
    /// What the client knows the page by.
    id: String,
}

impl ElicitationCompleter {
    /// Tells it. A client whose session is over, or that listens to nothing, does not hear it.
    pub fn notify(&self) {
        if let Some(session) = self.session.upgrade() {
            session.notify(elicitation_complete(&self.id));
        }
    }
}

impl Context {
    /// Returns what tells the client that its user is done at a page that it was asked to open under this key; nothing if it
    /// was not, or its revision has no such notice.
    pub fn elicitation_completer(&self, key: &str) -> Option<ElicitationCompleter> {
        let session = self.shared().scope().session()?;
        let id = self.shared().elicitation_id(key)?;
        Some(ElicitationCompleter { session: Arc::downgrade(session), id })
    }
}

impl CallState {
    /// Notes what the client knows a page by that it is asked to open.
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

/// Writes the notice that the user is done at a page.
pub(crate) fn elicitation_complete(id: &str) -> String {
    emit::notification("notifications/elicitation/complete", |writer| {
        writer.open_object();
        writer.plain_key("elicitationId");
        writer.string(id);
        writer.close_object();
    })
}
