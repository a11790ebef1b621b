use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;
use trunkline_session::Principal;

use super::body::EventBody;
use super::call_trace::{CallTracer, TraceSampler};
use super::event::EventTime;
use super::ring::{EventAudience, EventRing};
use super::subscription::{EventScope, EventSubscription, EventViewer};
use crate::limits::HubLimits;

/// Divides the bounds of the ring while there is no subscription. What it keeps then are logs and states of servers, for
/// a later subscription.
const UNREAD_SHARE: usize = 16;

/// The event stream of a hub. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct HubEvents {
    inner: Arc<EventStreamInner>,
}

/// What all handles of a stream share.
#[derive(Debug)]
pub(super) struct EventStreamInner {
    pub(super) ring: Mutex<EventRing>,
    pub(super) published: Notify,
    /// The subscriptions to messages, with those that have just ended.
    attached: AtomicUsize,
    /// All subscriptions, which have calls at least.
    followers: AtomicUsize,
    /// The subscriptions that wait for an event.
    waiting: AtomicUsize,
    message_bytes: usize,
    /// The principals of the calls that run while there is a subscription.
    open_calls: Mutex<HashMap<NonZeroU64, Principal>>,
    /// The number of the last connection to a server.
    connections: AtomicU64,
    /// Makes the traces of calls, if they are traced.
    tracer: OnceLock<CallTracer>,
}

impl HubEvents {
    pub(crate) fn new(limits: &HubLimits) -> Self {
        Self {
            inner: Arc::new(EventStreamInner {
                ring: Mutex::new(EventRing::new(limits.events, limits.event_bytes)),
                published: Notify::new(),
                attached: AtomicUsize::new(0),
                followers: AtomicUsize::new(0),
                waiting: AtomicUsize::new(0),
                message_bytes: limits.event_message_bytes,
                open_calls: Mutex::default(),
                connections: AtomicU64::new(0),
                tracer: OnceLock::new(),
            }),
        }
    }

    /// Subscribes a viewer: to what comes, or to what came after the event with a number and is still in the ring.
    /// Messages and calls are published while there is a subscription.
    pub fn subscribe(&self, viewer: EventViewer, after: Option<u64>) -> EventSubscription {
        EventSubscription::new(self.inner.clone(), viewer, self.position(after), EventScope::All)
    }

    /// Subscribes a viewer to all events but messages, which are not copied for it. That costs a call much less.
    pub fn subscribe_without_messages(&self, viewer: EventViewer, after: Option<u64>) -> EventSubscription {
        EventSubscription::new(self.inner.clone(), viewer, self.position(after), EventScope::WithoutMessages)
    }

    /// Returns the number of the first event after the one with a number, or of the next one.
    fn position(&self, after: Option<u64>) -> u64 {
        let next = self.inner.ring.lock().next_seq();
        after.map_or(next, |seq| seq.saturating_add(1).min(next))
    }

    /// Traces calls from now on, while there is a subscription: each continues the trace of its request or begins one, and
    /// the hub's requests to servers carry it on. The first sampler counts.
    pub fn trace_calls(&self, sampler: TraceSampler) {
        self.inner.tracer.get_or_init(|| CallTracer::new(sampler));
    }

    pub(super) fn tracer(&self) -> Option<&CallTracer> {
        self.inner.tracer.get()
    }

    /// Returns the number before the oldest event in the ring, to subscribe from.
    pub fn oldest(&self) -> u64 {
        self.inner.ring.lock().first_seq().saturating_sub(1)
    }

    /// Returns how many events are in the ring, and how many bytes count for them.
    pub fn size(&self) -> (usize, usize) {
        self.inner.ring.lock().size()
    }

    /// Reports whether messages are published.
    pub fn is_attached(&self) -> bool {
        self.inner.attached.load(Ordering::Relaxed) > 0
    }

    /// Reports whether calls are published.
    pub fn is_followed(&self) -> bool {
        self.inner.followers.load(Ordering::Relaxed) > 0
    }

    /// The most bytes of a message that is published whole.
    pub(super) fn message_bytes(&self) -> usize {
        self.inner.message_bytes
    }

    pub(super) fn number_connection(&self) -> u64 {
        self.inner.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Remembers the principal of a call until it is closed.
    pub(super) fn open_call(&self, call: NonZeroU64, principal: &Principal) {
        self.inner.open_calls.lock().insert(call, principal.clone());
    }

    pub(super) fn close_call(&self, call: NonZeroU64) {
        self.inner.open_calls.lock().remove(&call);
    }

    /// Returns the audience of a message of a call; without one, or after its end, only operators see it.
    pub(super) fn audience_of_call(&self, call: Option<NonZeroU64>) -> EventAudience {
        let owner = call.and_then(|call| self.inner.open_calls.lock().get(&call).cloned());
        owner.map_or(EventAudience::Operators, EventAudience::Owner)
    }

    /// Adds an event to the ring.
    pub(crate) fn publish(&self, body: EventBody, audience: EventAudience) {
        let time = EventTime::now();
        let share = if self.is_followed() { 1 } else { UNREAD_SHARE };
        self.inner.ring.lock().push(time, body, audience, share);
        if self.inner.waiting.load(Ordering::SeqCst) > 0 {
            self.inner.published.notify_waiters();
        }
    }
}

impl EventStreamInner {
    pub(super) fn attach(&self, scope: EventScope) {
        self.followers.fetch_add(1, Ordering::SeqCst);
        if scope == EventScope::All {
            self.attached.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn detach(&self, scope: EventScope) {
        self.followers.fetch_sub(1, Ordering::SeqCst);
        if scope == EventScope::All {
            self.attached.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub(super) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
