//! Opens a connection and handles the outcome.

use std::sync::{Arc, Weak};

use parking_lot::MutexGuard;
use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_client::config::{pinned_era, with_pinned_revision};
use trunkline_client::{Client, ClientLimits, Error, ResumableSession};
use trunkline_config::{ConnectionSharing, ServerConfig, ServerLocation};
use trunkline_protocol::Era;
use trunkline_protocol::model::Implementation;

use super::Upstream;
use super::caller_profile::{CallerProfile, PoolKey, keeps_state};
use super::connection::{ConnectionCallbacks, UpstreamConnection};
use super::connection_scope::ConnectionScope;
use super::era::choose_era;
use super::input::SessionInputHandler;
use super::lifecycle::LifecycleEvent;
use super::reports::{log_stray_lines, report_dropped};
use super::roots::UpstreamRoots;
use super::status::{KnownServer, UpstreamFailure};
use super::upstream_state::{AttemptOutcome, ConnectionAttempt, UpstreamState};
use crate::loop_detection::{VIA_KEY, ViaPath};

impl Upstream {
    /// Starts an attempt to connect.
    pub(super) fn start_attempt(
        self: &Arc<Self>,
        state: &mut UpstreamState,
        key: PoolKey,
        profile: Option<&CallerProfile>,
    ) -> watch::Receiver<Option<AttemptOutcome>> {
        let (number, config) = (state.next_attempt(), self.config.load_full());
        let era = choose_era(key.era, pinned_era(&config), state.supported_eras(Instant::now()));
        let key = PoolKey { era, ..key };
        let known = profile.and_then(|profile| profile.roots.clone()).map(|(_, roots)| roots);
        let roots = UpstreamRoots::new(known, self.options.limits.roots_timeout, self.asks_roots.clone());
        tracing::debug!(server = %self.name, scope = %key.describe(), "connecting");
        let callbacks =
            ConnectionCallbacks { roots, url_elicitations: Arc::default(), calls: Arc::default() };
        let connecting = self.connect(&config, &key, callbacks.clone(), None);
        let (weak, profile) = (Arc::downgrade(self), profile.cloned());
        let digest = profile.as_ref().and_then(|profile| profile.roots.as_ref()).map(|(digest, _)| *digest);
        let (outcome_sender, done) = watch::channel(None);
        let wanted = key.clone();
        let task = tokio::spawn(async move {
            let broken = AttemptGuard { upstream: weak.clone(), number };
            let outcome = connecting.await;
            let Some(upstream) = weak.upgrade() else { return };
            let done =
                upstream.finish_attempt(number, outcome, callbacks, &wanted, |state, known| match &profile {
                    Some(profile) => upstream.pool_key_of(profile, state),
                    None => hub_pool_key(wanted.clone(), &config, known),
                });
            outcome_sender.send_replace(Some(done));
            drop(broken);
            // Notified after the outcome is visible to all waiting tasks.
            upstream.notify_changed();
        });
        let attempt = ConnectionAttempt {
            number,
            pool_key: key,
            roots: digest,
            outcome: done.clone(),
            task: task.abort_handle(),
        };
        state.add_attempt(attempt);
        done
    }

