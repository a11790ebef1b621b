use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_protocol::RawJson;
use trunkline_session::{
    Principal, ReplaceOutcome, StateHandle, StateLifetime, StateRecord, StateStore, StoreError, StoredState,
};

use super::StateError;
use super::session_states::StateStorage;
use crate::call::Context;
use crate::server_core::now;

/// How often a change is retried when other calls change the value at the same time.
const MAX_ATTEMPTS: usize = 16;

/// A value that is kept between calls as JSON in the host's store, where other nodes find it too.
pub struct PersistentState<T> {
    handle: StateHandle,
    principal: Principal,
    store: Arc<dyn StateStore>,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> PersistentState<T> {
    /// Returns the handle to give to the caller, with which a later call finds the value again.
    pub fn handle(&self) -> String {
        self.handle.to_string()
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`StateError`]: it is over, of another type, or cannot be had now.
    pub async fn get(&self) -> Result<T, StateError> {
        read(&self.load().await?)
    }

    /// Changes the value and returns what the function returns.
    ///
    /// The function is called again, on the newer value, when another call changed it first.
    ///
    /// # Errors
    /// [`StateError`]: as for [`PersistentState::get`], or the new value cannot be stored.
    pub async fn update<R>(&self, mut change: impl FnMut(&mut T) -> R) -> Result<R, StateError> {
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.load().await?;
            let mut value = read(&stored)?;
            let returned = change(&mut value);
            let value = write(&value)?;
            let replaced = self.store.replace(self.handle, &self.principal, stored.version, value, now());
            match replaced.await? {
                ReplaceOutcome::Done => return Ok(returned),
                ReplaceOutcome::Missing => return Err(StateError::NotFound),
                ReplaceOutcome::VersionMismatch => {}
            }
        }
        Err(StateError::Contended)
    }

    async fn load(&self) -> Result<StoredState, StateError> {
        self.store.get(self.handle, &self.principal, now()).await?.ok_or(StateError::NotFound)
    }
}

fn read<T: DeserializeOwned>(stored: &StoredState) -> Result<T, StateError> {
    stored.value.decode().map_err(|_| StateError::WrongType)
}

fn write<T: Serialize>(value: &T) -> Result<RawJson, StateError> {
    RawJson::from_value(value).map_err(|error| StateError::Unstorable(error.to_string()))
}

impl<T> fmt::Debug for PersistentState<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored<{}>({:?})", type_name::<T>(), self.handle)
    }
}

impl Context {
    /// Returns the stored state under a handle that an earlier call returned.
    ///
    /// As with [`Context::state`], no handle means a legacy session's own state of this type, or else a new one.
    ///
    /// # Errors
    /// [`StateError`]: the caller has no state of this type under this handle, its session is over, or the store
    /// fails.
    pub async fn persistent_state<T>(&self, handle: Option<&str>) -> Result<PersistentState<T>, StateError>
    where
        T: Default + Serialize + DeserializeOwned + 'static,
    {
        let scope = self.shared().scope();
        let own = scope.session();
        let (handle, begins) = match (handle, own) {
            (Some(handle), _) => (StateHandle::parse(handle).ok_or(StateError::NotFound)?, None),
            (None, None) => (StateHandle::random(), Some(StateLifetime::Idle)),
            (None, Some(session)) => {
                (session.states.handle::<T>(StateStorage::Stored)?, Some(session.states.lifetime()))
            }
        };
        let (principal, store) = (self.principal(), scope.states().stored.clone());
        let stored = PersistentState { handle, principal, store, value: PhantomData };
        if let Some(lifetime) = begins {
            let (principal, value) = (stored.principal.clone(), write(&T::default())?);
            let record = StateRecord { handle, principal, lifetime, value };
            let created = stored.store.create(record, now()).await;
            if own.is_some_and(|session| session.states.discard_if_ended(StateStorage::Stored, handle)) {
                return Err(StateError::SessionEnded);
            }
            match created {
                Ok(()) => return Ok(stored),
                // An earlier call of the session has made it.
                Err(StoreError::Duplicate) => {}
                Err(error) => return Err(error.into()),
            }
        }
        stored.get().await?;
        Ok(stored)
    }
}
