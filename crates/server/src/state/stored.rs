use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_protocol::Raw;
use trunkline_session::{
    Lifetime, Principal, Replaced, StateHandle, StateRecord, StateStore, StoreError, StoredState,
};

use super::StateError;
use super::own::Kind;
use crate::call::Context;
use crate::core::now;

/// How often a change is tried again when others change the value at the same time.
const MOST_TRIES: usize = 16;

/// A value that is kept between calls as JSON in the host's store, where other nodes find it too.
pub struct Stored<T> {
    handle: StateHandle,
    principal: Principal,
    store: Arc<dyn StateStore>,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Stored<T> {
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
    /// The function is called again, on the newer value, when another call was quicker.
    ///
    /// # Errors
    /// [`StateError`]: as for [`Stored::get`], or the new value cannot be stored.
    pub async fn update<R>(&self, mut change: impl FnMut(&mut T) -> R) -> Result<R, StateError> {
        for _ in 0..MOST_TRIES {
            let stored = self.load().await?;
            let mut value = read(&stored)?;
            let returned = change(&mut value);
            let value = write(&value)?;
            let replaced = self.store.replace(self.handle, &self.principal, stored.version, value, now());
            match replaced.await? {
                Replaced::Done => return Ok(returned),
                Replaced::Missing => return Err(StateError::NotFound),
                Replaced::Outdated => {}
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

fn write<T: Serialize>(value: &T) -> Result<Raw, StateError> {
    Raw::from_value(value).map_err(|error| StateError::Unstorable(error.to_string()))
}

impl<T> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored<{}>({:?})", type_name::<T>(), self.handle)
    }
}

impl Context {
    /// Returns the stored state under a handle that an earlier call returned.
    ///
    /// As with [`Context::state`], no handle means a legacy session's own state of this type, and otherwise a new one.
    ///
    /// # Errors
    /// [`StateError`]: the caller has nothing of this type under this handle, its session is over, or the store fails.
    pub async fn stored<T>(&self, handle: Option<&str>) -> Result<Stored<T>, StateError>
    where
        T: Default + Serialize + DeserializeOwned + 'static,
    {
        let surroundings = self.shared().surroundings();
        let own = surroundings.session();
        let (handle, begins) = match (handle, own) {
            (Some(handle), _) => (StateHandle::parse(handle).ok_or(StateError::NotFound)?, None),
            (None, None) => (StateHandle::random(), Some(Lifetime::Idle)),
            (None, Some(session)) => (session.bags.handle::<T>(Kind::Stored)?, Some(session.bags.lifetime())),
        };
        let (principal, store) = (self.principal(), surroundings.states().stored.clone());
        let stored = Stored { handle, principal, store, value: PhantomData };
        if let Some(lifetime) = begins {
            let (principal, value) = (stored.principal.clone(), write(&T::default())?);
            let record = StateRecord { handle, principal, lifetime, value };
            let created = stored.store.create(record, now()).await;
            if own.is_some_and(|session| session.bags.ended_meanwhile(Kind::Stored, handle)) {
                return Err(StateError::SessionOver);
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
