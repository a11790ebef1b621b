//! The task that looks after one connection.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_client::{Change, Error, Subscription, Watch};
use trunkline_config::{Reach, Start};

use super::backoff::Backoff;
use super::connection::{Connection, UNCLAIMED, Who};
use super::listing::{self, Lists, Source};
use super::listing_key::ListingKey;
use super::state::Failure;
use super::{Told, Upstream};

/// How long a server may take to answer a call that was given up, before a connection is ended that can serve no other
/// meanwhile.
const UNSETTLED: Duration = Duration::from_secs(5);

pub(super) fn spawn(upstream: &Arc<Upstream>, connection: &Arc<Connection>) {
    let minding = mind(Arc::downgrade(upstream), connection.clone());
    connection.set_minder(tokio::spawn(minding).abort_handle());
}

async fn mind(upstream: Weak<Upstream>, connection: Arc<Connection>) {
    let (mut changes, mut again) = (None, Again::default());
    unless_ending(&connection, async {
        changes = again.watch_lists(&upstream, &connection).await;
        let is_needed = |upstream: &Upstream| upstream.needs_listing(&connection);
        if upstream.upgrade().is_some_and(|upstream| is_needed(&upstream)) {
            again.take_over(&upstream, &connection, Lists::ALL, Lists::NONE).await;
        }
    })
    .await;
    loop {
        // Made before anything is looked at, so that nothing that happens in between is missed.
        let stirred = connection.stirred();
        unless_ending(&connection, again.take_over_requested(&upstream, &connection)).await;
        let Some(idle_at) = upstream.upgrade().map(|upstream| upstream.settle(&connection)) else { return };
        if connection.is_closing() && !connection.client.is_closed() {
            return end(&upstream, &connection).await;
        }
        tokio::select! {
            biased;
            how = connection.client.closed() => {
                if let Some(upstream) = upstream.upgrade() {
                    upstream.lost(&connection, how);
                }
                return;
            }
            changed = next(&mut changes) => {
                let pause = upstream.upgrade().map(|upstream| upstream.options.limits.refresh_after);
                unless_ending(&connection, async {
                    // A server that tells of changes all the time is still looked at only now and then.
                    sleep(pause.unwrap_or_default()).await;
                    let lists = gathered(&changed, &mut changes);
                    again.take_over(&upstream, &connection, lists, lists).await;
                })
                .await;
            }
            () = until(again.at) => {
                unless_ending(&connection, async {
                    if again.is_unwatched {
                        changes = again.watch_lists(&upstream, &connection).await;
                    }
                    let lists = again.lists;
                    again.take_over(&upstream, &connection, lists, Lists::NONE).await;
                })
                .await;
            }
            () = stirred => {}
            () = until(idle_at) => {}
        }
    }
}

/// What a server was asked for in vain, and when it is asked again.
#[derive(Debug, Default)]
struct Again {
    lists: Lists,
    /// Whether it does not tell of changes although it may.
    is_unwatched: bool,
    at: Option<Instant>,
    backoff: Backoff,
}

impl Again {
    /// Begins to be told of changes before anything is listed, so that no change is missed.
    async fn watch_lists(
        &mut self,
        upstream: &Weak<Upstream>,
        connection: &Connection,
    ) -> Option<Subscription> {
        let within = upstream.upgrade()?.options.limits.watch_within;
        let outcome = timeout(within, connection.client.subscribe(Watch::lists())).await;
        let was_unwatched = std::mem::take(&mut self.is_unwatched);
        match outcome.unwrap_or(Err(Error::TimedOut { after: within })) {
            Ok(changes) => {
                if was_unwatched {
                    // Nobody told of what changed up to now.
                    self.lists = Lists::ALL;
                }
                Some(changes)
            }
            Err(error) => {
                tracing::debug!(%error, "a server tells of no changes");
                self.is_unwatched = !matches!(error, Error::Refused(_) | Error::Unsupported(_));
                self.set_time(upstream);
                None
            }
        }
    }

    /// Lists anew what may have changed. The server is not held meanwhile, so that it can be let go of.
    async fn take_over(
        &mut self,
        upstream: &Weak<Upstream>,
        connection: &Arc<Connection>,
        lists: Lists,
        announced: Lists,
    ) {
        let lists = lists.and(self.lists);
        if !lists.is_none() {
            let keys = upstream.upgrade().map(|upstream| upstream.listed_over(connection));
            self.lists = Lists::NONE;
            for shown in keys.unwrap_or_default() {
                let failed = take_over_for(upstream, connection, shown, lists, announced).await;
                self.lists = self.lists.and(failed);
            }
        }
        self.set_time(upstream);
    }

