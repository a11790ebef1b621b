//! Making a connection, and what comes of it.

use std::sync::{Arc, Weak};

use parking_lot::MutexGuard;
use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_client::config::with_pinned_revision;
use trunkline_client::{Client, ClientLimits, Error};
use trunkline_config::{ConnectionSharing, ServerConfig, ServerLocation};
use trunkline_protocol::Era;
use trunkline_protocol::model::Implementation;

use super::caller_profile::{CallerProfile, PoolKey};
use super::connection::{ConnectionCallbacks, ConnectionScope, UpstreamConnection};
use super::era::KnownEras;
use super::input::SessionInputHandler;
use super::roots::UpstreamRoots;
use super::status::{KnownServer, UpstreamFailure};
use super::upstream_state::{AttemptOutcome, ConnectionAttempt, UpstreamPhase, UpstreamState};
use super::{Upstream, supervisor};
use crate::loop_detection::{VIA_KEY, ViaPath};

impl Upstream {
    /// Begins to connect.
    pub(super) fn start_attempt(
        self: &Arc<Self>,
        desk: &mut UpstreamState,
        place: PoolKey,
        party: Option<&CallerProfile>,
    ) -> watch::Receiver<Option<AttemptOutcome>> {
        let (number, config) = (desk.next_attempt(), self.config.load_full());
        let known = party.and_then(|party| party.roots.clone()).map(|(_, roots)| roots);
        let roots = UpstreamRoots::new(known, self.options.limits.roots_timeout, self.asks_roots.clone());
        tracing::debug!(server = %self.name, scope = %place.describe(), "connecting");
        let asides = ConnectionCallbacks { roots, url_elicitations: Arc::default(), calls: Arc::default() };
        let connecting = self.connect(&config, &place, asides.clone());
        let (weak, share, party) = (Arc::downgrade(self), config.sharing, party.cloned());
        let digest = party.as_ref().and_then(|party| party.roots.as_ref()).map(|(digest, _)| *digest);
        let (tell, done) = watch::channel(None);
        let (wanted, era) = (place.clone(), place.era);
        let task = tokio::spawn(async move {
            let broken = AttemptGuard { upstream: weak.clone(), number };
            let outcome = connecting.await;
            let Some(upstream) = weak.upgrade() else { return };
            let done = upstream.finish_attempt(number, outcome, asides, era, |eras, known| match &party {
                Some(party) => upstream.pool_key_of(party, eras),
                None => hub_pool_key(wanted, share, known),
            });
            tell.send_replace(Some(done));
            drop(broken);
            // Told after everybody who waits can see the outcome.
            upstream.notify_changed();
        });
        let attempt = ConnectionAttempt {
            number,
            pool_key: place,
            roots: digest,
            outcome: done.clone(),
            task: task.abort_handle(),
        };
        desk.attempts.push(attempt);
        done
    }

