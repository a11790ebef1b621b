//! State that a handler keeps between calls.
//!
//! A state has a handle. Within a legacy session a handler without a handle has the session's own state, one for each
//! type; any other caller gets a new state, and its handle for later calls. One handler body serves both: it takes
//! the handle as an optional argument and returns the one that it has.
//!
//! # Invariants
//!
//! - State of a session ends with the session: `session_state_ends_with_the_session`.

mod error;
mod local;
mod persistent;
mod session_states;

use std::sync::Arc;

use trunkline_session::{LiveStates, MemoryStates, StateLimits, StateStore, Timestamp};

pub use self::error::StateError;
pub use self::local::LocalState;
pub use self::persistent::PersistentState;
pub(crate) use self::session_states::SessionStates;

/// All state between the calls of one host.
#[derive(Debug)]
pub(crate) struct StateStores {
    live: LiveStates,
    stored: Arc<dyn StateStore>,
}

impl StateStores {
    pub(crate) fn new(limits: &StateLimits, stored: Option<Arc<dyn StateStore>>) -> Self {
        let stored = stored.unwrap_or_else(|| Arc::new(MemoryStates::new(limits.clone())));
        Self { live: LiveStates::new(limits.clone()), stored }
    }

    /// Removes the states that have expired.
    pub(crate) async fn expire(&self, now: Timestamp) {
        self.live.expire(now);
        if let Err(error) = self.stored.expire(now).await {
            tracing::warn!(%error, "stored state could not be swept");
        }
    }

    /// Returns the number of states, live ones and stored ones.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.live.count(), self.stored.count())
    }
}

impl Default for StateStores {
    fn default() -> Self {
        Self::new(&StateLimits::default(), None)
    }
}
