//! Finds a connection for a caller, or opens one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Upstream;
use super::caller_profile::{CallerProfile, PoolKey};
use super::connection::{ConnectionLease, UpstreamConnection};
use super::connection_scope::ConnectionScope;
use super::eviction::{self, EvictionDecision};
use super::lifecycle::{ConnectBlock, IdleCause};
use super::status::{FailureKind, UpstreamFailure, UpstreamUnavailable};
use super::upstream_state::{AttemptOutcome, ConnectionAttempt, UpstreamState};
use super::wait_list::{ConnectionNeed, WaitTicket};

/// The progress of a lease.
enum LeaseStatus {
    Ready(ConnectionLease),
    Connecting(watch::Receiver<Option<AttemptOutcome>>),
    /// Sessions of an earlier run may be stored, and are looked for first.
    Reviving(ConnectionScope),
    /// The backoff of the last failure is still running.
    BackingOff(Duration, UpstreamFailure),
    /// Waits for another call to end or for a further connection; on timeout the call fails with this error.
    Queued(ConnectionNeed, UpstreamUnavailable),
}

/// Whether the stored sessions of a caller's scope are connected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoredSessions {
    Unknown,
    Connected,
}

/// A call that waits for a connection.
struct WaitingCall {
    ticket: WaitTicket,
    /// When a further connection may be opened for it, beside those in use.
    grows_at: Instant,
}

impl Upstream {
    /// Finds a connection for a caller, or opens one.
    ///
    /// # Errors
    /// [`UpstreamUnavailable`]: there is no connection within
    /// [`HubLimits::connection_wait_timeout`](crate::HubLimits).
    pub(crate) async fn lease(
        self: &Arc<Self>,
        profile: &CallerProfile,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        match self.try_lease(profile, None, StoredSessions::Unknown)? {
            LeaseStatus::Ready(lease) => Ok(lease),
            // Boxed, so that calls that find a connection at once do not reserve memory for it.
            status => Box::pin(self.wait_for_lease(profile, status)).await,
        }
    }

    async fn wait_for_lease(
        self: &Arc<Self>,
        profile: &CallerProfile,
        first: LeaseStatus,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        let limits = &self.options.limits;
        let give_up = Instant::now() + limits.connection_wait_timeout;
        let mut state_changes = self.change_counter.subscribe();
        let mut waiting: Option<WaitingCall> = None;
        let mut status = first;
        loop {
            match status {
                LeaseStatus::Ready(lease) => {
                    waiting.into_iter().for_each(|waiting| waiting.ticket.mark_served());
                    return Ok(lease);
                }
                LeaseStatus::Connecting(done) => match attempt_outcome(done).await {
                    Some(Ok(connection)) => {
                        if let Some(lease) = self.lease_for_call(&connection, profile) {
                            return Ok(lease);
                        }
                    }
                    Some(Err(failure)) => return Err(self.why_unavailable(failure)),
                    // The attempt was aborted, and the next `try_lease` returns the reason.
                    None => {}
                },
                LeaseStatus::Reviving(scope) => self.revive(&scope).await,
                LeaseStatus::BackingOff(wait, failure) if Instant::now() + wait > give_up => {
                    return Err(UpstreamUnavailable::Failed(failure, wait));
                }
                LeaseStatus::BackingOff(wait, _) => sleep(wait).await,
                LeaseStatus::Queued(need, why) => match &waiting {
                    // A connection that became free before the call joined the list is found by the next `try_lease`.
                    None => {
                        let ticket = self.wait_list.join(
                            profile.party_key(self.options.anonymous),
                            profile.client_key(),
                            need,
                        );
                        let grows_at = Instant::now() + limits.extra_connection_delay;
                        waiting = Some(WaitingCall { ticket, grows_at });
                    }
                    Some(WaitingCall { ticket, grows_at }) => {
                        ticket.update(need);
                        let next =
                            if Instant::now() < *grows_at { (*grows_at).min(give_up) } else { give_up };
                        tokio::select! {
                            () = ticket.wait_woken() => {}
                            _ = state_changes.changed() => {}
                            () = sleep_until(next) => if next == give_up {
                                return Err(why);
                            }
                        }
                    }
                },
            }
            state_changes.mark_unchanged();
            status = self.try_lease(profile, waiting.as_ref(), StoredSessions::Connected)?;
        }
    }

    /// Leases a connection that was opened for one call, unless it is closing already.
    fn lease_for_call(
        &self,
        connection: &Arc<UpstreamConnection>,
        profile: &CallerProfile,
    ) -> Option<ConnectionLease> {
        // A close is decided under the same lock.
        let _state = self.lock();
        if connection.scope() != ConnectionScope::Call || connection.is_closing() {
            return None;
        }
        connection.roots.add_caller(profile.roots.as_ref(), profile.session_roots.as_ref());
        Some(connection.lease(profile.roots.as_ref()).with_input_turn(profile.client_key()))
    }

