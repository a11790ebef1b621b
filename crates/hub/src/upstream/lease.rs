//! Finding a connection for somebody, or making one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Upstream;
use super::connection::{Connection, Lease, Who};
use super::desk::{Attempt, Desk, Done};
use super::party::{Party, Place};
use super::room::{self, Room};
use super::state::{Failure, Unavailable};
use super::wait_list::{Need, Ticket};

/// How a connection for somebody stands.
enum Look {
    Here(Lease),
    Coming(watch::Receiver<Option<Done>>),
    /// Not before this time is over, because of what happened last.
    Later(Duration, Failure),
    /// Not before another call is over, or there is a further connection; if it is not here in time, this is why.
    InTurn(Need, Unavailable),
}

/// A call that waits for a connection.
struct Waiting {
    ticket: Ticket,
    /// When a further connection may be made for it although there are some that are in use.
    grows_at: Instant,
}

impl Upstream {
    /// Finds a connection for somebody, or makes one.
    ///
    /// # Errors
    /// [`Unavailable`]: it cannot be connected to within what a call may wait.
    pub(crate) async fn lease(self: &Arc<Self>, party: &Party) -> Result<Lease, Unavailable> {
        match self.look(party, None)? {
            Look::Here(lease) => Ok(lease),
            // Boxed, so that calls which find a connection have no room for it.
            look => Box::pin(self.wait_for_lease(party, look)).await,
        }
    }

    async fn wait_for_lease(self: &Arc<Self>, party: &Party, first: Look) -> Result<Lease, Unavailable> {
        let limits = &self.options.limits;
        let give_up = Instant::now() + limits.wait_for_restart;
        let mut pulse = self.pulse.subscribe();
        let mut waiting: Option<Waiting> = None;
        let mut look = first;
        loop {
            match look {
                Look::Here(lease) => {
                    waiting.into_iter().for_each(|waiting| waiting.ticket.serve());
                    return Ok(lease);
                }
                Look::Coming(done) => match came_of(done).await {
                    Some(Ok(connection)) => {
                        if let Some(lease) = self.lease_for_call(&connection, party) {
                            return Ok(lease);
                        }
                    }
                    Some(Err(failure)) => return Err(self.why_unavailable(failure)),
                    // The attempt was given up, and the next look says why.
                    None => {}
                },
                Look::Later(wait, failure) if Instant::now() + wait > give_up => {
                    return Err(Unavailable::Failed(failure, wait));
                }
                Look::Later(wait, _) => sleep(wait).await,
                Look::InTurn(need, why) => match &waiting {
                    // What became free before the call was on the list is seen by the next look.
                    None => {
                        let ticket = self.waiting.join(party.client_key(), need);
                        waiting = Some(Waiting { ticket, grows_at: Instant::now() + limits.grow_after });
                    }
                    Some(Waiting { ticket, grows_at }) => {
                        ticket.update(need);
                        let next =
                            if Instant::now() < *grows_at { (*grows_at).min(give_up) } else { give_up };
                        tokio::select! {
                            () = ticket.woken() => {}
                            _ = pulse.changed() => {}
                            () = sleep_until(next) => if next == give_up {
                                return Err(why);
                            }
                        }
                    }
                },
            }
            pulse.mark_unchanged();
            look = self.look(party, waiting.as_ref())?;
        }
    }

