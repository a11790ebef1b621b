//! Continues the sessions that an earlier run, or another process, had with the server.
//!
//! Nothing is sent for it: the connection is as if it had been open all the time, and the first request shows whether the
//! server still knows the session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sha2::{Digest as _, Sha256};
use trunkline_config::{ConnectionSharing, ServerConfig, ServerLocation};
use trunkline_protocol::Era;
use trunkline_session::{Principal, StateHandle};

use super::Upstream;
use super::caller_profile::{CallerProfile, PoolKey};
use super::connection::{ConnectionCallbacks, UpstreamConnection};
use super::connection_scope::ConnectionScope;
use super::lifecycle::LifecycleEvent;
use super::list_set::ListSet;
use super::roots::UpstreamRoots;
use super::status::KnownServer;
use super::upstream_state::UpstreamState;
use crate::login::Account;
use crate::upstream_sessions::{SessionRowKey, UpstreamSession};

impl Upstream {
    /// Requests that the sessions with the server are stored as they are now.
    pub(super) fn notify_session_changed(&self) {
        if let Some(rows) = &self.options.upstream_sessions {
            rows.notify_changed();
        }
    }

    /// Returns the scope of a pool key if sessions of it may be stored and none is connected.
    pub(super) fn revivable_scope(&self, state: &UpstreamState, key: &PoolKey) -> Option<ConnectionScope> {
        self.options.upstream_sessions.as_ref()?;
        let may_be_stored = key.variables.is_empty() && self.is_recordable(&key.scope);
        (may_be_stored && !has_connection(state, &key.scope)).then(|| key.scope.clone())
    }

    /// Reports whether sessions of a scope are stored. Those of the hub alone and of one call are of no use to a later
    /// run.
    fn is_recordable(&self, scope: &ConnectionScope) -> bool {
        let config = self.config.load();
        let is_endpoint = matches!(config.location, ServerLocation::Endpoint(_));
        is_endpoint
            && match scope {
                ConnectionScope::Principal(_) | ConnectionScope::Session(_) => true,
                ConnectionScope::Shared => config.sharing == ConnectionSharing::All,
                ConnectionScope::Unassigned | ConnectionScope::Call => false,
            }
    }

    /// Connects the stored sessions that may serve a caller, unless there are connections for it.
    pub(crate) async fn revive_for(self: &Arc<Self>, profile: &CallerProfile) {
        let scope = {
            let state = self.lock();
            self.revivable_scope(&state, &self.pool_key_of(profile, &state))
        };
        if let Some(scope) = scope {
            self.revive(&scope).await;
        }
    }

    /// Connects the stored sessions of a scope, unless it has connections.
    pub(super) async fn revive(self: &Arc<Self>, scope: &ConnectionScope) {
        let Some(rows) = self.options.upstream_sessions.as_ref().filter(|_| self.is_recordable(scope)) else {
            return;
        };
        let _one_at_a_time = self.revival_turn.lock().await;
        if has_connection(&self.lock(), scope) {
            return;
        }
        let key = self.row_key(scope);
        let sessions = rows.claim(&key).await;
        for session in &sessions {
            self.continue_session(scope, session).await;
        }
        if !sessions.is_empty() {
            rows.end_revival(&key);
            self.notify_changed();
        }
    }

    /// Connects one stored session. Without it, its callers get a new one.
    async fn continue_session(self: &Arc<Self>, scope: &ConnectionScope, session: &UpstreamSession) {
        let Some(resumed) = session.to_resumable() else { return };
        let config = self.config.load_full();
        let key = PoolKey { input: session.input, era: Era::Legacy, ..PoolKey::for_subscription(scope) };
        // A server that was sent roots within a call serves only callers with the same ones, so that they have to be known.
        if session.asks_roots || session.sent_roots.is_some() {
            self.asks_roots.store(true, Ordering::Release);
        }
        let timeout = self.options.limits.roots_timeout;
        let roots = UpstreamRoots::resumed(session.sent_roots, timeout, self.asks_roots.clone());
        let callbacks =
            ConnectionCallbacks { roots, url_elicitations: Arc::default(), calls: Arc::default() };
        let client = match self.connect(&config, &key, callbacks.clone(), Some(resumed)).await {
            Ok(client) => client,
            Err(error) => {
                tracing::debug!(server = %self.name, %error, "a stored session cannot be continued");
                return;
            }
        };
        let mut state = self.lock();
        let is_full = state.connections.len() + state.attempts.len() + state.closing
            >= self.options.limits.connections_per_server.max(1);
        if is_full || !state.lifecycle().is_active() {
            drop(state);
            tokio::spawn(client.close());
            return;
        }
        tracing::info!(server = %self.name, "continuing a session of an earlier run");
        let known = Arc::new(KnownServer::from_info(&client.server()));
        let is_less = state.learn_eras(Era::Legacy, &known);
        state.known_server = Some(known);
        state.apply(LifecycleEvent::Connected);
        let connection = UpstreamConnection::new(client, key, callbacks, self.wait_list.clone());
        state.add_connection(&connection);
        drop(state);
        if is_less {
            (self.on_event)(super::UpstreamEvent::ListsChanged(ListSet::NONE));
        }
    }