    /// Lists for callers whose capabilities the connection has not listed for yet.
    async fn take_over_requested(&mut self, upstream: &Weak<Upstream>, connection: &Arc<Connection>) {
        let missing = upstream.upgrade().map(|upstream| {
            let mut keys = upstream.listed_over(connection);
            let desk = upstream.lock();
            keys.retain(|shown| !desk.listings.has(*shown));
            keys
        });
        for shown in missing.unwrap_or_default() {
            let failed = take_over_for(upstream, connection, shown, Lists::ALL, Lists::NONE).await;
            self.lists = self.lists.and(failed);
            self.set_time(upstream);
        }
    }

    /// Decides when to ask again, if there is anything to ask for.
    fn set_time(&mut self, upstream: &Weak<Upstream>) {
        let Some(upstream) = upstream.upgrade() else { return };
        let now = Instant::now();
        if self.lists.is_none() && !self.is_unwatched {
            (self.at, self.backoff) = (None, Backoff::default());
        } else if self.at.is_none_or(|at| at <= now) {
            self.backoff.failed(now, &upstream.options.limits);
            self.at = Some(now + self.backoff.remaining(now));
        }
    }
}

/// Takes over what a server lists in an era for some capabilities; returns the lists that failed.
async fn take_over_for(
    upstream: &Weak<Upstream>,
    connection: &Arc<Connection>,
    shown: ListingKey,
    lists: Lists,
    announced: Lists,
) -> Lists {
    let Some((before, options, hub, server)) = upstream.upgrade().map(|upstream| {
        let before = upstream.lock().listings.before(shown);
        (before, upstream.options.clone(), upstream.hub.clone(), upstream.name.clone())
    }) else {
        return Lists::NONE;
    };
    // Of a listing that was never taken over, every list is missing.
    let lists = if before.is_some() { lists } else { Lists::ALL };
    let client = connection.client.lists_as(shown.input.capabilities());
    let offered = connection.client.server().capabilities.clone();
    let before = before.unwrap_or_default();
    let source = Source { server: &server, limits: &options.limits, hub: &hub };
    let listed = Box::pin(listing::fetch(&client, &offered, lists, &before, source)).await;
    match (upstream.upgrade(), listed.circle) {
        (Some(upstream), Some(circle)) => {
            upstream.renounce(connection, circle);
            Lists::NONE
        }
        (Some(upstream), None) => {
            upstream.take_catalogue(shown, listed.catalogue, announced);
            listed.failed
        }
        (None, _) => Lists::NONE,
    }
}

/// Does something that takes as long as the server likes, unless the connection is to be ended meanwhile.
async fn unless_ending(connection: &Connection, doing: impl Future<Output = ()>) {
    let doing = Box::pin(doing);
    tokio::select! {
        biased;
        () = connection.closing() => {}
        () = doing => {}
    }
}

async fn next(changes: &mut Option<Subscription>) -> Change {
    if let Some(stream) = changes {
        if let Some(change) = stream.next().await {
            return change;
        }
        *changes = None;
    }
    std::future::pending().await
}

