//! Calls that wait for a connection, and the choice of those to wake when one becomes free.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::caller_profile::{ClientKey, PoolKey};
use super::connection::UpstreamConnection;
use super::eviction::SlotOwner;
use super::fair_queue::{FairQueue, QueuePosition};
use super::roots::RootsDigest;

/// The calls that wait for a connection to one server. Shared with the connections, which wake a call when they
/// become free.
#[derive(Debug, Default)]
pub(super) struct WaitList {
    /// The party is the principal of a client; among strangers the host, or the client itself behind a proxy on this host.
    queue: Mutex<FairQueue<ClientKey, ClientKey, WaitListEntry>>,
    /// The number of waiting calls, so that a connection that becomes free need not lock an empty queue.
    count: AtomicUsize,
}

#[derive(Debug)]
struct WaitListEntry {
    need: ConnectionNeed,
    woken: Arc<Notify>,
}

/// What a waiting call needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionNeed {
    /// The pool of connections that can serve it.
    pub(super) pool_key: PoolKey,
    pub(super) roots: Option<RootsDigest>,
    /// Whether it needs a further connection, for which there is no slot yet.
    pub(super) needs_slot: bool,
}

impl ConnectionNeed {
    /// Reports whether two calls compete for the same connections.
    fn competes_with(&self, other: &Self) -> bool {
        self.pool_key == other.pool_key && self.roots == other.roots
    }
}

impl WaitList {
    /// Adds a call behind its client's other calls.
    pub(super) fn join(
        self: &Arc<Self>,
        party: ClientKey,
        client: ClientKey,
        need: ConnectionNeed,
    ) -> WaitTicket {
        let woken = Arc::new(Notify::new());
        let position = self.lock().join(party, client, WaitListEntry { need, woken: woken.clone() });
        self.count.fetch_add(1, Ordering::SeqCst);
        WaitTicket { list: self.clone(), position, woken }
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns how many calls of other clients with the same need come first: those before its ticket, or all without
    /// a ticket.
    ///
    /// The calls of one session may share a connection, and so do not wait for each other.
    pub(super) fn competitors_before(
        &self,
        ticket: Option<&WaitTicket>,
        need: &ConnectionNeed,
        client: &ClientKey,
    ) -> usize {
        self.count_before(ticket, |other, theirs| !client.may_share_with(other) && theirs.competes_with(need))
    }

    /// Returns how many calls that need a slot come first.
    pub(super) fn slot_waiters_before(&self, ticket: Option<&WaitTicket>) -> usize {
        self.count_before(ticket, |_, other| other.needs_slot)
    }

    fn count_before(
        &self,
        ticket: Option<&WaitTicket>,
        is_counted: impl Fn(&ClientKey, &ConnectionNeed) -> bool,
    ) -> usize {
        if self.count.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        let queue = self.lock();
        let before =
            queue.in_order().take_while(|(at, ..)| ticket.is_none_or(|ticket| *at != ticket.position));
        before.filter(|(_, client, waiter)| is_counted(client, &waiter.need)).count()
    }

    /// Returns the owners of waiting calls that need a slot.
    pub(super) fn owners_waiting_for_slot(&self) -> Vec<SlotOwner<ClientKey>> {
        let queue = self.lock();
        let waiting = queue.in_order().filter(|(.., waiter)| waiter.need.needs_slot);
        waiting.filter_map(|(.., waiter)| waiter.need.pool_key.owner.clone()).collect()
    }

    /// Reports whether a free connection will serve another waiting call than that of the ticket.
    pub(super) fn will_be_used(
        &self,
        connection: &UpstreamConnection,
        ticket: Option<&WaitTicket>,
        asks_roots: bool,
    ) -> bool {
        let queue = self.lock();
        let mut others =
            queue.in_order().filter(|(at, ..)| ticket.is_none_or(|ticket| *at != ticket.position));
        others.any(|(.., WaitListEntry { need, .. })| {
            connection.matches_key(&need.pool_key) && connection.has_roots(need.roots, asks_roots)
        })
    }

    /// Wakes the calls that a newly free connection can serve, and the first that needs a slot.
    pub(super) fn wake_for(&self, connection: &UpstreamConnection) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let queue = self.lock();
        let mut served: Vec<&Option<RootsDigest>> = Vec::new();
        let mut has_room_for = 1;
        for (.., waiter) in queue.in_order() {
            // A connection serves only callers with certain roots, which are not known here.
            if connection.matches_key(&waiter.need.pool_key) && !served.contains(&&waiter.need.roots) {
                served.push(&waiter.need.roots);
                waiter.woken.notify_one();
            } else if waiter.need.needs_slot && has_room_for > 0 {
                has_room_for -= 1;
                waiter.woken.notify_one();
            }
        }
    }

    fn leave(&self, ticket: &WaitTicket) {
        let mut queue = self.lock();
        let need = queue.get_mut(ticket.position).map(|waiter| waiter.need.clone());
        queue.leave(ticket.position);
        self.count.fetch_sub(usize::from(need.is_some()), Ordering::SeqCst);
        // It may have been woken for a connection that it does not use, so that the next call is woken.
        let Some(need) = need else { return };
        let next =
            queue.in_order().find(|(.., waiter)| waiter.need.competes_with(&need) || waiter.need.needs_slot);
        if let Some((.., waiter)) = next {
            waiter.woken.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, FairQueue<ClientKey, ClientKey, WaitListEntry>> {
        self.queue.lock()
    }
}

/// The ticket of a waiting call, which leaves the list when this is dropped.
#[derive(Debug)]
pub(super) struct WaitTicket {
    list: Arc<WaitList>,
    position: QueuePosition,
    woken: Arc<Notify>,
}

impl WaitTicket {
    /// Updates what the call needs.
    pub(super) fn update(&self, need: ConnectionNeed) {
        if let Some(waiter) = self.list.lock().get_mut(self.position) {
            waiter.need = need;
        }
    }

    /// Waits until there may be a connection for the call.
    pub(super) async fn wait_woken(&self) {
        self.woken.notified().await;
    }

    /// Records that the call was served, so that its client's next call comes after those of other clients.
    pub(super) fn mark_served(self) {
        let mut queue = self.list.lock();
        let was_waiting = queue.get_mut(self.position).is_some();
        queue.serve(self.position);
        self.list.count.fetch_sub(usize::from(was_waiting), Ordering::SeqCst);
    }
}

impl Drop for WaitTicket {
    fn drop(&mut self) {
        self.list.leave(self);
    }
}
