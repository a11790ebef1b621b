use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_session::{SessionId, SessionRecord};

use crate::change::{ChangeSubscription, ServerChange};
use crate::env::Env;
use crate::roots::{ClientRoots, client_info_roots};
use crate::server_core::ServerCore;
use crate::shown_lists::ShownLists;
use crate::state::{SessionStates, StateStores};

/// The state that a call can reach beyond its own request.
#[derive(Clone, Debug)]
pub(crate) enum CallScope {
    /// The state of the caller's legacy session.
    Session(Arc<SessionState>),
    /// The states that callers without a session have handles of.
    Sessionless(Arc<StateStores>),
}

impl CallScope {
    pub(crate) fn states(&self) -> &Arc<StateStores> {
        match self {
            Self::Session(session) => session.states.states(),
            Self::Sessionless(states) => states,
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<SessionState>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Sessionless(_) => None,
        }
    }
}

/// The state that a legacy session keeps for its calls.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) states: SessionStates,
    pub(crate) roots: ClientRoots,
    /// The variables of the request that opened the session, or of the last `GET` that brought any.
    env: Mutex<Env>,
    /// The versions of the handler's lists that the client was shown.
    pub(crate) shown_lists: ShownLists,
    /// The client's change subscription, while there is one.
    notifier: Mutex<Weak<ChangeSubscription>>,
}

impl SessionState {
    /// `state_id` replaces the session's id as the key of the state between its calls; that state outlives the
    /// session.
    pub(crate) fn new(
        core: &ServerCore,
        record: &SessionRecord,
        env: Env,
        state_id: Option<SessionId>,
    ) -> Self {
        let client = ClientCapabilities::read(&record.capabilities, record.revision).unwrap_or_default();
        let info_roots =
            if core.client_info_roots { client_info_roots(record.client.as_ref()) } else { Vec::new() };
        if !info_roots.is_empty() {
            tracing::info!(session = %record.id.short(), "took roots from clientInfo, which no revision has");
        }
        Self {
            states: SessionStates::new(record.id, state_id, core.states.clone()),
            roots: ClientRoots::new(client.roots(), core.roots_at_start, info_roots),
            env: Mutex::new(env),
            shown_lists: ShownLists::default(),
            notifier: Mutex::default(),
        }
    }

    pub(crate) fn env(&self) -> Env {
        self.env.lock().clone()
    }

    /// Replaces the variables of the session, unless there are none.
    pub(crate) fn replace_env(&self, env: Env) {
        if !env.is_empty() {
            *self.env.lock() = env;
        }
    }

    pub(crate) fn set_notifier(&self, subscription: &Arc<ChangeSubscription>) {
        *self.notifier.lock() = Arc::downgrade(subscription);
    }

    /// Records that the client is shown a list, so that a pending notification of it is not needed any more.
    pub(crate) fn record_listed(&self, list: &ServerChange, version: u64) {
        let subscription = self.notifier.lock().upgrade();
        if let Some(subscription) = subscription {
            subscription.discard(list);
        }
        self.shown_lists.set(list, version);
    }

    /// Sends a message to the client outside of any call; it is dropped if the client listens to no stream.
    pub(crate) fn notify(&self, message: String) {
        let subscription = self.notifier.lock().upgrade();
        if let Some(subscription) = subscription {
            subscription.send_direct(message);
        }
    }
}
