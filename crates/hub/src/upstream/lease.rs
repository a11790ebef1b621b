//! Finding a connection for somebody, or making one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::Upstream;
use super::connection::{Connection, Lease, Who};
use super::desk::{Attempt, Desk, Done};
use super::input::InputSet;
use super::party::{Party, Place};
use super::roots::Fits;
use super::state::{Failure, Unavailable};

/// How a connection for somebody stands.
enum Look {
    Here(Lease),
    Coming(watch::Receiver<Option<Done>>),
    /// Not before this time is over, because of what happened last.
    Later(Duration, Failure),
    /// Not before another connection has ended.
    NoRoom(usize),
}

impl Upstream {
    /// Finds a connection for somebody, or makes one.
    ///
    /// # Errors
    /// [`Unavailable`]: it cannot be connected to within what a call may wait.
    pub(crate) async fn lease(self: &Arc<Self>, party: &Party) -> Result<Lease, Unavailable> {
        match self.look(party)? {
            Look::Here(lease) => Ok(lease),
            // Boxed, so that calls which find a connection have no room for it.
            look => Box::pin(self.wait_for_lease(party, look)).await,
        }
    }

    async fn wait_for_lease(self: &Arc<Self>, party: &Party, first: Look) -> Result<Lease, Unavailable> {
        let give_up = Instant::now() + self.options.limits.wait_for_restart;
        let mut pulse = self.pulse.subscribe();
        let mut look = match first {
            // There may be room since before anybody listened for it.
            Look::NoRoom(_) => self.look(party)?,
            first => first,
        };
        loop {
            match look {
                Look::Here(lease) => return Ok(lease),
                Look::Coming(done) => match came_of(done).await {
                    Some(Ok(connection)) => {
                        if let Some(lease) = self.lease_for_call(&connection, party) {
                            return Ok(lease);
                        }
                    }
                    Some(Err(failure)) => return Err(Unavailable::Failed(failure, self.left_alone())),
                    // The attempt was given up, and the next look says why.
                    None => {}
                },
                Look::Later(wait, failure) if Instant::now() + wait > give_up => {
                    return Err(Unavailable::Failed(failure, wait));
                }
                Look::Later(wait, _) => sleep(wait).await,
                Look::NoRoom(most) => {
                    if timeout_at(give_up, pulse.changed()).await.is_err() {
                        return Err(Unavailable::Full(most));
                    }
                }
            }
            pulse.mark_unchanged();
            look = self.look(party)?;
        }
    }

    /// Begins to use a connection that was made for one call, unless it ends already.
    fn lease_for_call(&self, connection: &Arc<Connection>, party: &Party) -> Option<Lease> {
        // Whether it ends is decided under the same lock.
        let _desk = self.lock();
        if connection.who() != Who::Call || connection.is_closing() {
            return None;
        }
        connection.roots.enter_unasked(party.roots.as_ref());
        Some(connection.lease(party.roots.as_ref()))
    }

