//! The store of sessions that `--store` or `[store]` chooses.

use std::sync::Arc;

use trunkline_server::session::SessionLimits;
use trunkline_server::{HostOptions, http::HttpServerOptions};
use trunkline_store_file::{FileStore, FileStoreError, FileStoreLimits};

use super::options::HttpArgs;
use crate::exit::{CliFailure, ExitReason};
use crate::values::StoreLocation;

/// Opens the chosen store; `None` is memory.
///
/// # Errors
/// There is no state key, or the file cannot be used.
pub(super) fn open(
    http: &HttpArgs,
    options: &HostOptions,
    configured: Option<StoreLocation>,
) -> Result<Option<FileStore>, CliFailure> {
    let location = http.store.clone().or(configured);
    let Some(StoreLocation::File(path)) = location else { return Ok(None) };
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
    let store = FileStore::open(&path, keys, limits).map_err(failure)?;
    let sessions = trunkline_server::session::SessionStore::count(&store.sessions());
    tracing::info!(store = %path.display(), sessions, "opened the session store");
    Ok(Some(store))
}

fn failure(error: FileStoreError) -> CliFailure {
    match error {
        FileStoreError::Locked(_) => CliFailure::new(ExitReason::Failed, error),
        error => CliFailure::configuration(error),
    }
}

/// Returns the limits of sessions.
pub(super) fn session_limits(http: &HttpArgs) -> SessionLimits {
    SessionLimits { total: http.max_sessions.get(), idle: http.session_ttl, ..SessionLimits::default() }
}

/// Has handler state stored there.
pub(super) fn attach_states(store: Option<&FileStore>, options: &mut HostOptions) {
    if let Some(store) = store {
        options.state_store = Some(Arc::new(store.states()));
    }
}

/// Has sessions and their events stored there.
pub(super) fn attach_sessions(store: Option<&FileStore>, options: &mut HttpServerOptions) {
    if let Some(store) = store {
        options.sessions = Some(Arc::new(store.sessions()));
        options.events = Some(Arc::new(store.events()));
    }
}
