//! Finding a connection for somebody, or making one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Upstream;
use super::caller_profile::{CallerProfile, PoolKey};
use super::connection::{ConnectionLease, ConnectionScope, UpstreamConnection};
use super::eviction::{self, EvictionDecision};
use super::status::{UpstreamFailure, UpstreamUnavailable};
use super::upstream_state::{AttemptOutcome, ConnectionAttempt, UpstreamState};
use super::wait_list::{ConnectionNeed, WaitTicket};

/// How a connection for somebody stands.
enum LeaseStatus {
    Ready(ConnectionLease),
    Connecting(watch::Receiver<Option<AttemptOutcome>>),
    /// Not before this time is over, because of what happened last.
    BackingOff(Duration, UpstreamFailure),
    /// Not before another call is over, or there is a further connection; if it is not here in time, this is why.
    Queued(ConnectionNeed, UpstreamUnavailable),
}

/// A call that waits for a connection.
struct WaitingCall {
    ticket: WaitTicket,
    /// When a further connection may be made for it although there are some that are in use.
    grows_at: Instant,
}

impl Upstream {
    /// Finds a connection for somebody, or makes one.
    ///
    /// # Errors
    /// [`UpstreamUnavailable`]: it cannot be connected to within what a call may wait.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        party: &CallerProfile,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        match self.try_lease(party, None)? {
            LeaseStatus::Ready(lease) => Ok(lease),
            // Boxed, so that calls which find a connection have no room for it.
            look => Box::pin(self.wait_for_lease(party, look)).await,
        }
    }

    async fn wait_for_lease(
        self: &Arc<Self>,
        party: &CallerProfile,
        first: LeaseStatus,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        let limits = &self.options.limits;
        let give_up = Instant::now() + limits.connection_wait_timeout;
        let mut pulse = self.change_counter.subscribe();
        let mut waiting: Option<WaitingCall> = None;
        let mut look = first;
        loop {
            match look {
                LeaseStatus::Ready(lease) => {
                    waiting.into_iter().for_each(|waiting| waiting.ticket.mark_served());
                    return Ok(lease);
                }
                LeaseStatus::Connecting(done) => match attempt_outcome(done).await {
                    Some(Ok(connection)) => {
                        if let Some(lease) = self.lease_for_call(&connection, party) {
                            return Ok(lease);
                        }
                    }
                    Some(Err(failure)) => return Err(self.why_unavailable(failure)),
                    // The attempt was given up, and the next look says why.
                    None => {}
                },
                LeaseStatus::BackingOff(wait, failure) if Instant::now() + wait > give_up => {
                    return Err(UpstreamUnavailable::Failed(failure, wait));
                }
                LeaseStatus::BackingOff(wait, _) => sleep(wait).await,
                LeaseStatus::Queued(need, why) => match &waiting {
                    // What became free before the call was on the list is seen by the next look.
                    None => {
                        let ticket = self.wait_list.join(party.client_key(), need);
                        waiting = Some(WaitingCall { ticket, grows_at: Instant::now() + limits.grow_delay });
                    }
                    Some(WaitingCall { ticket, grows_at }) => {
                        ticket.update(need);
                        let next =
                            if Instant::now() < *grows_at { (*grows_at).min(give_up) } else { give_up };
                        tokio::select! {
                            () = ticket.wait_woken() => {}
                            _ = pulse.changed() => {}
                            () = sleep_until(next) => if next == give_up {
                                return Err(why);
                            }
                        }
                    }
                },
            }
            pulse.mark_unchanged();
            look = self.try_lease(party, waiting.as_ref())?;
        }
    }

    /// Begins to use a connection that was made for one call, unless it ends already.
    fn lease_for_call(
        &self,
        connection: &Arc<UpstreamConnection>,
        party: &CallerProfile,
    ) -> Option<ConnectionLease> {
        // Whether it ends is decided under the same lock.
        let _desk = self.lock();
        if connection.scope() != ConnectionScope::Call || connection.is_closing() {
            return None;
        }
        connection.roots.add_caller(party.roots.as_ref());
        Some(connection.lease(party.roots.as_ref()).with_input_turn(party.client_key()))
    }

    /// Finds any connection for the hub itself, or makes one.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(crate) async fn lease_for_hub(self: &Arc<Self>) -> Result<ConnectionLease, UpstreamUnavailable> {
        loop {
            let coming = {
                let mut desk = self.lock();
                desk.check()?;
                if let Some(connection) = choose_for_hub(&desk) {
                    return Ok(connection.lease_for_hub());
                }
                match desk.attempts.first().map(|attempt| attempt.outcome.clone()) {
                    Some(done) => done,
                    None => match desk.retry_after(Instant::now()) {
                        Some((wait, failure)) => return Err(UpstreamUnavailable::Failed(failure, wait)),
                        None => self.start_attempt(&mut desk, PoolKey::unassigned(), None),
                    },
                }
            };
            self.notify_changed();
            if let Some(Err(failure)) = attempt_outcome(coming).await {
                return Err(self.why_unavailable(failure));
            }
        }
    }

    /// Finds a connection over which somebody may be told of changes, or makes one. Those who only watch have at most half
    /// of the connections that there may be, so that calls find room.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(super) async fn lease_for_subscription(
        self: &Arc<Self>,
        who: &ConnectionScope,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        loop {
            let coming = {
                let mut desk = self.lock();
                desk.check()?;
                if let Some(connection) = desk.usable_for_subscription(who).first() {
                    return Ok(connection.lease_for_hub());
                }
                let unclaimed = desk
                    .usable()
                    .find(|connection| connection.matches_scope(|who| *who == ConnectionScope::Unassigned));
                if let Some(connection) = unclaimed {
                    let lease = connection.lease_for_hub();
                    connection.claim(&PoolKey::for_subscription(who));
                    connection.wake_supervisor();
                    return Ok(lease);
                }
                let is_theirs = |attempt: &&ConnectionAttempt| {
                    [who, &ConnectionScope::Unassigned, &ConnectionScope::Shared]
                        .contains(&&attempt.pool_key.scope)
                };
                match desk.attempts.iter().find(is_theirs).map(|attempt| attempt.outcome.clone()) {
                    Some(done) => done,
                    None => {
                        if let Some((wait, failure)) = desk.retry_after(Instant::now()) {
                            return Err(UpstreamUnavailable::Failed(failure, wait));
                        }
                        let most = self.options.limits.connections_per_server.div_ceil(2).max(1);
                        if desk.connections.len() + desk.attempts.len() + desk.closing >= most {
                            return Err(UpstreamUnavailable::Full(most));
                        }
                        self.start_attempt(&mut desk, PoolKey::for_subscription(who), None)
                    }
                }
            };
            self.notify_changed();
            if let Some(Err(failure)) = attempt_outcome(coming).await {
                return Err(self.why_unavailable(failure));
            }
        }
    }

    /// Returns why there is no connection after a failed attempt. An upstream that was removed meanwhile is removed, so that
    /// the call can go to its successor.
    fn why_unavailable(&self, failure: UpstreamFailure) -> UpstreamUnavailable {
        let desk = self.lock();
        let wait = desk.retry_after(Instant::now()).map_or(Duration::ZERO, |(wait, _)| wait);
        desk.check().err().unwrap_or(UpstreamUnavailable::Failed(failure, wait))
    }

    fn try_lease(
        self: &Arc<Self>,
        party: &CallerProfile,
        waiting: Option<&WaitingCall>,
    ) -> Result<LeaseStatus, UpstreamUnavailable> {
        let mut desk = self.lock();
        desk.check()?;
        let place = self.pool_key_of(party, &desk.eras);
        let digest = party.roots.as_ref().map(|(digest, _)| *digest).filter(|_| self.asks_roots());
        let mut need = ConnectionNeed { pool_key: place, roots: digest, needs_slot: false };
        let mut has_some = false;
        let ticket = waiting.map(|waiting| &waiting.ticket);
        if need.pool_key.scope != ConnectionScope::Call {
            let before = match party.can_be_asked(&need.pool_key) {
                true => self.wait_list.competitors_before(ticket, &need, &party.client_key()),
                false => 0,
            };
            let mut fitting = self.matching_connections(&desk, &need.pool_key, party);
            if self.exceeds_fair_share(&desk, &need.pool_key) {
                fitting.retain(|connection| connection.use_count() > 0);
            }
            if let Some(lease) = lease_matching(&fitting, party, &need.pool_key, before) {
                return Ok(LeaseStatus::Ready(lease));
            }
            let same_roots = |attempt: &&ConnectionAttempt| !self.asks_roots() || attempt.roots == digest;
            let coming: Vec<_> = desk
                .attempts
                .iter()
                .filter(same_roots)
                .filter(|it| it.serves(&need.pool_key, desk.eras.is_empty()))
                .collect();
            match coming.get(before) {
                // Those that come first get the attempts that began first.
                Some(attempt) if fitting.is_empty() => {
                    return Ok(LeaseStatus::Connecting(attempt.outcome.clone()));
                }
                Some(_) => {
                    return Ok(LeaseStatus::Queued(need, UpstreamUnavailable::AllInUse(fitting.len())));
                }
                None => {}
            }
            has_some = !fitting.is_empty() || !coming.is_empty();
            let may_grow = waiting.is_some_and(|waiting| waiting.grows_at <= Instant::now());
            let is_left_alone = desk.retry_after(Instant::now()).is_some();
            if has_some && (!may_grow || is_left_alone) {
                return Ok(LeaseStatus::Queued(need, UpstreamUnavailable::AllInUse(fitting.len())));
            }
        }
        if let Some((wait, failure)) = desk.retry_after(Instant::now()) {
            return Ok(LeaseStatus::BackingOff(wait, failure));
        }
        if !self.make_space(&desk, &need.pool_key, ticket) {
            need.needs_slot = true;
            return Ok(LeaseStatus::Queued(need, UpstreamUnavailable::Full(self.max_connections())));
        }
        let done = self.start_attempt(&mut desk, need.pool_key.clone(), Some(party));
        drop(desk);
        self.notify_changed();
        // One that cannot be had is no reason to give up while there are others.
        Ok(if has_some {
            LeaseStatus::Queued(need, UpstreamUnavailable::AllInUse(0))
        } else {
            LeaseStatus::Connecting(done)
        })
    }

    /// Returns the connections that serve a party, whether they are free or not.
    fn matching_connections<'d>(
        &self,
        desk: &'d UpstreamState,
        place: &PoolKey,
        party: &CallerProfile,
    ) -> Vec<&'d Arc<UpstreamConnection>> {
        let (roots, asks_roots) = (party.roots.as_ref().map(|(digest, _)| *digest), self.asks_roots());
        let fits = |connection: &&Arc<UpstreamConnection>| {
            let is_nobodys = connection.matches_scope(|who| *who == ConnectionScope::Unassigned);
            let is_sessions_own = !is_nobodys && matches!(place.scope, ConnectionScope::Session(_));
            let is_theirs = is_nobodys || connection.matches_scope(|who| *who == place.scope);
            let speaks = connection.input == place.input && connection.era == place.era;
            speaks && is_theirs && (is_sessions_own || connection.has_roots(roots, asks_roots))
        };
        desk.usable().filter(fits).collect()
    }

    /// Sees to it that there may be one more connection, beside those that calls will make which come first; reports whether
    /// there may be one now.
    fn make_space(&self, desk: &UpstreamState, place: &PoolKey, ticket: Option<&WaitTicket>) -> bool {
        // One of its own that is free, and that another of its calls is about to take, is as good as in use.
        let is_wanted = |connection: &UpstreamConnection| {
            let is_usable = connection.owner() == place.owner && connection.client.abandoned_calls() == 0;
            is_usable && self.wait_list.will_be_used(connection, ticket, self.asks_roots())
        };
        let (slots, most) = (desk.slots(is_wanted).collect::<Vec<_>>(), self.max_connections());
        match eviction::decide_eviction(
            &slots,
            &self.wait_list.owners_waiting_for_slot(),
            place.owner.as_ref(),
            most,
        ) {
            EvictionDecision::Free => slots.len() + self.wait_list.slot_waiters_before(ticket) < most,
            EvictionDecision::Wait => false,
            EvictionDecision::Evict(at) => {
                desk.connections.get(at).into_iter().for_each(|connection| connection.request_close());
                false
            }
        }
    }

    /// Reports whether a place has more connections than its share while others wait for one.
    fn exceeds_fair_share(&self, desk: &UpstreamState, place: &PoolKey) -> bool {
        let waiting = self.wait_list.owners_waiting_for_slot();
        let Some(owner) = place.owner.as_ref().filter(|_| !waiting.is_empty()) else { return false };
        let slots: Vec<_> = desk.slots(|_| false).collect();
        eviction::exceeds_fair_share(&slots, &waiting, owner, self.max_connections())
    }

    fn max_connections(&self) -> usize {
        self.options.limits.connections_per_server.max(1)
    }
}