/// Puts together what has changed up to now.
fn gathered(first: &Change, changes: &mut Option<Subscription>) -> Lists {
    let mut lists = Lists::NONE;
    let mut note = |change: &Change| match change {
        Change::Tools => lists.tools = true,
        Change::Prompts => lists.prompts = true,
        Change::Resources => lists.resources = true,
        Change::Missed => lists = Lists::ALL,
        _ => {}
    };
    note(first);
    while let Some(change) = changes.as_mut().and_then(|stream| stream.next().now_or_never()).flatten() {
        note(&change);
    }
    lists
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Ends a connection in an orderly way, after the calls that run.
async fn end(upstream: &Weak<Upstream>, connection: &Arc<Connection>) {
    let Some((is_counted, within)) = upstream.upgrade().map(|upstream| {
        let is_counted = upstream.change(|desk| desk.begin_end(connection));
        (is_counted, upstream.options.limits.drain_within)
    }) else {
        return;
    };
    connection.drained(within).await;
    connection.client.clone().close().await;
    connection.set_over();
    if let Some(upstream) = upstream.upgrade() {
        upstream.change(|desk| {
            desk.ending -= usize::from(is_counted);
            desk.backoff.ended(connection.began, Instant::now(), &upstream.options.limits);
        });
    }
}

impl Upstream {
    /// Returns what a connection lists.
    fn listed_over(&self, connection: &Connection) -> Vec<ListingKey> {
        let config = self.config.load();
        self.lock().listed_over(connection, &config)
    }

    /// Reports whether what the server offers is to be learnt from this connection: not if another one of the same era was
    /// shown the same capabilities and keeps their listing up to date.
    fn needs_listing(&self, connection: &Arc<Connection>) -> bool {
        let keys = self.listed_over(connection);
        let desk = self.lock();
        let mut others = desk.usable().filter(|other| !Arc::ptr_eq(other, connection));
        let is_kept = others.any(|other| other.listing_key() == connection.listing_key());
        !is_kept || keys.iter().any(|shown| !desk.listings.has(*shown))
    }

    /// Decides whether the connection is of any use, ends it if not, and returns when to look again.
    fn settle(&self, connection: &Arc<Connection>) -> Option<Instant> {
        let now = Instant::now();
        // Leases are given under the same lock, so that nobody begins to use what is about to end.
        let mut desk = self.lock();
        // What is in use now may be ended at the earliest when it has been unused for that long.
        let Some(since) = connection.unused_since() else {
            return self.idle(&connection.who()).map(|idle| now + idle);
        };
        let is_superseded = connection.who() == Who::Nobody
            && desk.usable().any(|other| !Arc::ptr_eq(other, connection) && other.who() != Who::Call);
        let is_last = desk.usable().all(|other| Arc::ptr_eq(other, connection));
        let due = match connection.who() {
            _ if is_superseded || connection.roots.is_spoilt() => Some(now),
            _ if connection.is_unsettled() => Some(since + UNSETTLED),
            Who::Call if connection.was_used() => Some(now),
            Who::Call => Some(since + UNCLAIMED),
            who => {
                let due = self.idle(&who).map(|idle| since + idle);
                // One that is to be there from the start is, also when the last who used it is gone.
                let may_rest = self.idle(&Who::Everybody).is_some();
                desk.is_resting |= may_rest && is_last && due.is_some_and(|due| due <= now);
                due
            }
        };
        if due.is_some_and(|due| due <= now) {
            connection.end();
        }
        due
    }

    /// Returns how long somebody's connection may be unused.
    fn idle(&self, who: &Who) -> Option<Duration> {
        let config = self.config.load();
        match (config.idle, &config.reach, config.start) {
            (Some(idle), ..) => Some(idle),
            (None, Reach::Program(_), Start::Lazy) => Some(self.options.limits.idle),
            // There is one for each who ever came, and most of them do not come back.
            _ if matches!(who, Who::Session(_) | Who::Principal(_)) => Some(self.options.limits.idle),
            // What is there before anybody needs it stays; and an address costs next to nothing.
            (None, Reach::Program(_), Start::Eager) | (None, Reach::Endpoint(_), _) => None,
        }
    }

    /// Notes that a connection is gone although nobody ended it, as soon as anybody sees it.
    pub(crate) fn note_if_lost(&self, connection: &Arc<Connection>) {
        match connection.client.closed().now_or_never() {
            Some(how) => self.lost(connection, how),
            // Its minder learns how; nobody else is to use it.
            None => connection.end(),
        }
    }

    /// Lets go of a connection that is of no use any more although it stands; whoever uses it may finish.
    pub(crate) fn renounce(&self, connection: &Arc<Connection>, why: String) {
        self.lost(connection, why);
        connection.end();
    }

    fn lost(&self, connection: &Arc<Connection>, how: String) {
        connection.set_over();
        let lost_offers = self.change(|desk| {
            if !desk.begin_end(connection) {
                return false;
            }
            tracing::warn!(server = %self.name, how, "lost");
            desk.ending -= 1;
            desk.backoff.lost(connection.began, Instant::now(), &self.options.limits);
            desk.fail(Failure::lost(how))
        });
        if lost_offers {
            (self.tell)(Told::Offers(Lists::NONE));
        }
    }
}
