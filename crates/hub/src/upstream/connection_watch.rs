//! Watches one connection: its lists, its idle timeout and its end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream, Error};
use trunkline_config::{ServerLocation, StartMode};

use super::backoff::Backoff;
use super::connection::{CLAIM_TIMEOUT, UpstreamConnection};
use super::connection_scope::ConnectionScope;
use super::lifecycle::IdleCause;
use super::list_fetch::{self, ListFetchContext};
use super::list_set::ListSet;
use super::listing_key::ListingKey;
use super::status::UpstreamFailure;
use super::{Upstream, UpstreamEvent};

/// How long a server may take to answer an abandoned call, before a connection that is blocked by it is closed.
const ABANDONED_CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Watches a connection until it is closed or lost.
pub(super) async fn watch(upstream: Weak<Upstream>, connection: Arc<UpstreamConnection>) {
    let (mut changes, mut again) = (None, ListRetry::default());
    let note_session = || upstream.upgrade().inspect(|upstream| upstream.notify_session_changed());
    note_session();
    unless_closing(&connection, async {
        changes = again.subscribe_lists(&upstream, &connection).await;
        again.list_first(&upstream, &connection).await;
    })
    .await;
    connection.set_listed();
    // Calls may wait to claim it.
    let _ = upstream.upgrade().inspect(|upstream| upstream.notify_changed());
    loop {
        // Created before the checks, so that no wakeup in between is missed.
        let woken = connection.woken();
        // It may have been claimed.
        note_session();
        unless_closing(&connection, again.refresh_requested(&upstream, &connection)).await;
        let Some(idle_at) = upstream.upgrade().map(|upstream| upstream.check_idle(&connection)) else {
            return;
        };
        if connection.is_closing() && !connection.client.is_closed() {
            return close_connection(&upstream, &connection).await;
        }
        tokio::select! {
            biased;
            how = connection.client.closed() => {
                if let Some(upstream) = upstream.upgrade() {
                    upstream.connection_lost(&connection, how);
                }
                return;
            }
            changed = next_change(&mut changes) => {
                let pause = upstream.upgrade().map(|upstream| upstream.options.limits.refresh_interval);
                unless_closing(&connection, async {
                    // Rate limit for a server that sends `list_changed` continuously.
                    sleep(pause.unwrap_or_default()).await;
                    let lists = drain_changes(&changed, &mut changes);
                    again.refresh_lists(&upstream, &connection, lists, lists).await;
                })
                .await;
            }
            () = sleep_until_due(again.retry_at) => {
                unless_closing(&connection, async {
                    if again.needs_subscription {
                        changes = again.subscribe_lists(&upstream, &connection).await;
                    }
                    let lists = again.lists;
                    again.refresh_lists(&upstream, &connection, lists, ListSet::NONE).await;
                })
                .await;
            }
            () = woken => {}
            () = sleep_until_due(idle_at) => {}
        }
    }
}

/// The requests to a server that failed, and when they are retried.
#[derive(Debug, Default)]
struct ListRetry {
    lists: ListSet,
    /// Whether the subscription to list changes failed and is to be retried.
    needs_subscription: bool,
    retry_at: Option<Instant>,
    backoff: Backoff,
}

impl ListRetry {
    /// Subscribes to list changes before anything is listed, so that no change is missed.
    async fn subscribe_lists(
        &mut self,
        upstream: &Weak<Upstream>,
        connection: &UpstreamConnection,
    ) -> Option<ChangeStream> {
        let within = upstream.upgrade()?.options.limits.subscribe_timeout;
        let outcome = timeout(within, connection.client.subscribe(ChangeFilter::all_lists())).await;
        let was_unwatched = std::mem::take(&mut self.needs_subscription);
        match outcome.unwrap_or(Err(Error::TimedOut { after: within })) {
            Ok(changes) => {
                if was_unwatched {
                    // Changes up to now were not notified.
                    self.lists = ListSet::ALL;
                }
                Some(changes)
            }
            Err(error) => {
                tracing::debug!(%error, "cannot subscribe to list changes");
                self.needs_subscription = !matches!(error, Error::ErrorResponse(_) | Error::Unsupported(_));
                self.schedule_retry(upstream);
                None
            }
        }
    }

