//! Making a connection, and what comes of it.

use std::sync::{Arc, Weak};

use parking_lot::MutexGuard;
use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_client::config::pinned;
use trunkline_client::{Client, Error, Limits};
use trunkline_config::{Reach, ServerConfig, Share};
use trunkline_protocol::Era;
use trunkline_protocol::model::Implementation;

use super::connection::{Asides, Connection, Who};
use super::desk::{Attempt, Desk, Done, Phase};
use super::era::KnownEras;
use super::input::SessionInput;
use super::party::{Party, Place};
use super::roots::SessionRoots;
use super::state::{Failure, Known};
use super::{Upstream, mind};
use crate::trail::{Trail, VIA};

impl Upstream {
    /// Begins to connect.
    pub(super) fn start(
        self: &Arc<Self>,
        desk: &mut Desk,
        place: Place,
        party: Option<&Party>,
    ) -> watch::Receiver<Option<Done>> {
        let (number, config) = (desk.next_attempt(), self.config.load_full());
        let known = party.and_then(|party| party.roots.clone()).map(|(_, roots)| roots);
        let roots = SessionRoots::new(known, self.options.limits.roots_within, self.asks_roots.clone());
        tracing::info!(server = %self.name, for_whom = %place.describe(), "connecting");
        let asides = Asides { roots, pages: Arc::default(), calls: Arc::default() };
        let connecting = self.connect(&config, &place, asides.clone());
        let (weak, share, party) = (Arc::downgrade(self), config.share, party.cloned());
        let digest = party.as_ref().and_then(|party| party.roots.as_ref()).map(|(digest, _)| *digest);
        let (tell, done) = watch::channel(None);
        let (wanted, era) = (place.clone(), place.era);
        let task = tokio::spawn(async move {
            let broken = Broken { upstream: weak.clone(), number };
            let outcome = connecting.await;
            let Some(upstream) = weak.upgrade() else { return };
            let done = upstream.connected(number, outcome, asides, era, |eras, known| match &party {
                Some(party) => upstream.place_of(party, eras),
                None => place_of_hub(wanted, share, known),
            });
            tell.send_replace(Some(done));
            drop(broken);
            // Told after everybody who waits can see the outcome.
            upstream.beat();
        });
        let attempt = Attempt { number, place, roots: digest, done: done.clone(), task: task.abort_handle() };
        desk.attempts.push(attempt);
        done
    }

    fn connect(
        &self,
        config: &ServerConfig,
        place: &Place,
        Asides { roots, pages, calls }: Asides,
    ) -> trunkline_client::BoxFuture<'static, Result<Client, Error>> {
        let (limits, name) = (&self.options.limits, self.name.clone());
        let builder = Client::builder()
            .identity(Implementation::clone(&self.options.client_identity))
            .limits(Limits {
                message_bytes: limits.message_bytes,
                items: limits.list_items,
                list_bytes: limits.list_bytes,
                // Results are kept by whoever asked for them; here they would be kept twice.
                cached: 0,
                // How long a call may take is said with each, since that may change while a connection is there.
                ..Limits::default()
            })
            .on_session_log(move |message, is_abandoned| calls.log(&name, message, is_abandoned))
            .list_meta(VIA, Trail::default().and(&self.hub))
            .input(SessionInput { capabilities: place.input.capabilities(), roots, pages })
            .prefer(place.era);
        let builder = pinned(builder, config);
        let (options, config, predecessor) = (self.options.clone(), config.clone(), self.predecessor.clone());
        Box::pin(async move {
            if let Some(name) = &config.unset {
                return Err(Error::Invalid(format!("the variable `{name}` of its configuration is not set")));
            }
            // Two programs of one server would be at odds over its port or its files.
            let predecessor = predecessor.upgrade();
            if let Some(program) =
                predecessor.filter(|before| matches!(before.config().reach, Reach::Program(_)))
            {
                program.gone().await;
            }
            options.connector.connect(&config, builder).await
        })
    }

    /// Takes over what came of an attempt.
    fn connected(
        self: &Arc<Self>,
        number: u64,
        outcome: Result<Client, Error>,
        asides: Asides,
        wanted: Era,
        place: impl FnOnce(&KnownEras, &Known) -> Place,
    ) -> Done {
        let mut desk = self.lock();
        desk.attempts.retain(|attempt| attempt.number != number);
        let client = match outcome {
            Ok(client) if desk.phase == Phase::Open => client,
            Ok(client) => {
                drop(desk);
                tokio::spawn(client.close());
                return Err(Failure::lost("it was disconnected meanwhile".to_owned()));
            }
            Err(error) => {
                drop(desk);
                return Err(self.failed(&error));
            }
        };
        let known = Arc::new(Known::of(&client.server()));
        let is_less = desk.learn_eras(wanted, &known);
        let release = |desk: MutexGuard<'_, Desk>| {
            drop(desk);
            if is_less {
                (self.tell)(super::Told::Offers(super::Lists::NONE));
            }
        };
        let place = place(&desk.eras, &known);
        tracing::info!(server = %self.name, revision = %known.revision, "connected");
        desk.known = Some(known);
        (desk.failure, desk.is_resting) = (None, false);
        desk.starts += 1;
        let twin = desk.usable().find(|twin| twin.is_at(&place)).cloned();
        // Two made it at one time where one is enough, or it was made to learn that the server does not speak the caller's era.
        if let Some(twin) = twin.filter(|_| place.who == Who::Everybody || place.era != wanted) {
            release(desk);
            tokio::spawn(client.close());
            return Ok(twin);
        }
        let connection = Connection::new(client, place, asides, self.waiting.clone());
        // One that nobody has needed is not needed from here on.
        desk.usable().filter(|other| other.who() == Who::Nobody).for_each(|other| other.stir());
        desk.connections.push(connection.clone());
        release(desk);
        mind::spawn(self, &connection);
        Ok(connection)
    }

    fn failed(&self, error: &Error) -> Failure {
        self.note_failure(Failure::of(error, &self.config().reach))
    }

    fn note_failure(&self, failure: Failure) -> Failure {
        tracing::warn!(server = %self.name, reason = failure.reason, "cannot connect");
        let lost_offers = self.change(|desk| {
            desk.backoff.failed(Instant::now(), &self.options.limits);
            desk.fail(failure.clone())
        });
        if lost_offers {
            (self.tell)(super::Told::Offers(super::Lists::NONE));
        }
        failure
    }
}

/// Ends an attempt that comes to nothing because whoever connects panics, as one that failed.
struct Broken {
    upstream: Weak<Upstream>,
    number: u64,
}

impl Drop for Broken {
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
            upstream.note_failure(Failure::broken());
        }
    }
}

/// Returns the place of a connection that the hub made by itself: before anybody needed it, or to watch for somebody.
fn place_of_hub(wanted: Place, share: Share, known: &Known) -> Place {
    let wanted = Place { era: known.era(), ..wanted };
    let is_everybodys = share == Share::All || (share == Share::Principal && !known.keeps_sessions);
    match is_everybodys {
        true => Place { who: Who::Everybody, owner: None, ..wanted },
        false => wanted,
    }
}