    /// Begins to use a connection that was made for one call, unless it ends already.
    fn lease_for_call(&self, connection: &Arc<Connection>, party: &Party) -> Option<Lease> {
        // Whether it ends is decided under the same lock.
        let _desk = self.lock();
        if connection.who() != Who::Call || connection.is_closing() {
            return None;
        }
        connection.roots.enter(party.roots.as_ref());
        Some(connection.lease(party.roots.as_ref()).with_turn(party.client_key()))
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
                return Err(self.why_unavailable(failure));
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
                    connection.claim(&Place::to_watch(who));
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
                        self.start(&mut desk, Place::to_watch(who), None)
                    }
                }
            };
            self.beat();
            if let Some(Err(failure)) = came_of(coming).await {
                return Err(self.why_unavailable(failure));
            }
        }
    }

    /// Returns why there is no connection after a failed attempt. An upstream that was removed meanwhile is removed, so that
    /// the call can go to its successor.
    fn why_unavailable(&self, failure: Failure) -> Unavailable {
        let desk = self.lock();
        let wait = desk.left_alone(Instant::now()).map_or(Duration::ZERO, |(wait, _)| wait);
        desk.check().err().unwrap_or(Unavailable::Failed(failure, wait))
    }

    fn look(self: &Arc<Self>, party: &Party, waiting: Option<&Waiting>) -> Result<Look, Unavailable> {
        let mut desk = self.lock();
        desk.check()?;
        let place = self.place_of(party, &desk.eras);
        let digest = party.roots.as_ref().map(|(digest, _)| *digest).filter(|_| self.asks_roots());
        let mut need = Need { place, roots: digest, room: false };
        let mut has_some = false;
        let ticket = waiting.map(|waiting| &waiting.ticket);
        if need.place.who != Who::Call {
            let before = match party.can_be_asked(&need.place) {
                true => self.waiting.rivals_before(ticket, &need, &party.client_key()),
                false => 0,
            };
            let mut fitting = self.fitting(&desk, &need.place, party);
            if self.owes_room(&desk, &need.place) {
                fitting.retain(|connection| connection.uses() > 0);
            }
            if let Some(lease) = begin_use(&fitting, party, &need.place, before) {
                return Ok(Look::Here(lease));
            }
            let same_roots = |attempt: &&Attempt| !self.asks_roots() || attempt.roots == digest;
            let coming: Vec<_> = desk
                .attempts
                .iter()
                .filter(same_roots)
                .filter(|it| it.serves(&need.place, desk.eras.is_empty()))
                .collect();
            match coming.get(before) {
                // Those that come first get the attempts that began first.
                Some(attempt) if fitting.is_empty() => return Ok(Look::Coming(attempt.done.clone())),
                Some(_) => return Ok(Look::InTurn(need, Unavailable::InUse(fitting.len()))),
                None => {}
            }
            has_some = !fitting.is_empty() || !coming.is_empty();
            let may_grow = waiting.is_some_and(|waiting| waiting.grows_at <= Instant::now());
            let is_left_alone = desk.left_alone(Instant::now()).is_some();
            if has_some && (!may_grow || is_left_alone) {
                return Ok(Look::InTurn(need, Unavailable::InUse(fitting.len())));
            }
        }
        if let Some((wait, failure)) = desk.left_alone(Instant::now()) {
            return Ok(Look::Later(wait, failure));
        }
        if !self.make_room(&desk, &need.place, ticket) {
            need.room = true;
            return Ok(Look::InTurn(need, Unavailable::Full(self.most_connections())));
        }
        let done = self.start(&mut desk, need.place.clone(), Some(party));
        drop(desk);
        self.beat();
        // One that cannot be had is no reason to give up while there are others.
        Ok(if has_some { Look::InTurn(need, Unavailable::InUse(0)) } else { Look::Coming(done) })
    }

    /// Returns the connections that serve a party, whether they are free or not.
    fn fitting<'d>(&self, desk: &'d Desk, place: &Place, party: &Party) -> Vec<&'d Arc<Connection>> {
        let (roots, asks_roots) = (party.roots.as_ref().map(|(digest, _)| *digest), self.asks_roots());
        let fits = |connection: &&Arc<Connection>| {
            let is_nobodys = connection.is_whose(|who| *who == Who::Nobody);
            let is_sessions_own = !is_nobodys && matches!(place.who, Who::Session(_));
            let is_theirs = is_nobodys || connection.is_whose(|who| *who == place.who);
            let speaks = connection.input == place.input && connection.era == place.era;
            speaks && is_theirs && (is_sessions_own || connection.has_roots(roots, asks_roots))
        };
        desk.usable().filter(fits).collect()
    }

    /// Sees to it that there may be one more connection, beside those that calls will make which come first; reports whether
    /// there may be one now.
    fn make_room(&self, desk: &Desk, place: &Place, ticket: Option<&Ticket>) -> bool {
        // One of its own that is free, and that another of its calls is about to take, is as good as in use.
        let is_wanted = |connection: &Connection| {
            let is_usable = connection.owner() == place.owner && connection.client.abandoned_calls() == 0;
            is_usable && self.waiting.will_use(connection, ticket, self.asks_roots())
        };
        let (slots, most) = (desk.slots(is_wanted).collect::<Vec<_>>(), self.most_connections());
        match room::make_room(&slots, &self.waiting.owners_without_room(), place.owner.as_ref(), most) {
            Room::Free => slots.len() + self.waiting.room_before(ticket) < most,
            Room::Wait => false,
            Room::End(at) => {
                desk.connections.get(at).into_iter().for_each(|connection| connection.end());
                false
            }
        }
    }

    /// Reports whether a place has more connections than its share while others wait for one.
    fn owes_room(&self, desk: &Desk, place: &Place) -> bool {
        let waiting = self.waiting.owners_without_room();
        let Some(owner) = place.owner.as_ref().filter(|_| !waiting.is_empty()) else { return false };
        let slots: Vec<_> = desk.slots(|_| false).collect();
        room::owes_room(&slots, &waiting, owner, self.most_connections())
    }

    fn most_connections(&self) -> usize {
        self.options.limits.connections_per_server.max(1)
    }
}

/// Begins to use one of the connections that fit, if more of them are free than `before` calls of others will take which come
/// first. The one that a session uses already counts as free for its further calls, unless others wait.
fn begin_use(fitting: &[&Arc<Connection>], party: &Party, place: &Place, before: usize) -> Option<Lease> {
    let (client, can_be_asked) = (party.client_key(), party.can_be_asked(place));
    let free = || fitting.iter().filter(|connection| !can_be_asked || connection.may_be_asked(&client));
    // A client stays with the process that it has used: that may remember what it did.
    let used = free().find(|connection| connection.was_asked(&client));
    let connection = used.or_else(|| free().next()).filter(|_| before == 0 || free().count() > before)?;
    let is_nobodys = connection.is_whose(|who| *who == Who::Nobody);
    if let (false, Who::Session(_), Some((_, changed))) = (is_nobodys, &place.who, &party.roots) {
        tell_of_roots(connection, changed.clone());
    }
    connection.roots.enter(party.roots.as_ref());
    let lease = connection.lease(party.roots.as_ref());
    if is_nobodys {
        connection.claim(place);
        // How long it may be unused depends on whose it is.
        connection.stir();
    }
    Some(if can_be_asked { lease.with_turn(client) } else { lease })
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
