use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trunkline_session::Principal;

use super::body::EventBody;
use super::event::{EventTime, HubEvent};
use super::ring::RingEvent;
use super::stream::EventStreamInner;

/// Events that a subscription takes from the ring at once.
const BATCH: usize = 256;

/// How long messages are still published after the last subscription, so that a viewer who lost its connection can
/// resume without a gap.
const LINGER: Duration = Duration::from_secs(10);

/// Who sees the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventViewer {
    /// An operator of the hub: all events.
    Operator,
    /// A principal: the events of its own calls and connections.
    Principal(Principal),
}

/// The events that a subscription has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventScope {
    /// All of them.
    All,
    /// All but messages.
    WithoutMessages,
}

/// A viewer's position in the event stream. While there is one, calls are published, and messages if it has them.
#[derive(Debug)]
pub struct EventSubscription {
    inner: Arc<EventStreamInner>,
    viewer: EventViewer,
    scope: EventScope,
    next: u64,
    batch: VecDeque<Arc<RingEvent>>,
    /// Events that were lost and not yet reported.
    lost: u64,
}

impl EventSubscription {
    pub(super) fn new(
        inner: Arc<EventStreamInner>,
        viewer: EventViewer,
        next: u64,
        scope: EventScope,
    ) -> Self {
        inner.attach(scope);
        Self { inner, viewer, scope, next, batch: VecDeque::new(), lost: 0 }
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next_event(&mut self) -> HubEvent {
        loop {
            // Registered before looking, so that an event in between is not missed.
            let inner = self.inner.clone();
            let mut published = std::pin::pin!(inner.published.notified());
            published.as_mut().enable();
            if let Some(event) = self.try_next() {
                return event;
            }
            inner.begin_wait();
            // One that was published just before the wait was counted notified nothing.
            if let Some(event) = self.try_next() {
                inner.end_wait();
                return event;
            }
            let waiting = WaitGuard(&inner);
            published.await;
            drop(waiting);
        }
    }

    /// Waits for the next event, as a line of JSON without the end of the line. Cancel safe.
    pub async fn next(&mut self) -> Bytes {
        self.next_event().await.to_line().into()
    }

    /// Returns the next event, if there is one.
    pub fn try_next(&mut self) -> Option<HubEvent> {
        loop {
            if self.lost > 0 {
                let count = std::mem::take(&mut self.lost);
                // It has the number of the last event that was lost.
                let first = self.batch.front().map_or(self.next, |event| event.event.seq);
                let body = EventBody::Dropped { count };
                return Some(HubEvent { seq: first.saturating_sub(1), time: EventTime::now(), body });
            }
            while let Some(stored) = self.batch.pop_front() {
                if stored.is_visible_to(&self.viewer) && self.has(&stored.event.body) {
                    let mut event = stored.event.clone();
                    // Where the servers are is for operators.
                    if let (EventViewer::Principal(_), EventBody::ServerCall(call)) =
                        (&self.viewer, &mut event.body)
                    {
                        (call.address, call.port) = (None, None);
                    }
                    return Some(event);
                }
            }
            let batch = self.inner.ring.lock().read(self.next, BATCH);
            if batch.lost == 0 && batch.events.is_empty() {
                return None;
            }
            self.next = batch.next;
            self.lost = batch.lost;
            self.batch = batch.events.into();
        }
    }
}

impl EventSubscription {
    fn has(&self, body: &EventBody) -> bool {
        self.scope == EventScope::All || !matches!(body, EventBody::Message(_))
    }
}

impl Drop for EventSubscription {
    fn drop(&mut self) {
        let (inner, scope) = (self.inner.clone(), self.scope);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                inner.detach(scope);
            })),
            Err(_) => inner.detach(scope),
        }
    }
}

/// Ends a wait even if it is cancelled.
struct WaitGuard<'a>(&'a EventStreamInner);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}