    fn connect(
        &self,
        config: &ServerConfig,
        place: &PoolKey,
        ConnectionCallbacks { roots, url_elicitations: pages, calls }: ConnectionCallbacks,
    ) -> trunkline_client::BoxFuture<'static, Result<Client, Error>> {
        let (limits, name) = (&self.options.limits, self.name.clone());
        let builder = Client::builder()
            .identity(Implementation::clone(&self.options.client_identity))
            .limits(ClientLimits {
                message_bytes: limits.message_bytes,
                items: limits.list_items,
                list_bytes: limits.list_bytes,
                // Results are kept by whoever asked for them; here they would be kept twice.
                cache_entries: 0,
                // How long a call may take is said with each, since that may change while a connection is there.
                ..ClientLimits::default()
            })
            .on_session_log(move |message, is_abandoned| calls.log(&name, message, is_abandoned))
            .list_meta(VIA_KEY, ViaPath::default().to_raw_with(&self.hub))
            .input(SessionInputHandler {
                capabilities: place.input.capabilities(),
                roots,
                url_elicitations: pages,
            })
            .prefer(place.era);
        let builder = with_pinned_revision(builder, config);
        let (options, config, predecessor) = (self.options.clone(), config.clone(), self.predecessor.clone());
        Box::pin(async move {
            if let Some(name) = &config.unset_variable {
                return Err(Error::Invalid(format!(
                    "environment variable `{name}` of its configuration is not set"
                )));
            }
            // Two programs of one server would be at odds over its port or its files.
            let predecessor = predecessor.upgrade();
            if let Some(program) =
                predecessor.filter(|before| matches!(before.config().location, ServerLocation::Program(_)))
            {
                program.wait_removed().await;
            }
            options.connector.connect(&config, builder).await
        })
    }

    /// Takes over what came of an attempt.
    fn finish_attempt(
        self: &Arc<Self>,
        number: u64,
        outcome: Result<Client, Error>,
        asides: ConnectionCallbacks,
        wanted: Era,
        place: impl FnOnce(&KnownEras, &KnownServer) -> PoolKey,
    ) -> AttemptOutcome {
        let mut desk = self.lock();
        desk.attempts.retain(|attempt| attempt.number != number);
        let client = match outcome {
            Ok(client) if desk.phase == UpstreamPhase::Active => client,
            Ok(client) => {
                drop(desk);
                tokio::spawn(client.close());
                return Err(UpstreamFailure::lost("it was disconnected in the meantime".to_owned()));
            }
            Err(error) => {
                drop(desk);
                return Err(self.record_error(&error));
            }
        };
        let known = Arc::new(KnownServer::from_info(&client.server()));
        let is_less = desk.learn_eras(wanted, &known);
        let release = |desk: MutexGuard<'_, UpstreamState>| {
            drop(desk);
            if is_less {
                (self.on_event)(super::UpstreamEvent::ListsChanged(super::ListSet::NONE));
            }
        };
        let place = place(&desk.eras, &known);
        tracing::info!(server = %self.name, revision = %known.revision, "connected");
        desk.known_server = Some(known);
        (desk.failure, desk.is_idle_stopped) = (None, false);
        desk.starts += 1;
        let twin = desk.usable().find(|twin| twin.matches_key(&place)).cloned();
        // Two made it at one time where one is enough, or it was made to learn that the server does not speak the caller's era.
        if let Some(twin) = twin.filter(|_| place.scope == ConnectionScope::Shared || place.era != wanted) {
            release(desk);
            tokio::spawn(client.close());
            return Ok(twin);
        }
        let connection = UpstreamConnection::new(client, place, asides, self.wait_list.clone());
        // One that nobody has needed is not needed from here on.
        desk.usable()
            .filter(|other| other.scope() == ConnectionScope::Unassigned)
            .for_each(|other| other.wake_supervisor());
        desk.connections.push(connection.clone());
        release(desk);
        supervisor::spawn(self, &connection);
        Ok(connection)
    }

    fn record_error(&self, error: &Error) -> UpstreamFailure {
        self.record_failure(UpstreamFailure::from_error(error, &self.config().location))
    }

    fn record_failure(&self, failure: UpstreamFailure) -> UpstreamFailure {
        tracing::warn!(server = %self.name, reason = failure.reason, "cannot connect");
        let lost_offers = self.update_state(|desk| {
            desk.backoff.record_failure(Instant::now(), &self.options.limits);
            desk.record_failure(failure.clone())
        });
        if lost_offers {
            (self.on_event)(super::UpstreamEvent::ListsChanged(super::ListSet::NONE));
        }
        failure
    }
}

/// Ends an attempt that comes to nothing because whoever connects panics, as one that failed.
struct AttemptGuard {
    upstream: Weak<Upstream>,
    number: u64,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        let is_left = {
            let mut desk = upstream.lock();
            let before = desk.attempts.len();
            desk.attempts.retain(|attempt| attempt.number != self.number);
            desk.attempts.len() < before
        };
        // One that was taken over or given up is not here any more.
        if is_left {
            upstream.record_failure(UpstreamFailure::panicked());
        }
    }
}

/// Returns the place of a connection that the hub made by itself: before anybody needed it, or to watch for somebody.
fn hub_pool_key(wanted: PoolKey, share: ConnectionSharing, known: &KnownServer) -> PoolKey {
    let wanted = PoolKey { era: known.era(), ..wanted };
    let is_everybodys =
        share == ConnectionSharing::All || (share == ConnectionSharing::Principal && !known.is_stateful);
    match is_everybodys {
        true => PoolKey { scope: ConnectionScope::Shared, owner: None, ..wanted },
        false => wanted,
    }
}
