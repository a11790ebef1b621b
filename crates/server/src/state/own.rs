use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};
use trunkline_session::{SessionId, StateHandle};

use super::{StateError, States};

/// The bags that belong to a legacy session: one of each kind for each type, and those that its calls made beside them.
///
/// They end with the session.
#[derive(Debug)]
pub(crate) struct OwnBags {
    session: SessionId,
    states: Arc<States>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    ended: bool,
    live: HashMap<TypeId, StateHandle>,
    stored: HashMap<TypeId, StateHandle>,
}

impl OwnBags {
    pub(crate) fn new(session: SessionId, states: Arc<States>) -> Self {
        Self { session, states, held: Mutex::default() }
    }

    /// Returns the handle of the session's live bag of a type, which may be over.
    pub(super) fn live<T: 'static>(&self) -> Option<StateHandle> {
        self.lock().live.get(&TypeId::of::<T>()).copied()
    }

    /// Makes a bag the session's own, unless another call of the session was quicker; returns the one that is.
    ///
    /// `known` is the one that turned out to be over, if there was one.
    pub(super) fn adopt_live<T: 'static>(
        &self,
        known: Option<StateHandle>,
        fresh: StateHandle,
    ) -> Result<StateHandle, StateError> {
        let mut held = self.lock();
        if held.ended {
            return Err(StateError::SessionOver);
        }
        match held.live.get(&TypeId::of::<T>()) {
            Some(&quicker) if Some(quicker) != known => Ok(quicker),
            _ => {
                held.live.insert(TypeId::of::<T>(), fresh);
                Ok(fresh)
            }
        }
    }

    /// Returns the handle of the session's stored bag of a type.
    ///
    /// It follows from the session's id, so that every node which serves the session finds the same bag.
    pub(super) fn stored<T: 'static>(&self) -> Result<StateHandle, StateError> {
        let mut held = self.lock();
        if held.ended {
            return Err(StateError::SessionOver);
        }
        let derive = || {
            let text = format!("trunkline state {} {}", self.session, std::any::type_name::<T>());
            let digest = Sha256::digest(text.as_bytes());
            StateHandle::from_digest(digest.first_chunk().copied().unwrap_or_default())
        };
        Ok(*held.stored.entry(TypeId::of::<T>()).or_insert_with(derive))
    }

    /// Ends the bags; nothing can be kept for the session any more.
    pub(crate) fn end(&self) {
        let held = {
            let mut held = self.lock();
            held.ended = true;
            (std::mem::take(&mut held.live), std::mem::take(&mut held.stored))
        };
        held.0.into_values().for_each(|handle| self.states.live.forget(handle));
        held.1.into_values().for_each(|handle| self.states.stored.forget(handle));
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