    /// Returns the sessions to store, by their rows.
    pub(crate) fn recordable_sessions(&self) -> Vec<(SessionRowKey, Vec<UpstreamSession>)> {
        let connections: Vec<_> = self.lock().usable().cloned().collect();
        let asks_roots = self.asks_roots();
        let mut rows: Vec<(ConnectionScope, Vec<UpstreamSession>)> = Vec::new();
        for connection in connections.iter().filter(|connection| self.is_recorded(connection)) {
            let Some(session) = connection.client.resumable_session() else { continue };
            let sent_roots = connection.roots.sent();
            let Some(session) = UpstreamSession::new(connection.input, asks_roots, sent_roots, &session)
            else {
                tracing::debug!(server = %self.name, "a session is too long to be stored");
                continue;
            };
            let scope = connection.scope();
            match rows.iter_mut().find(|(known, _)| *known == scope) {
                Some((_, sessions)) => sessions.push(session),
                None => rows.push((scope, vec![session])),
            }
        }
        rows.into_iter().map(|(scope, sessions)| (self.row_key(&scope), sessions)).collect()
    }

    /// Leaves the stored sessions open at the server when their connections are closed.
    pub(crate) fn keep_sessions(&self, stored: &[StateHandle]) {
        let connections: Vec<_> = self.lock().connections.clone();
        let is_stored = |connection: &&Arc<UpstreamConnection>| {
            self.is_recorded(connection) && stored.contains(&self.row_key(&connection.scope()).handle)
        };
        connections.iter().filter(is_stored).for_each(|connection| connection.client.keep_session());
    }

    /// Reports whether a connection's session is stored. One that was sent the roots of several callers, or none of
    /// theirs, is closed after its last call; one with variables of a caller is opened with them again.
    fn is_recorded(&self, connection: &UpstreamConnection) -> bool {
        !connection.is_closed()
            && !connection.has_caller_variables()
            && !connection.roots.is_tainted()
            && !connection.is_of_unstored_client()
            && connection.matches_scope(|scope| self.is_recordable(scope))
    }

    /// Returns the key of the row for the sessions of a scope: a digest of everything that they are opened with.
    fn row_key(&self, scope: &ConnectionScope) -> SessionRowKey {
        let (kind, id, principal) = match scope {
            ConnectionScope::Principal(principal) => {
                ("principal", format!("{principal:?}"), principal.clone())
            }
            // A session may be of any principal, and knowing its id is knowing the row.
            ConnectionScope::Session(session) => ("session", session.to_string(), Principal::Process),
            _ => ("all", String::new(), Principal::Process),
        };
        let user = self.user.as_ref().map(Account::to_string).unwrap_or_default();
        let mut hash = Sha256::new_with_prefix(b"trunkline upstream sessions");
        for part in [kind, &id, self.name.as_str(), &user]
            .into_iter()
            .map(str::to_owned)
            .chain(settings(&self.config()))
        {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let handle = StateHandle::from_digest(digest.first_chunk().copied().unwrap_or_default());
        SessionRowKey { handle, principal }
    }
}

/// Returns the settings of a server that its sessions depend on.
fn settings(config: &ServerConfig) -> Vec<String> {
    let mut parts = vec![
        config.sharing.as_str().to_owned(),
        format!("{:?} {:?} {:?}", config.era, config.revision, config.auth),
    ];
    if let ServerLocation::Endpoint(endpoint) = &config.location {
        parts.push(endpoint.url.expose().to_owned());
        parts.push(endpoint.transport.as_str().to_owned());
        for (name, value) in &endpoint.headers {
            parts.extend([name.clone(), value.expose().to_owned()]);
        }
    }
    parts
}

fn has_connection(state: &UpstreamState, scope: &ConnectionScope) -> bool {
    state.usable().any(|connection| connection.matches_scope(|known| known == scope))
}
