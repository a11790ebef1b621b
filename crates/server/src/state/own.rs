use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use trunkline_session::{Lifetime, SessionId, StateHandle};

use super::{StateError, States};

/// The bags that belong to a legacy session, one of each kind for each type.
///
/// Their handles follow from the session's id, so that every node which serves the session finds the same stored ones. They
/// end with the session, unless they go by a name that outlives it.
#[derive(Debug)]
pub(crate) struct OwnBags {
    name: SessionId,
    lifetime: Lifetime,
    states: Arc<States>,
    held: Mutex<Held>,
}

/// Where a bag is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Live,
    Stored,
}

#[derive(Debug, Default)]
struct Held {
    ended: bool,
    handles: HashSet<(Kind, StateHandle)>,
}

impl OwnBags {
    pub(crate) fn new(session: SessionId, outliving: Option<SessionId>, states: Arc<States>) -> Self {
        let (name, lifetime) = match outliving {
            Some(name) => (name, Lifetime::Idle),
            None => (session, Lifetime::Session),
        };
        Self { name, lifetime, states, held: Mutex::default() }
    }

    /// Returns where the bags are kept.
    pub(crate) fn states(&self) -> &Arc<States> {
        &self.states
    }

    /// Returns the name that the bags go by.
    pub(crate) fn name(&self) -> SessionId {
        self.name
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    /// Returns the handle of the session's own bag of a type, whether or not there is one already.
    pub(super) fn handle<T: 'static>(&self, kind: Kind) -> Result<StateHandle, StateError> {
        let text = format!("trunkline state {kind:?} {} {}", self.name, std::any::type_name::<T>());
        let digest = Sha256::digest(text.as_bytes());
        let handle = StateHandle::from_digest(digest.first_chunk().copied().unwrap_or_default());
        let mut held = self.lock();
        if held.ended {
            return Err(StateError::SessionOver);
        }
        held.handles.insert((kind, handle));
        Ok(handle)
    }

    /// Forgets a bag that was made while the session ended; reports whether the session is over.
    pub(super) fn ended_meanwhile(&self, kind: Kind, handle: StateHandle) -> bool {
        let ended = self.lock().ended;
        if ended && self.lifetime == Lifetime::Session {
            self.forget(kind, handle);
        }
        ended
    }

    /// Ends the bags that are only the session's; nothing can be kept for it any more.
    pub(crate) fn end(&self) {
        let handles = {
            let mut held = self.lock();
            held.ended = true;
            std::mem::take(&mut held.handles)
        };
        if self.lifetime == Lifetime::Idle {
            return;
        }
        for (kind, handle) in handles {
            self.forget(kind, handle);
        }
    }

    fn forget(&self, kind: Kind, handle: StateHandle) {
        match kind {
            Kind::Live => self.states.live.forget(handle),
            Kind::Stored => self.states.stored.forget(handle),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}
