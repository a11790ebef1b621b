use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use trunkline_session::{SessionId, StateHandle, StateLifetime};

use super::{StateError, StateStores};

/// The bags that belong to a legacy session, one of each kind for each type.
///
/// Their handles follow from the session's id, so that every node which serves the session finds the same stored ones. They
/// end with the session, unless they go by a name that outlives it.
#[derive(Debug)]
pub(crate) struct SessionStates {
    id: SessionId,
    lifetime: StateLifetime,
    states: Arc<StateStores>,
    owned: Mutex<OwnedHandles>,
}

/// Where a bag is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StateStorage {
    Live,
    Stored,
}

#[derive(Debug, Default)]
struct OwnedHandles {
    ended: bool,
    handles: HashSet<(StateStorage, StateHandle)>,
}

impl SessionStates {
    pub(crate) fn new(session: SessionId, outliving: Option<SessionId>, states: Arc<StateStores>) -> Self {
        let (name, lifetime) = match outliving {
            Some(name) => (name, StateLifetime::Idle),
            None => (session, StateLifetime::Session),
        };
        Self { id: name, lifetime, states, owned: Mutex::default() }
    }

    /// Returns where the bags are kept.
    pub(crate) fn states(&self) -> &Arc<StateStores> {
        &self.states
    }

    /// Returns the name that the bags go by.
    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(super) fn lifetime(&self) -> StateLifetime {
        self.lifetime
    }

    /// Returns the handle of the session's own bag of a type, whether or not there is one already.
    pub(super) fn handle<T: 'static>(&self, kind: StateStorage) -> Result<StateHandle, StateError> {
        let text = format!("trunkline state {kind:?} {} {}", self.id, std::any::type_name::<T>());
        let digest = Sha256::digest(text.as_bytes());
        let handle = StateHandle::from_digest(digest.first_chunk().copied().unwrap_or_default());
        let mut held = self.lock();
        if held.ended {
            return Err(StateError::SessionEnded);
        }
        held.handles.insert((kind, handle));
        Ok(handle)
    }

    /// Forgets a bag that was made while the session ended; reports whether the session is over.
    pub(super) fn discard_if_ended(&self, kind: StateStorage, handle: StateHandle) -> bool {
        let ended = self.lock().ended;
        if ended && self.lifetime == StateLifetime::Session {
            self.remove(kind, handle);
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
        if self.lifetime == StateLifetime::Idle {
            return;
        }
        for (kind, handle) in handles {
            self.remove(kind, handle);
        }
    }

    fn remove(&self, kind: StateStorage, handle: StateHandle) {
        match kind {
            StateStorage::Live => self.states.live.forget(handle),
            StateStorage::Stored => self.states.stored.forget(handle),
        }
    }

    fn lock(&self) -> MutexGuard<'_, OwnedHandles> {
        self.owned.lock()
    }
}
