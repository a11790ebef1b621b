use std::collections::VecDeque;
use std::sync::Arc;

use trunkline_session::Principal;

use super::body::EventBody;
use super::event::{EventTime, HubEvent};
use super::subscription::EventViewer;

/// Counted for each event beside its texts.
const EVENT_OVERHEAD: usize = 512;

/// The viewers of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventAudience {
    /// Operators of the hub.
    Operators,
    /// The principal that it belongs to too.
    Owner(Principal),
}

/// An event in the ring.
#[derive(Debug)]
pub(super) struct RingEvent {
    pub(super) event: HubEvent,
    audience: EventAudience,
    bytes: usize,
}

/// The last events, within bounds of their number and bytes.
#[derive(Debug)]
pub(super) struct EventRing {
    events: VecDeque<Arc<RingEvent>>,
    bytes: usize,
    next_seq: u64,
    max_events: usize,
    max_bytes: usize,
}

/// What a reader gets from a position in the ring.
#[derive(Debug, Default)]
pub(super) struct RingBatch {
    /// The events that were lost.
    pub(super) lost: u64,
    pub(super) events: Vec<Arc<RingEvent>>,
    /// The position after them.
    pub(super) next: u64,
}

impl RingEvent {
    pub(super) fn is_visible_to(&self, viewer: &EventViewer) -> bool {
        match (viewer, &self.audience) {
            (EventViewer::Operator, _) => true,
            (EventViewer::Principal(viewer), EventAudience::Owner(owner)) => viewer == owner,
            (EventViewer::Principal(_), EventAudience::Operators) => false,
        }
    }
}

impl EventRing {
    pub(super) fn new(max_events: usize, max_bytes: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, next_seq: 1, max_events, max_bytes }
    }

    /// Adds an event, and drops the oldest until both bounds hold, divided by `share`.
    pub(super) fn push(&mut self, time: EventTime, body: EventBody, audience: EventAudience, share: usize) {
        let (max_events, max_bytes) = (self.max_events / share, self.max_bytes / share);
        let bytes = EVENT_OVERHEAD + text_bytes(&body);
        let event = HubEvent { seq: self.next_seq, time, body };
        self.next_seq += 1;
        while self.events.len() >= max_events || self.bytes + bytes > max_bytes {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.bytes;
        }
        if bytes <= max_bytes && max_events > 0 {
            self.bytes += bytes;
            self.events.push_back(Arc::new(RingEvent { event, audience, bytes }));
        }
    }

    /// Returns the events from a position on.
    pub(super) fn read(&self, from: u64, most: usize) -> RingBatch {
        let first = self.first_seq();
        let lost = first.saturating_sub(from);
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let events: Vec<_> = self.events.iter().skip(skip).take(most).cloned().collect();
        let next = from.max(first) + u64::try_from(events.len()).unwrap_or(0);
        RingBatch { lost, events, next }
    }

    /// Returns the number of the oldest event that is still here, or else of the next one.
    pub(super) fn first_seq(&self) -> u64 {
        self.events.front().map_or(self.next_seq, |oldest| oldest.event.seq)
    }

    /// Returns the number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns how many events there are, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.events.len(), self.bytes)
    }
}

/// Returns the bytes of the texts that can be long.
fn text_bytes(body: &EventBody) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match body {
        EventBody::Message(message) => {
            message.message.as_ref().map_or(0, |raw| raw.as_str().len()) + length(&message.message_prefix)
        }
        EventBody::CallStarted(call) => {
            call.method.len() + length(&call.name) + length(&call.item) + length(&call.client_name)
        }
        EventBody::CallEnded(call) => length(&call.error),
        EventBody::CallTraced(trace) => length(&trace.state) + length(&trace.request),
        EventBody::ServerCall(call) => length(&call.item) + length(&call.failure),
        EventBody::InputRequested(input) | EventBody::InputAnswered(input) => input.key.len(),
        EventBody::ClientConnected(client) | EventBody::ClientGone(client) => {
            length(&client.name) + length(&client.version) + client.principal.len()
        }
        EventBody::ServerState(state) => length(&state.reason),
        // Its data is text, or was bounded as text.
        EventBody::Log(log) => log.data.as_str().map_or(0, str::len) + length(&log.logger),
        EventBody::Stderr(stderr) => stderr.line.len(),
        EventBody::ServerConnected(_)
        | EventBody::ServerGone(_)
        | EventBody::Dropped { .. }
        | EventBody::Unknown => 0,
    }
}