    /// Finds any connection for the hub itself, or makes one.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(crate) async fn lease_to_hub(self: &Arc<Self>) -> Result<Lease, Unavailable> {
        loop {
            let coming = {
                let mut desk = self.lock();
                desk.check()?;
                if let Some(connection) = best_for_hub(&desk) {
                    return Ok(connection.lease_to_hub());
                }
                match desk.attempts.first().map(|attempt| attempt.done.clone()) {
                    Some(done) => done,
                    None => match desk.left_alone(Instant::now()) {
                        Some((wait, failure)) => return Err(Unavailable::Failed(failure, wait)),
                        None => self.start(&mut desk, Place::nobodys(), None),
                    },
                }
            };
            self.beat();
            if let Some(Err(failure)) = came_of(coming).await {
                return Err(Unavailable::Failed(failure, self.left_alone()));
            }
        }
    }

    /// Finds a connection over which somebody may be told of changes, or makes one. Those who only watch have at most half
    /// of the connections that there may be, so that calls find room.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(super) async fn lease_to_watch(self: &Arc<Self>, who: &Who) -> Result<Lease, Unavailable> {
        loop {
            let coming = {
                let mut desk = self.lock();
                desk.check()?;
                if let Some(connection) = desk.usable_to_watch(who).first() {
                    return Ok(connection.lease_to_hub());
                }
                let unclaimed =
                    desk.usable().find(|connection| connection.is_whose(|who| *who == Who::Nobody));
                if let Some(connection) = unclaimed {
                    let lease = connection.lease_to_hub();
                    connection.claim(who.clone());
                    connection.stir();
                    return Ok(lease);
                }
                let is_theirs =
                    |attempt: &&Attempt| [who, &Who::Nobody, &Who::Everybody].contains(&&attempt.place.who);
                match desk.attempts.iter().find(is_theirs).map(|attempt| attempt.done.clone()) {
                    Some(done) => done,
                    None => {
                        if let Some((wait, failure)) = desk.left_alone(Instant::now()) {
                            return Err(Unavailable::Failed(failure, wait));
                        }
                        let most = self.options.limits.connections_per_server.div_ceil(2).max(1);
                        if desk.connections.len() + desk.attempts.len() + desk.ending >= most {
                            return Err(Unavailable::Full(most));
                        }
                        self.start(&mut desk, Place { who: who.clone(), input: InputSet::default() }, None)
                    }
                }
            };
            self.beat();
            if let Some(Err(failure)) = came_of(coming).await {
                return Err(Unavailable::Failed(failure, self.left_alone()));
            }
        }
    }

    fn left_alone(&self) -> Duration {
        self.lock().left_alone(Instant::now()).map_or(Duration::ZERO, |(wait, _)| wait)
    }

    fn look(self: &Arc<Self>, party: &Party) -> Result<Look, Unavailable> {
        let share = self.config.load().share;
        let mut desk = self.lock();
        desk.check()?;
        let place = party.place(share, desk.known.as_deref());
        if place.who != Who::Call {
            if let Some(lease) = self.find(&desk, &place, party) {
                return Ok(Look::Here(lease));
            }
            let digest = party.roots.as_ref().map(|(digest, _)| *digest);
            let same_roots = |attempt: &&Attempt| !self.asks_roots() || attempt.roots == digest;
            let coming = desk.attempts.iter().filter(same_roots).find(|attempt| {
                attempt.place.input == place.input && [&place.who, &Who::Nobody].contains(&&attempt.place.who)
            });
            if let Some(attempt) = coming {
                return Ok(Look::Coming(attempt.done.clone()));
            }
        }
        if let Some((wait, failure)) = desk.left_alone(Instant::now()) {
            return Ok(Look::Later(wait, failure));
        }
        if let Some(most) = self.make_room(&desk)? {
            return Ok(Look::NoRoom(most));
        }
        let done = self.start(&mut desk, place, Some(party));
        drop(desk);
        self.beat();
        Ok(Look::Coming(done))
    }

    /// Finds a connection that somebody may use.
    fn find(&self, desk: &Desk, place: &Place, party: &Party) -> Option<Lease> {
        let roots = party.roots.as_ref();
        for connection in desk.usable().filter(|connection| connection.input == place.input) {
            let is_nobodys = connection.is_whose(|who| *who == Who::Nobody);
            if !is_nobodys && !connection.is_whose(|who| *who == place.who) {
                continue;
            }
            let is_sessions_own = !is_nobodys && matches!(place.who, Who::Session(_));
            if let (true, Some((_, changed))) = (is_sessions_own, roots) {
                tell_of_roots(connection, changed.clone());
            }
            if self.asks_roots() && place.input.has_roots() && !is_sessions_own {
                if connection.roots.enter(roots) == Fits::No {
                    continue;
                }
            } else if !is_sessions_own && !connection.roots.serves(roots) {
                continue;
            } else {
                connection.roots.enter_unasked(roots);
            }
            let lease = connection.lease(roots);
            if is_nobodys {
                connection.claim(place.who.clone());
                // How long it may be unused depends on whose it is.
                connection.stir();
            }
            return Some(lease);
        }
        None
    }

    /// Sees to it that there may be one more connection, by ending the one that was unused for longest; returns how many there
    /// may be if it has to be waited for the end of one.
    fn make_room(&self, desk: &Desk) -> Result<Option<usize>, Unavailable> {
        let most = self.options.limits.connections_per_server.max(1);
        if desk.connections.len() + desk.attempts.len() + desk.ending < most {
            return Ok(None);
        }
        if desk.ending > 0 || desk.connections.iter().any(|connection| connection.is_closing()) {
            return Ok(Some(most));
        }
        // What was made for one call, and is about to be used for it, is not unused.
        let is_free = |connection: &&Arc<Connection>| connection.who() != Who::Call || connection.was_used();
        let unused = desk.usable().filter(is_free);
        let unused = unused.filter_map(|connection| Some((connection.unused_since()?, connection)));
        match unused.min_by_key(|(since, _)| *since) {
            Some((_, connection)) => {
                connection.end();
                Ok(Some(most))
            }
            None => Err(Unavailable::Full(most)),
        }
    }
}

/// Chooses the connection over which the hub itself speaks: rather one that is nobody's own.
fn best_for_hub(desk: &Desk) -> Option<&Arc<Connection>> {
    desk.usable().min_by_key(|connection| match connection.who() {
        Who::Everybody => 0,
        Who::Nobody => 1,
        Who::Principal(_) => 2,
        Who::Session(_) => 3,
        Who::Call => 4,
    })
}

/// Waits for what comes of an attempt; nothing if it was given up.
async fn came_of(mut done: watch::Receiver<Option<Done>>) -> Option<Done> {
    let done = done.wait_for(Option::is_some).await.ok()?;
    done.clone()
}

/// Tells the server of a session that its roots have changed, if it was told of others.
fn tell_of_roots(connection: &Arc<Connection>, roots: Vec<trunkline_protocol::model::Root>) {
    if connection.roots.give(roots) {
        let client = connection.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.roots_changed().await {
                tracing::debug!(%error, "a server was not told that roots have changed");
            }
        });
    }
}