    /// Fetches the lists of a new connection, as far as they are needed.
    async fn list_first(&mut self, upstream: &Weak<Upstream>, connection: &Arc<UpstreamConnection>) {
        let is_needed = upstream.upgrade().is_some_and(|upstream| {
            if upstream.is_private(connection) {
                let keys = upstream.listing_keys(connection);
                keys.into_iter().for_each(|shown| upstream.relist_if_old(shown));
                return false;
            }
            upstream.needs_listing(connection)
        });
        if is_needed {
            self.refresh_lists(upstream, connection, ListSet::ALL, ListSet::NONE).await;
        }
    }

    /// Fetches the lists that may have changed. Holds no strong reference to the upstream meanwhile, so that it can
    /// be dropped.
    async fn refresh_lists(
        &mut self,
        upstream: &Weak<Upstream>,
        connection: &Arc<UpstreamConnection>,
        lists: ListSet,
        announced: ListSet,
    ) {
        let lists = lists.union(self.lists);
        if let Some(upstream) = upstream.upgrade().filter(|upstream| upstream.is_private(connection)) {
            self.lists = ListSet::NONE;
            let keys = if lists.is_empty() { Vec::new() } else { upstream.listing_keys(connection) };
            keys.into_iter().for_each(|shown| upstream.relist(shown));
        } else if !lists.is_empty() {
            let keys = upstream.upgrade().map(|upstream| upstream.listed_over(connection));
            self.lists = ListSet::NONE;
            for shown in keys.unwrap_or_default() {
                let failed = refresh_for(upstream, connection, shown, lists, announced).await;
                self.lists = self.lists.union(failed);
            }
        }
        self.schedule_retry(upstream);
    }

    /// Fetches the lists for callers with capabilities that were not listed for yet.
    async fn refresh_requested(&mut self, upstream: &Weak<Upstream>, connection: &Arc<UpstreamConnection>) {
        let missing = upstream.upgrade().map(|upstream| {
            let mut keys = upstream.listed_over(connection);
            let state = upstream.lock();
            keys.retain(|shown| !state.listings.is_up_to_date(*shown));
            keys
        });
        for shown in missing.unwrap_or_default() {
            let failed = refresh_for(upstream, connection, shown, ListSet::ALL, ListSet::NONE).await;
            self.lists = self.lists.union(failed);
            self.schedule_retry(upstream);
        }
    }

    /// Schedules the next retry, if any request has failed.
    fn schedule_retry(&mut self, upstream: &Weak<Upstream>) {
        let Some(upstream) = upstream.upgrade() else { return };
        let now = Instant::now();
        if self.lists.is_empty() && !self.needs_subscription {
            (self.retry_at, self.backoff) = (None, Backoff::default());
        } else if self.retry_at.is_none_or(|at| at <= now) {
            self.retry_at = Some(self.backoff.record_failure(now, &upstream.options.limits));
        }
    }
}

/// Fetches and stores the lists for one era and set of capabilities; returns the lists that failed.
async fn refresh_for(
    upstream: &Weak<Upstream>,
    connection: &Arc<UpstreamConnection>,
    shown: ListingKey,
    lists: ListSet,
    announced: ListSet,
) -> ListSet {
    let Some((before, options, hub, server)) = upstream.upgrade().map(|upstream| {
        let before = upstream.lock().listings.fallback_for(shown);
        (before, upstream.options.clone(), upstream.hub.clone(), upstream.name.clone())
    }) else {
        return ListSet::NONE;
    };
    // Without an earlier listing every list is missing.
    let lists = if before.is_some() { lists } else { ListSet::ALL };
    let client = connection.client.lists_for(shown.input.capabilities());
    let offered = connection.client.server().capabilities.clone();
    let before = before.unwrap_or_default();
    let source = ListFetchContext { server: &server, limits: &options.limits, hub: &hub };
    let listed = Box::pin(list_fetch::fetch_lists(&client, &offered, lists, &before, source)).await;
    let Some(upstream) = upstream.upgrade() else { return ListSet::NONE };
    if let Some(loop_message) = listed.loop_message {
        upstream.discard_connection(connection, loop_message);
        return ListSet::NONE;
    }
    if let Some(error) = &listed.auth_error {
        upstream.discard_unauthorized(connection, error);
        return ListSet::NONE;
    }
    if upstream.is_private(connection) {
        // A caller has claimed it meanwhile, and may have changed what it lists.
        upstream.relist(shown);
        return ListSet::NONE;
    }
    match upstream.store_listing(shown, listed.listing, announced) {
        true => listed.failed,
        // Other servers and users give memory back.
        false => ListSet::ALL,
    }
}

