use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_session::{LiveValue, StateHandle, StateLifetime};

use super::StateError;
use super::session_states::StateStorage;
use crate::call::Context;
use crate::server_core::now;

/// A value of this process that is kept between calls.
///
/// Clones are the same value. Several calls may use it at once, so every use takes its lock for as long as it lasts,
/// and cannot await anything meanwhile.
pub struct LocalState<T> {
    handle: StateHandle,
    value: Arc<Mutex<T>>,
}

impl<T> LocalState<T> {
    /// Returns the handle to give to the caller, with which a later call finds the value again.
    pub fn handle(&self) -> String {
        self.handle.to_string()
    }

    /// Returns a copy of the value.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.lock().clone()
    }

    /// Reads the value, or changes it, and returns the function's result.
    ///
    /// The function must not use the same state again.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        // A change that panicked may have left the value incomplete, but only the author can know what that means.
        self.value.lock()
    }
}

impl<T> Clone for LocalState<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle, value: self.value.clone() }
    }
}

impl<T> fmt::Debug for LocalState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State<{}>({:?})", type_name::<T>(), self.handle)
    }
}

impl Context {
    /// Returns the state under a handle that an earlier call returned.
    ///
    /// Without a handle a call of a legacy session gets the session's own state of this type, and any other call a
    /// new one. So a handler that takes the handle as an optional argument and returns [`LocalState::handle`] keeps
    /// its state for callers of both kinds.
    ///
    /// # Errors
    /// [`StateError`]: the caller has nothing of this type under this handle, or its session is over.
    pub fn state<T: Default + Send + 'static>(
        &self,
        handle: Option<&str>,
    ) -> Result<LocalState<T>, StateError> {
        let scope = self.shared().scope();
        let (states, session) = (scope.states(), scope.session());
        let (principal, now) = (self.principal(), now());
        let fresh = || -> LiveValue { Arc::new(Mutex::new(T::default())) };
        let (handle, value) = match (handle, session) {
            (Some(handle), _) => {
                let handle = StateHandle::parse(handle).ok_or(StateError::NotFound)?;
                (handle, states.live.get(handle, &principal, now).ok_or(StateError::NotFound)?)
            }
            (None, None) => {
                let value = fresh();
                (states.live.create(&principal, StateLifetime::Idle, value.clone(), now), value)
            }
            (None, Some(session)) => {
                let handle = session.states.handle::<T>(StateStorage::Live)?;
                let known = states.live.get(handle, &principal, now);
                let lifetime = session.states.lifetime();
                let value = known
                    .unwrap_or_else(|| states.live.get_or_insert(handle, &principal, lifetime, fresh(), now));
                if session.states.discard_if_ended(StateStorage::Live, handle) {
                    return Err(StateError::SessionEnded);
                }
                (handle, value)
            }
        };
        let value = value.downcast::<Mutex<T>>().map_err(|_| StateError::WrongType)?;
        Ok(LocalState { handle, value })
    }
}
