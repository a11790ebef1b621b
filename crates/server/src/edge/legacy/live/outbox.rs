use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use trunkline_session::{ProcessId, StreamId};

use super::LiveSession;
use crate::bus::{BusLink, OutboxMessages};
use crate::call::Handler;

/// No process has claimed the session, or another one has.
const NO_CLAIM: u64 = 0;

/// The messages that belong to no call, in a session that several processes share: one of them sends these at a time.
pub(super) struct SessionOutbox {
    link: Arc<BusLink>,
    /// The fence of this process's claim.
    fence: AtomicU64,
    /// The process that has taken over, as far as it is known.
    taken_by: Mutex<Option<ProcessId>>,
}

impl SessionOutbox {
    pub(super) fn process(&self) -> ProcessId {
        self.link.process()
    }
}

impl LiveSession {
    /// Shares the session with other processes.
    pub(crate) fn shared_over(mut self, link: Option<&Arc<BusLink>>) -> Self {
        self.outbox = link.map(|link| SessionOutbox {
            link: link.clone(),
            fence: AtomicU64::new(NO_CLAIM),
            taken_by: Mutex::new(None),
        });
        self
    }

    /// Returns the fence under which messages are stored; `None` if no other process shares the session.
    pub(crate) fn fence(&self) -> Option<u64> {
        self.outbox.as_ref().map(|outbox| outbox.fence.load(Ordering::SeqCst))
    }

    /// Reports whether this process sends the messages that belong to no call.
    pub(crate) fn has_outbox(&self) -> bool {
        self.fence() != Some(NO_CLAIM)
    }

    /// Lets this process send the messages, now that it has taken over what was `left` by another one.
    pub(crate) fn own_outbox(&self, handler: &dyn Handler, fence: u64, left: Option<OutboxMessages>) {
        let Some(outbox) = &self.outbox else { return };
        let subscription = self.subscription(handler);
        *outbox.taken_by.lock() = None;
        if let Some(left) = left {
            // The process before this one has notified of the changes that it has not left.
            subscription.discard_changes();
            subscription.add_all(left);
        }
        // A store without claims has no fences.
        outbox.fence.store(fence.max(1), Ordering::SeqCst);
        subscription.wake();
    }

    /// Ends the part of this process in sending the messages, and the connection of a stream that goes on at another one;
    /// returns what was not sent.
    pub(crate) fn lose_outbox(&self, stream: StreamId, to: ProcessId) -> OutboxMessages {
        let Some(outbox) = &self.outbox else { return OutboxMessages::default() };
        let mut taken_by = outbox.taken_by.lock();
        outbox.fence.store(NO_CLAIM, Ordering::SeqCst);
        *taken_by = Some(to);
        let (ended, subscription) = {
            let mut activity = self.lock();
            (activity.standalone_streams.remove(&stream), activity.subscription.clone())
        };
        if let Some(ended) = ended {
            ended.take_over();
        }
        let left = subscription.map(|subscription| subscription.take_all());
        drop(taken_by);
        left.unwrap_or_default()
    }

    /// Gives messages that could not be stored to the process that has taken over, or keeps them until it is known.
    pub(crate) fn return_messages(&self, left: OutboxMessages) {
        let taken_by = self.outbox.as_ref().and_then(|outbox| *outbox.taken_by.lock());
        match (&self.outbox, taken_by) {
            (Some(outbox), Some(process)) => outbox.link.pass_on(self.id(), process, &left),
            _ => self.queue_messages(left),
        }
    }

    /// Adds messages that wait to be sent.
    pub(crate) fn queue_messages(&self, left: OutboxMessages) {
        let subscription = self.lock().subscription.clone();
        if let Some(subscription) = subscription {
            subscription.add_all(left);
        }
    }
}
