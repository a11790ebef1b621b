use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use trunkline_session::{SessionId, StateHandle, StateLifetime};

use super::{StateError, StateStores};

/// The states that belong to a legacy session, one of each kind for each type.
///
/// Their handles are derived from the session's id, so that every node which serves the session finds the same stored
/// ones. They end with the session, unless they are named by a cookie that outlives it.
#[derive(Debug)]
pub(crate) struct SessionStates {
    id: SessionId,
    lifetime: StateLifetime,
    states: Arc<StateStores>,
    owned: Mutex<OwnedHandles>,
}

/// The location of a state.
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

    /// Returns the stores of the states.
    pub(crate) fn states(&self) -> &Arc<StateStores> {
        &self.states
    }

    /// Returns the id that the handles are derived from.
    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(super) fn lifetime(&self) -> StateLifetime {
        self.lifetime
    }

    /// Returns the handle of the session's own state of a type, whether or not the state exists.
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

    /// Removes a state that was made while the session ended; reports whether the session is over.
    pub(super) fn discard_if_ended(&self, kind: StateStorage, handle: StateHandle) -> bool {
        let ended = self.lock().ended;
        if ended && self.lifetime == StateLifetime::Session {
            self.remove(kind, handle);
        }
        ended
    }

    /// Ends the states that belong only to the session; it can have no others from now on.
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