    /// Connects as configured, in a session that another process opened if there is one.
    pub(super) fn connect(
        &self,
        config: &ServerConfig,
        key: &PoolKey,
        ConnectionCallbacks { roots, url_elicitations, calls }: ConnectionCallbacks,
        resumed: Option<ResumableSession>,
    ) -> trunkline_client::BoxFuture<'static, Result<Client, Error>> {
        let (limits, name) = (&self.options.limits, self.name.clone());
        let (logs, logged) = (self.events.clone(), self.name.clone());
        let builder = Client::builder()
            .identity(Implementation::clone(&self.options.client_identity))
            .limits(ClientLimits {
                message_bytes: limits.message_bytes,
                message_memory: self.message_memory.clone(),
                items: limits.list_items,
                list_bytes: limits.list_bytes,
                // Clients cache results themselves; a cache here would hold them twice.
                cache_entries: 0,
                // The timeout is set with each call, since the configuration may change during a connection.
                ..ClientLimits::default()
            })
            .on_dropped(report_dropped(&self.name))
            .on_line(log_stray_lines(&self.name, &self.events))
            .observer(self.events.server_observer(&self.name))
            .on_log(move |message| logs.log(&logged, message))
            .on_session_log(move |message, _| calls.log(&name, message))
            .list_meta(VIA_KEY, ViaPath::default().to_raw_with(&self.hub))
            .input(SessionInputHandler { capabilities: key.input.capabilities(), roots, url_elicitations })
            .prefer(key.era);
        let builder = with_pinned_revision(builder, config);
        let builder = match resumed {
            Some(session) => builder.resume(session),
            None => builder,
        };
        let config = key.variables.add_to(config.clone());
        let (options, predecessor) = (self.options.clone(), self.predecessor.clone());
        let auth = self.auth.clone();
        Box::pin(async move {
            if let Some(name) = &config.unset_variable {
                return Err(Error::Invalid(format!(
                    "environment variable `{name}` of its configuration is not set"
                )));
            }
            // Two processes of one server would conflict over its port or its files.
            let predecessor = predecessor.upgrade();
            if let Some(program) =
                predecessor.filter(|before| matches!(before.config().location, ServerLocation::Program(_)))
            {
                program.wait_removed().await;
            }
            let builder = match auth.get(&config).await? {
                Some(authorizer) => builder.authorizer(authorizer),
                None => builder,
            };
            options.connector.connect(&config, builder).await
        })
    }

    /// Handles the outcome of an attempt.
    fn finish_attempt(
        self: &Arc<Self>,
        number: u64,
        outcome: Result<Client, Error>,
        callbacks: ConnectionCallbacks,
        wanted: &PoolKey,
        key: impl FnOnce(&UpstreamState, &KnownServer) -> PoolKey,
    ) -> AttemptOutcome {
        let mut state = self.lock();
        state.remove_attempt(number);
        let client = match outcome {
            Ok(client) if state.lifecycle().is_active() => client,
            Ok(client) => {
                drop(state);
                tokio::spawn(client.close());
                return Err(UpstreamFailure::lost("it was disconnected in the meantime".to_owned()));
            }
            Err(error) => {
                drop(state);
                // The variables of one caller may be the reason, and others are served.
                return Err(match wanted.variables.is_empty() {
                    true => self.record_error(&error),
                    false => self.describe_error(&error),
                });
            }
        };
        let before = state.known_server.as_deref();
        let known = Arc::new(KnownServer::from_connection(&client.server(), wanted, before));
        let is_less = state.learn_eras(wanted.era, &known);
        let release = |state: MutexGuard<'_, UpstreamState>| {
            drop(state);
            if is_less {
                (self.on_event)(super::UpstreamEvent::ListsChanged(super::ListSet::NONE));
            }
        };
        let key = key(&state, &known);
        if self.in_process.is_some() {
            // Part of this process, which a user does not know as a server.
            tracing::debug!(server = %self.name, "connected");
        } else {
            tracing::info!(server = %self.name, revision = %known.revision, "connected");
        }
        state.known_server = Some(known);
        state.apply(LifecycleEvent::Connected);
        state.starts += 1;
        if let Some(existing) = find_existing(&state, &key, &client, wanted.era) {
            release(state);
            tokio::spawn(client.close());
            return Ok(existing);
        }
        let connection = UpstreamConnection::new(client, key, callbacks, self.wait_list.clone());
        // An unassigned connection is not needed any more.
        state
            .usable()
            .filter(|other| other.scope() == ConnectionScope::Unassigned)
            .for_each(|other| other.wake_supervisor());
        state.add_connection(&connection);
        release(state);
        Ok(connection)
    }

    pub(super) fn record_error(&self, error: &Error) -> UpstreamFailure {
        let failure = self.record_failure(UpstreamFailure::from_error(error, &self.config().location));
        self.note_error(error);
        failure
    }

    /// Describes a failed attempt without an effect on other callers.
    fn describe_error(&self, error: &Error) -> UpstreamFailure {
        let failure = UpstreamFailure::from_error(error, &self.config().location);
        tracing::warn!(server = %self.name, reason = failure.reason, "cannot connect with the variables of a caller");
        failure
    }

    fn record_failure(&self, failure: UpstreamFailure) -> UpstreamFailure {
        tracing::warn!(server = %self.name, reason = failure.reason, "cannot connect");
        let lost_offers =
            self.update_state(|state| state.record_failure(failure.clone(), &self.options.limits));
        if lost_offers || self.demands_login() {
            (self.on_event)(super::UpstreamEvent::ListsChanged(super::ListSet::NONE));
        }
        failure
    }
}

/// Finds the connection that makes a new one needless: two attempts succeeded where one connection is enough, or the
/// attempt showed that the server does not support the caller's era. The connection of one call is never that of another.
fn find_existing(
    state: &UpstreamState,
    key: &PoolKey,
    client: &Client,
    wanted: Era,
) -> Option<Arc<UpstreamConnection>> {
    let is_stateless = !client.server().is_stateful();
    let is_enough = match key.scope {
        ConnectionScope::Call => false,
        ConnectionScope::Shared => true,
        _ => is_stateless || key.era != wanted,
    };
    let unassigned = PoolKey { scope: ConnectionScope::Unassigned, ..key.clone() };
    let fits = |existing: &&Arc<UpstreamConnection>| {
        existing.matches_key(key) || (is_stateless && existing.matches_key(&unassigned))
    };
    let existing = state.usable().filter(|_| is_enough).find(fits).cloned()?;
    if !existing.matches_key(key) {
        existing.claim(key);
        existing.wake_supervisor();
    }
    Some(existing)
}

/// Records an attempt as failed if its connector panics.
struct AttemptGuard {
    upstream: Weak<Upstream>,
    number: u64,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        let is_left = upstream.lock().remove_attempt(self.number);
        // An attempt that has finished or was aborted is not in the list any more.
        if is_left {
            upstream.record_failure(UpstreamFailure::panicked());
        }
    }
}

/// Returns the pool key of a connection that the hub opened by itself: before the first call, or for a subscription.
fn hub_pool_key(wanted: PoolKey, config: &ServerConfig, known: &KnownServer) -> PoolKey {
    let wanted = PoolKey { era: known.era(), ..wanted };
    let is_shared = match config.sharing {
        ConnectionSharing::All => true,
        ConnectionSharing::Principal => !keeps_state(&config.location, Some(known)),
        ConnectionSharing::Session | ConnectionSharing::Call => false,
    };
    match is_shared {
        true => PoolKey { scope: ConnectionScope::Shared, owner: None, ..wanted },
        false => wanted,
    }
}
