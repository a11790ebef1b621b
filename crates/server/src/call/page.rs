use std::sync::{Arc, Weak};

use trunkline_protocol::emit;

use super::context::Context;
use super::shared::Shared;
use super::surroundings::SessionKeep;

/// The pages of one call that are remembered; beyond it the oldest is forgotten.
const MOST_PAGES: usize = 64;

/// Tells a client that its user is done at a page, also when the call that sent the user there is over.
#[derive(Clone, Debug)]
pub struct PageDone {
    session: Weak<SessionKeep>,
    /// What the client knows the page by.
    id: String,
}

impl PageDone {
    /// Tells it. A client whose session is over, or that listens to nothing, does not hear it.
    pub fn tell(&self) {
        if let Some(session) = self.session.upgrade() {
            session.say(page_done(&self.id));
        }
    }
}

impl Context {
    /// Returns what tells the client that its user is done at a page that it was asked to open under this key; nothing if it
    /// was not, or its revision has no such notice.
    pub fn page_done(&self, key: &str) -> Option<PageDone> {
        let session = self.shared().surroundings().session()?;
        let id = self.shared().page(key)?;
        Some(PageDone { session: Arc::downgrade(session), id })
    }
}

impl Shared {
    /// Notes what the client knows a page by that it is asked to open.
    pub(crate) fn note_page(&self, key: &str, id: &str) {
        let mut state = self.lock();
        if state.pages.len() >= MOST_PAGES {
            state.pages.remove(0);
        }
        state.pages.push((key.to_owned(), id.to_owned()));
    }

    fn page(&self, key: &str) -> Option<String> {
        let state = self.lock();
        state.pages.iter().rev().find(|(known, _)| known == key).map(|(_, id)| id.clone())
    }
}

/// Writes the notice that the user is done at a page.
pub(crate) fn page_done(id: &str) -> String {
    emit::notification("notifications/elicitation/complete", |writer| {
        writer.open_object();
        writer.plain_key("elicitationId");
        writer.string(id);
        writer.close_object();
    })
}
