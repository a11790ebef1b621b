use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_session::{SessionId, SessionRecord};

use crate::change::{Change, Subscription};
use crate::core::Core;
use crate::env::Env;
use crate::roots::{SessionRoots, introduced};
use crate::shown_lists::ShownLists;
use crate::state::{OwnBags, States};

/// What a call can reach beyond its own request.
#[derive(Clone, Debug)]
pub(crate) enum Surroundings {
    /// What the caller's legacy session keeps.
    Session(Arc<SessionKeep>),
    /// The states that callers without a session have handles of.
    Alone(Arc<States>),
}

impl Surroundings {
    pub(crate) fn states(&self) -> &Arc<States> {
        match self {
            Self::Session(session) => session.bags.states(),
            Self::Alone(states) => states,
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<SessionKeep>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Alone(_) => None,
        }
    }
}

/// What a legacy session keeps for its calls.
#[derive(Debug)]
pub(crate) struct SessionKeep {
    pub(crate) bags: OwnBags,
    pub(crate) roots: SessionRoots,
    pub(crate) env: Env,
    /// What the client was shown of the handler's lists.
    pub(crate) shown: ShownLists,
    /// What tells the client of changes, once something does.
    voice: Mutex<Weak<Subscription>>,
}

impl SessionKeep {
    /// `bag` is another name than the session's own for what is kept between its calls, which outlives the session.
    pub(crate) fn new(core: &Core, record: &SessionRecord, env: Env, bag: Option<SessionId>) -> Self {
        let client = ClientCapabilities::read(&record.capabilities, record.revision).unwrap_or_default();
        let introduced = if core.client_info_roots { introduced(record.client.as_ref()) } else { Vec::new() };
        if !introduced.is_empty() {
            tracing::info!(session = %record.id.short(), "took roots from clientInfo, which no revision has");
        }
        Self {
            bags: OwnBags::new(record.id, bag, core.states.clone()),
            roots: SessionRoots::new(client.roots(), core.roots_on_demand, introduced),
            env,
            shown: ShownLists::default(),
            voice: Mutex::default(),
        }
    }

    pub(crate) fn speak_through(&self, voice: &Arc<Subscription>) {
        *self.voice.lock() = Arc::downgrade(voice);
    }

    /// Notes that the client is shown a list, of which it needs no notification any more.
    pub(crate) fn note_listed(&self, list: &Change, version: u64) {
        let voice = self.voice.lock().upgrade();
        if let Some(voice) = voice {
            voice.forget(list);
        }
        self.shown.set(list, version);
    }

    /// Says something to the client outside of any call. One that listens to nothing does not hear it.
    pub(crate) fn say(&self, message: String) {
        let voice = self.voice.lock().upgrade();
        if let Some(voice) = voice {
            voice.say(message);
        }
    }
}