/// Awaits a future of unbounded duration, unless a close of the connection is requested meanwhile.
async fn unless_closing(connection: &UpstreamConnection, doing: impl Future<Output = ()>) {
    let doing = Box::pin(doing);
    tokio::select! {
        biased;
        () = connection.close_requested() => {}
        () = doing => {}
    }
}

async fn next_change(changes: &mut Option<ChangeStream>) -> ChangeEvent {
    if let Some(stream) = changes {
        if let Some(change) = stream.next().await {
            return change;
        }
        *changes = None;
    }
    std::future::pending().await
}

/// Collects the pending changes.
fn drain_changes(first: &ChangeEvent, changes: &mut Option<ChangeStream>) -> ListSet {
    let mut lists = ListSet::NONE;
    let mut note = |change: &ChangeEvent| match change {
        ChangeEvent::Tools => lists.tools = true,
        ChangeEvent::Prompts => lists.prompts = true,
        ChangeEvent::Resources => lists.resources = true,
        ChangeEvent::Missed => lists = ListSet::ALL,
        _ => {}
    };
    note(first);
    while let Some(change) = changes.as_mut().and_then(|stream| stream.next().now_or_never()).flatten() {
        note(&change);
    }
    lists
}

async fn sleep_until_due(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Closes a connection gracefully, after its running calls.
async fn close_connection(upstream: &Weak<Upstream>, connection: &Arc<UpstreamConnection>) {
    let Some((is_counted, within)) = upstream.upgrade().map(|upstream| {
        let is_counted = upstream.update_state(|state| state.begin_close(connection));
        (is_counted, upstream.options.limits.drain_timeout)
    }) else {
        return;
    };
    connection.drained(within).await;
    connection.client.clone().close().await;
    connection.set_closed();
    if let Some(upstream) = upstream.upgrade() {
        upstream.update_state(|state| {
            state.closing -= usize::from(is_counted);
            state.backoff.record_closed(connection.started_at, Instant::now(), &upstream.options.limits);
        });
    }
}

impl Upstream {
    /// Returns the keys of the listings that a connection fetches.
    fn listed_over(&self, connection: &UpstreamConnection) -> Vec<ListingKey> {
        match connection.has_caller_variables() || self.is_private(connection) {
            true => Vec::new(),
            false => self.listing_keys(connection),
        }
    }

    /// Returns the keys of the listings that a connection would fetch if it were no caller's own.
    fn listing_keys(&self, connection: &UpstreamConnection) -> Vec<ListingKey> {
        let config = self.config.load();
        self.lock().listing_capabilities(connection, &config)
    }

    /// Reports whether this connection has to fetch the lists: not if another connection with the same era and
    /// capabilities keeps that listing up to date.
    fn needs_listing(&self, connection: &Arc<UpstreamConnection>) -> bool {
        let keys = self.listed_over(connection);
        let state = self.lock();
        let is_other = |other: &&Arc<UpstreamConnection>| {
            let is_other = !Arc::ptr_eq(other, connection) && !other.has_caller_variables();
            is_other && !self.is_private(other)
        };
        let mut others = state.usable().filter(is_other);
        let is_kept = others.any(|other| other.listing_key() == connection.listing_key());
        !is_kept || keys.iter().any(|shown| !state.listings.is_up_to_date(*shown))
    }

    /// Closes the connection if it is idle or unusable, and returns when to check again.
    fn check_idle(&self, connection: &Arc<UpstreamConnection>) -> Option<Instant> {
        let now = Instant::now();
        // Leases are granted under the same lock, so that no caller gets a connection that is about to close.
        let mut state = self.lock();
        // A connection in use can become idle for long enough at the earliest after the whole idle timeout.
        let Some(since) = connection.unused_since() else {
            return self.idle_timeout(&connection.scope()).map(|idle| now + idle);
        };
        let is_superseded = connection.scope() == ConnectionScope::Unassigned
            && state.usable().any(|other| {
                let is_other = !Arc::ptr_eq(other, connection) && other.era == connection.era;
                is_other
                    && other.has_listed()
                    && other.scope() != ConnectionScope::Call
                    && !other.has_caller_variables()
            });
        let mut cause = IdleCause::NotNeeded;
        let is_last = state.usable().all(|other| Arc::ptr_eq(other, connection));
        let due = match connection.scope() {
            _ if is_superseded || connection.roots.is_tainted() => Some(now),
            _ if connection.is_blocked_by_abandoned() => Some(since + ABANDONED_CALL_TIMEOUT),
            ConnectionScope::Call if connection.was_used() => Some(now),
            ConnectionScope::Call => Some(since + CLAIM_TIMEOUT),
            scope => {
                let due = self.idle_timeout(&scope).map(|idle| since + idle);
                // An eager server without an idle timeout is reconnected, also after its last user has left.
                let may_rest = self.idle_timeout(&ConnectionScope::Shared).is_some();
                if may_rest && is_last {
                    cause = IdleCause::IdleTimeout;
                }
                due
            }
        };
        if due.is_some_and(|due| due <= now) && !connection.is_closing() {
            state.request_close(connection, cause);
        }
        due
    }

    /// Returns the idle timeout of a connection with this scope.
    fn idle_timeout(&self, scope: &ConnectionScope) -> Option<Duration> {
        let config = self.config.load();
        match (config.idle, &config.location, config.start) {
            (Some(idle), ..) => Some(idle),
            (None, ServerLocation::Program(_), StartMode::Lazy) => Some(self.options.limits.idle_timeout),
            // There is one connection for each client or principal, and most of them do not return.
            _ if matches!(scope, ConnectionScope::Session(_) | ConnectionScope::Principal(_)) => {
                Some(self.options.limits.idle_timeout)
            }
            // An eager program stays connected without being used; and a connection to an endpoint costs next to
            // nothing.
            (None, ServerLocation::Program(_), StartMode::Eager) | (None, ServerLocation::Endpoint(_), _) => {
                None
            }
        }
    }

    /// Records an unexpected loss of a connection as soon as a task notices it.
    pub(crate) fn check_lost(&self, connection: &Arc<UpstreamConnection>) {
        match connection.client.closed().now_or_never() {
            Some(how) => self.connection_lost(connection, how),
            // The supervisor learns the reason; no other call may use the connection.
            None => self.update_state(|state| state.request_close(connection, IdleCause::NotNeeded)),
        }
    }

    /// Discards an open connection that cannot be used any more; calls that run over it may finish.
    pub(crate) fn discard_connection(&self, connection: &Arc<UpstreamConnection>, why: String) {
        self.connection_lost(connection, why);
        connection.request_close();
    }

    /// Discards a connection to a server that accepts connections without a token, but demands one for its lists.
    fn discard_unauthorized(&self, connection: &Arc<UpstreamConnection>, error: &Error) {
        connection.set_closed();
        self.update_state(|state| state.closing -= usize::from(state.begin_close(connection)));
        self.record_error(error);
        connection.request_close();
    }

    fn connection_lost(&self, connection: &Arc<UpstreamConnection>, how: String) {
        connection.set_closed();
        let failure = UpstreamFailure::lost(how);
        let lost_offers = self.update_state(|state| {
            if !state.begin_close(connection) {
                return false;
            }
            tracing::warn!(server = %self.name, reason = failure.reason, "connection lost");
            state.closing -= 1;
            state.record_lost(connection.started_at, failure, &self.options.limits)
        });
        if lost_offers {
            (self.on_event)(UpstreamEvent::ListsChanged(ListSet::NONE));
        }
    }
}