    /// Finds any connection for the hub itself, or opens one.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(crate) async fn lease_for_hub(self: &Arc<Self>) -> Result<ConnectionLease, UpstreamUnavailable> {
        loop {
            let coming = {
                let mut state = self.lock();
                state.check()?;
                if let Some(connection) = choose_for_hub(&state) {
                    return Ok(connection.lease_for_hub());
                }
                match state.attempts.first().map(|attempt| attempt.outcome.clone()) {
                    Some(done) => done,
                    None => match state.lifecycle().connect_block(Instant::now()) {
                        Some(block) => return Err(block.into()),
                        None => self.start_attempt(&mut state, PoolKey::unassigned(), None),
                    },
                }
            };
            self.notify_changed();
            if let Some(Err(failure)) = attempt_outcome(coming).await {
                return Err(self.why_unavailable(failure));
            }
        }
    }

    /// Finds a connection for subscriptions of a scope, or opens one. Subscriptions alone may use at most half of the
    /// connection limit, so that calls find a free slot.
    ///
    /// # Errors
    /// As [`Upstream::lease`].
    pub(super) async fn lease_for_subscription(
        self: &Arc<Self>,
        scope: &ConnectionScope,
    ) -> Result<ConnectionLease, UpstreamUnavailable> {
        self.revive(scope).await;
        loop {
            let coming = {
                let mut state = self.lock();
                state.check()?;
                if let Some(connection) = state.usable_for_subscription(scope).first() {
                    return Ok(connection.lease_for_hub());
                }
                let unclaimed = state.usable().find(|connection| {
                    connection.matches_scope(|scope| *scope == ConnectionScope::Unassigned)
                });
                if let Some(connection) = unclaimed {
                    let lease = connection.lease_for_hub();
                    connection.claim(&PoolKey::for_subscription(scope));
                    connection.wake_supervisor();
                    return Ok(lease);
                }
                let is_theirs = |attempt: &&ConnectionAttempt| {
                    let PoolKey { scope: wanted, variables, .. } = &attempt.pool_key;
                    variables.is_empty()
                        && [scope, &ConnectionScope::Unassigned, &ConnectionScope::Shared].contains(&wanted)
                };
                match state.attempts.iter().find(is_theirs).map(|attempt| attempt.outcome.clone()) {
                    Some(done) => done,
                    None => {
                        if let Some(block) = state.lifecycle().connect_block(Instant::now()) {
                            return Err(block.into());
                        }
                        let most = self.options.limits.connections_per_server.div_ceil(2).max(1);
                        if state.connections.len() + state.attempts.len() + state.closing >= most {
                            return Err(UpstreamUnavailable::Full(most));
                        }
                        self.start_attempt(&mut state, PoolKey::for_subscription(scope), None)
                    }
                }
            };
            self.notify_changed();
            if let Some(Err(failure)) = attempt_outcome(coming).await {
                return Err(self.why_unavailable(failure));
            }
        }
    }

    /// Returns why there is no connection after a failed attempt. If the upstream was removed meanwhile, that is the
    /// reason, so that the call can go to its successor.
    fn why_unavailable(&self, failure: UpstreamFailure) -> UpstreamUnavailable {
        let state = self.lock();
        state.check().err().unwrap_or_else(|| match state.lifecycle().connect_block(Instant::now()) {
            Some(ConnectBlock::RetryIn(wait, _)) => UpstreamUnavailable::Failed(failure, wait),
            Some(ConnectBlock::NeedsAuth(_)) if failure.kind == FailureKind::NeedsAuth => {
                UpstreamUnavailable::NeedsAuth(failure)
            }
            Some(ConnectBlock::NeedsAuth(_)) | None => UpstreamUnavailable::Failed(failure, Duration::ZERO),
        })
    }

    fn try_lease(
        self: &Arc<Self>,
        profile: &CallerProfile,
        waiting: Option<&WaitingCall>,
        stored: StoredSessions,
    ) -> Result<LeaseStatus, UpstreamUnavailable> {
        let mut state = self.lock();
        state.check()?;
        let key = self.pool_key_of(profile, &state);
        if stored == StoredSessions::Unknown
            && let Some(scope) = self.revivable_scope(&state, &key)
        {
            return Ok(LeaseStatus::Reviving(scope));
        }
        let digest = profile.roots.as_ref().map(|(digest, _)| *digest).filter(|_| self.asks_roots());
        let mut need = ConnectionNeed { pool_key: key, roots: digest, needs_slot: false };
        let ticket = waiting.map(|waiting| &waiting.ticket);
        let has_some = match need.pool_key.scope {
            ConnectionScope::Call => false,
            _ => match self.lease_existing(&state, profile, &need, waiting) {
                ControlFlow::Break(status) => return Ok(status),
                ControlFlow::Continue(has_some) => has_some,
            },
        };
        match state.lifecycle().connect_block(Instant::now()) {
            Some(ConnectBlock::RetryIn(wait, failure)) => return Ok(LeaseStatus::BackingOff(wait, failure)),
            Some(block @ ConnectBlock::NeedsAuth(_)) => return Err(block.into()),
            None => {}
        }
        if !self.make_space(&mut state, &need.pool_key, ticket) {
            need.needs_slot = true;
            return Ok(LeaseStatus::Queued(need, UpstreamUnavailable::Full(self.max_connections())));
        }
        let done = self.start_attempt(&mut state, need.pool_key.clone(), Some(profile));
        drop(state);
        self.notify_changed();
        // The attempt may fail, and then the call still waits for the other connections.
        Ok(if has_some {
            LeaseStatus::Queued(need, UpstreamUnavailable::AllInUse(0))
        } else {
            LeaseStatus::Connecting(done)
        })
    }

    /// Leases a connection that is open, or waits for one that is coming or will be free; continues if one more may be
    /// opened, with whether there are others to wait for.
    fn lease_existing(
        &self,
        state: &UpstreamState,
        profile: &CallerProfile,
        need: &ConnectionNeed,
        waiting: Option<&WaitingCall>,
    ) -> ControlFlow<LeaseStatus, bool> {
        let key = &need.pool_key;
        let ticket = waiting.map(|waiting| &waiting.ticket);
        let before = match profile.can_be_asked(key) {
            true => self.wait_list.competitors_before(ticket, need, &profile.client_key()),
            false => 0,
        };
        let mut fitting = self.matching_connections(state, key, profile);
        if self.exceeds_fair_share(state, key) {
            fitting.retain(|connection| connection.use_count() > 0);
        }
        if let Some(lease) = lease_matching(&fitting, profile, key, before) {
            return ControlFlow::Break(LeaseStatus::Ready(lease));
        }
        let same_roots = |attempt: &&ConnectionAttempt| !self.asks_roots() || attempt.roots == need.roots;
        let attempts = state.attempts.iter().filter(same_roots);
        let coming: Vec<_> = attempts.filter(|it| it.serves(key, state.eras.is_empty())).collect();
        let queued = || LeaseStatus::Queued(need.clone(), UpstreamUnavailable::AllInUse(fitting.len()));
        match coming.get(before) {
            // Calls earlier in the queue get the attempts that started earlier.
            Some(attempt) if fitting.is_empty() => {
                return ControlFlow::Break(LeaseStatus::Connecting(attempt.outcome.clone()));
            }
            Some(_) => return ControlFlow::Break(queued()),
            None => {}
        }
        // One that fetches the lists for all callers can be claimed in a moment.
        let is_listing = state.usable().any(|connection| {
            let is_unassigned = connection.matches_scope(|scope| *scope == ConnectionScope::Unassigned);
            is_unassigned && connection.matches_session(key) && !connection.may_be_claimed(key, &self.options)
        });
        let has_some = !fitting.is_empty() || !coming.is_empty() || is_listing;
        let may_grow = waiting.is_some_and(|waiting| waiting.grows_at <= Instant::now());
        let is_left_alone = state.lifecycle().connect_block(Instant::now()).is_some();
        if has_some && (!may_grow || is_left_alone) {
            return ControlFlow::Break(queued());
        }
        ControlFlow::Continue(has_some)
    }

    /// Returns the connections that can serve a caller, free or not.
    fn matching_connections<'d>(
        &self,
        state: &'d UpstreamState,
        key: &PoolKey,
        profile: &CallerProfile,
    ) -> Vec<&'d Arc<UpstreamConnection>> {
        let (roots, asks_roots) = (profile.roots.as_ref().map(|(digest, _)| *digest), self.asks_roots());
        let fits = |connection: &&Arc<UpstreamConnection>| {
            let is_unassigned = connection.matches_scope(|scope| *scope == ConnectionScope::Unassigned);
            let is_sessions_own = !is_unassigned && matches!(key.scope, ConnectionScope::Session(_));
            let is_claimable = is_unassigned && connection.may_be_claimed(key, &self.options);
            let is_theirs = is_claimable || connection.matches_scope(|scope| *scope == key.scope);
            connection.matches_session(key)
                && is_theirs
                && (is_sessions_own || connection.has_roots(roots, asks_roots))
        };
        state.usable().filter(fits).collect()
    }

    /// Makes space for one more connection, beside those for calls earlier in the queue; reports whether there is
    /// space now.
    fn make_space(&self, state: &mut UpstreamState, key: &PoolKey, ticket: Option<&WaitTicket>) -> bool {
        // An idle connection of the same owner that another of its calls is about to take counts as busy.
        let is_wanted = |connection: &UpstreamConnection| {
            let is_usable = connection.owner() == key.owner && connection.client.abandoned_calls() == 0;
            is_usable && self.wait_list.will_be_used(connection, ticket, self.asks_roots())
        };
        let (slots, most) = (state.slots(is_wanted).collect::<Vec<_>>(), self.max_connections());
        match eviction::decide_eviction(
            &slots,
            &self.wait_list.owners_waiting_for_slot(),
            key.owner.as_ref(),
            most,
        ) {
            EvictionDecision::Free => slots.len() + self.wait_list.slot_waiters_before(ticket) < most,
            EvictionDecision::Wait => false,
            EvictionDecision::Evict(at) => {
                if let Some(connection) = state.connections.get(at).cloned() {
                    state.request_close(&connection, IdleCause::NotNeeded);
                }
                false
            }
        }
    }

    /// Reports whether the owner of a key has more connections than its share while others wait for one.
    fn exceeds_fair_share(&self, state: &UpstreamState, key: &PoolKey) -> bool {
        let waiting = self.wait_list.owners_waiting_for_slot();
        let Some(owner) = key.owner.as_ref().filter(|_| !waiting.is_empty()) else { return false };
        let slots: Vec<_> = state.slots(|_| false).collect();
        eviction::exceeds_fair_share(&slots, &waiting, owner, self.max_connections())
    }

    fn max_connections(&self) -> usize {
        self.options.limits.connections_per_server.max(1)
    }
}

