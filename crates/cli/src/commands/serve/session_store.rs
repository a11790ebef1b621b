//! The store of sessions that `--store` or `[store]` chooses.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use trunkline_hub::{StoreAccess, UpstreamSessions};
use trunkline_server::session::{BusLimits, EventStore, SessionLimits, SessionStore, StateStore};
use trunkline_server::{HostOptions, StateKeys, http::HttpServerOptions};
use trunkline_store_file::{FileStore, FileStoreError, FileStoreLimits};
use trunkline_store_redis::{RedisBus, RedisStore, RedisStoreError, RedisStoreLimits};

use super::options::HttpArgs;
use crate::exit::{CliFailure, ExitReason};
use crate::values::{RedisUrl, StoreLocation};

/// An open store that is not memory.
#[derive(Clone, Debug)]
pub(crate) enum OpenedStore {
    File(FileStore),
    Redis(Box<SharedStore>),
}

/// A store that other processes share, and the bus between them.
#[derive(Clone, Debug)]
pub(crate) struct SharedStore {
    store: RedisStore,
    bus: RedisBus,
}

impl OpenedStore {
    fn sessions(&self) -> Arc<dyn SessionStore> {
        match self {
            Self::File(store) => Arc::new(store.sessions()),
            Self::Redis(shared) => Arc::new(shared.store.sessions()),
        }
    }

    fn events(&self) -> Arc<dyn EventStore> {
        match self {
            Self::File(store) => Arc::new(store.events()),
            Self::Redis(shared) => Arc::new(shared.store.events()),
        }
    }

    fn states(&self) -> Arc<dyn StateStore> {
        match self {
            Self::File(store) => Arc::new(store.states()),
            Self::Redis(shared) => Arc::new(shared.store.states()),
        }
    }

    /// Returns where a hub stores its sessions with servers. One process at a time has a file.
    pub(crate) fn upstream_sessions(&self) -> UpstreamSessions {
        let access = match self {
            Self::File(_) => StoreAccess::Exclusive,
            Self::Redis(_) => StoreAccess::Shared,
        };
        UpstreamSessions::new(self.states(), access)
    }

    /// Replaces the keys that seal what is stored.
    pub(super) fn replace_keys(&self, keys: &StateKeys) {
        match self {
            Self::File(store) => store.replace_keys(keys),
            Self::Redis(shared) => shared.store.replace_keys(keys),
        };
    }
}

/// Opens the chosen store; `None` is memory.
///
/// # Errors
/// There is no state key, or the store cannot be used.
pub(super) async fn open(
    http: &HttpArgs,
    options: &HostOptions,
    configured: Option<StoreLocation>,
) -> Result<Option<OpenedStore>, CliFailure> {
    match http.store.clone().or(configured) {
        None | Some(StoreLocation::Memory) => Ok(None),
        Some(StoreLocation::File(path)) => open_file(http, options, &path).map(Some),
        Some(StoreLocation::Redis(url)) => open_redis(http, options, &url).await.map(Some),
    }
}

fn open_file(http: &HttpArgs, options: &HostOptions, path: &Path) -> Result<OpenedStore, CliFailure> {
    let Some(keys) = &options.state_keys else {
        return Err(CliFailure::configuration(format!(
            "the store {} needs a state key, which seals what it stores",
            path.display()
        ))
        .hint("make one with `(umask 077; head -c 32 /dev/urandom > state.key)` and add `--state-key state.key`"));
    };
    let limits = FileStoreLimits {
        sessions: session_limits(http),
        states: options.state_limits.clone(),
        ..FileStoreLimits::default()
    };
    let store = FileStore::open(path, keys, limits).map_err(|error| match error {
        FileStoreError::Locked(_) => CliFailure::new(ExitReason::Failed, error),
        error => CliFailure::configuration(error),
    })?;
    log_opened(&path.display(), &store.sessions());
    Ok(OpenedStore::File(store))
}

async fn open_redis(
    http: &HttpArgs,
    options: &HostOptions,
    url: &RedisUrl,
) -> Result<OpenedStore, CliFailure> {
    let address = url.address(|name| std::env::var(name).ok()).map_err(CliFailure::configuration)?;
    let Some(keys) = &options.state_keys else {
        return Err(CliFailure::configuration(format!(
            "the store {address} needs a state key that all processes share, which seals what it stores"
        ))
        .hint(
            "make one with `(umask 077; head -c 32 /dev/urandom > state.key)`, copy it to every replica and add \
             `--state-key state.key`",
        ));
    };
    let limits = RedisStoreLimits {
        sessions: session_limits(http),
        states: options.state_limits.clone(),
        ..RedisStoreLimits::default()
    };
    let store = RedisStore::open(&address, keys, limits).await.map_err(|error| match error {
        RedisStoreError::Unreachable { .. } => CliFailure::new(ExitReason::Unreachable, error),
        error => CliFailure::configuration(error),
    })?;
    let bus = store.join_bus(BusLimits::default()).await.map_err(|error| {
        CliFailure::new(
            ExitReason::Unreachable,
            format!("cannot reach the other processes of {address}: {error}"),
        )
    })?;
    log_opened(&address, &store.sessions());
    Ok(OpenedStore::Redis(Box::new(SharedStore { store, bus })))
}

fn log_opened(store: &dyn Display, sessions: &dyn SessionStore) {
    tracing::info!(%store, sessions = sessions.count(), "opened the session store");
}

/// Returns the limits of sessions.
pub(super) fn session_limits(http: &HttpArgs) -> SessionLimits {
    SessionLimits { total: http.max_sessions.get(), idle: http.session_ttl, ..SessionLimits::default() }
}

/// Uses the store for handler state, and its bus to reach the other processes.
pub(super) fn attach_states(store: Option<&OpenedStore>, options: &mut HostOptions) {
    if let Some(store) = store {
        options.state_store = Some(store.states());
    }
    if let Some(OpenedStore::Redis(shared)) = store {
        options.bus = Some(Arc::new(shared.bus.clone()));
    }
}

/// Uses the store for sessions and their events.
pub(super) fn attach_sessions(store: Option<&OpenedStore>, options: &mut HttpServerOptions) {
    if let Some(store) = store {
        options.sessions = Some(store.sessions());
        options.events = Some(store.events());
    }
}