/// Begins to use one of the connections that fit, if more of them are free than `before` calls of others will take which come
/// first. The one that a session uses already counts as free for its further calls, unless others wait.
fn lease_matching(
    fitting: &[&Arc<UpstreamConnection>],
    party: &CallerProfile,
    place: &PoolKey,
    before: usize,
) -> Option<ConnectionLease> {
    let (client, can_be_asked) = (party.client_key(), party.can_be_asked(place));
    let free = || fitting.iter().filter(|connection| !can_be_asked || connection.may_be_asked(&client));
    // A client stays with the process that it has used: that may remember what it did.
    let used = free().find(|connection| connection.was_last_asked(&client));
    let connection = used.or_else(|| free().next()).filter(|_| before == 0 || free().count() > before)?;
    let is_nobodys = connection.matches_scope(|who| *who == ConnectionScope::Unassigned);
    if let (false, ConnectionScope::Session(_), Some((_, changed))) = (is_nobodys, &place.scope, &party.roots)
    {
        notify_roots_changed(connection, changed.clone());
    }
    connection.roots.add_caller(party.roots.as_ref());
    let lease = connection.lease(party.roots.as_ref());
    if is_nobodys {
        connection.claim(place);
        // How long it may be unused depends on whose it is.
        connection.wake_supervisor();
    }
    Some(if can_be_asked { lease.with_input_turn(client) } else { lease })
}

/// Chooses the connection over which the hub itself speaks: rather one that is nobody's own.
fn choose_for_hub(desk: &UpstreamState) -> Option<&Arc<UpstreamConnection>> {
    desk.usable().min_by_key(|connection| match connection.scope() {
        ConnectionScope::Shared => 0,
        ConnectionScope::Unassigned => 1,
        ConnectionScope::Principal(_) => 2,
        ConnectionScope::Session(_) => 3,
        ConnectionScope::Call => 4,
    })
}

/// Waits for what comes of an attempt; nothing if it was given up.
async fn attempt_outcome(mut done: watch::Receiver<Option<AttemptOutcome>>) -> Option<AttemptOutcome> {
    let done = done.wait_for(Option::is_some).await.ok()?;
    done.clone()
}

/// Tells the server of a session that its roots have changed, if it was told of others.
fn notify_roots_changed(connection: &Arc<UpstreamConnection>, roots: Vec<trunkline_protocol::model::Root>) {
    if connection.roots.provide(roots) {
        let client = connection.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.roots_changed().await {
                tracing::debug!(%error, "cannot notify a server of changed roots");
            }
        });
    }
}