/// Leases one of the matching connections, if more of them are free than the `before` calls of others that come
/// first. A connection that a session uses already counts as free for its further calls, unless others wait.
fn lease_matching(
    fitting: &[&Arc<UpstreamConnection>],
    profile: &CallerProfile,
    key: &PoolKey,
    before: usize,
) -> Option<ConnectionLease> {
    let (client, can_be_asked) = (profile.client_key(), profile.can_be_asked(key));
    let free = || fitting.iter().filter(|connection| !can_be_asked || connection.may_be_asked(&client));
    // A client stays with the process that it used last, since that may hold its state; and a session of its own, which
    // may be of an earlier run, comes before one that was opened for the lists.
    let used = free().find(|connection| connection.was_last_asked(&client));
    let own = || free().find(|connection| connection.matches_scope(|scope| *scope == key.scope));
    let connection =
        used.or_else(own).or_else(|| free().next()).filter(|_| before == 0 || free().count() > before)?;
    if key.scope == ConnectionScope::Unassigned {
        // For lists that all callers see, it must stay no caller's own.
        return Some(connection.lease_for_hub());
    }
    let is_unassigned = connection.matches_scope(|scope| *scope == ConnectionScope::Unassigned);
    if let (false, ConnectionScope::Session(_), Some((_, changed))) =
        (is_unassigned, &key.scope, &profile.roots)
    {
        notify_roots_changed(connection, changed.clone());
    }
    connection.roots.add_caller(profile.roots.as_ref(), profile.session_roots.as_ref());
    let lease = connection.lease(profile.roots.as_ref());
    if is_unassigned {
        connection.claim(key);
        // The idle timeout depends on the scope.
        connection.wake_supervisor();
    }
    Some(if can_be_asked { lease.with_input_turn(client) } else { lease })
}

/// Chooses the connection for the hub's own requests, preferably a shared one.
fn choose_for_hub(state: &UpstreamState) -> Option<&Arc<UpstreamConnection>> {
    let usable = state.usable().filter(|connection| !connection.has_caller_variables());
    usable.min_by_key(|connection| match connection.scope() {
        ConnectionScope::Shared => 0,
        ConnectionScope::Unassigned => 1,
        ConnectionScope::Principal(_) => 2,
        ConnectionScope::Session(_) => 3,
        ConnectionScope::Call => 4,
    })
}

/// Waits for the outcome of an attempt; `None` if it was aborted.
async fn attempt_outcome(mut done: watch::Receiver<Option<AttemptOutcome>>) -> Option<AttemptOutcome> {
    let done = done.wait_for(Option::is_some).await.ok()?;
    done.clone()
}

/// Notifies the server of a session that its roots have changed, if it was sent others.
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
