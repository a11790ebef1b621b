//! Messages of a server that belong to no request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_protocol::{JsonObject, Notification, Request};

use super::open_requests::{OpenRequest, OpenRequests};
use crate::dropped_message::{DropCallback, DroppedMessage};
use crate::polled_value::PolledValue;

/// Queued notifications; beyond it the oldest is dropped.
const MAX_NOTIFICATIONS: usize = 256;

/// Bytes of queued notifications, if there is more than one; beyond it the oldest is dropped.
pub(super) const MAX_NOTIFICATION_BYTES: usize = 1 << 20;

/// Queued input requests; beyond it they are refused.
const MAX_REQUESTS: usize = 16;

/// The queue into which a transport puts messages that belong to no request. Clones share one queue.
///
/// Sending never blocks, and the queue is bounded: a change notification equal to a queued one is merged with it,
/// and of all others the oldest is dropped.
#[derive(Clone, Debug)]
pub(crate) struct UnsolicitedSender {
    shared: Arc<PolledValue<UnsolicitedQueue>>,
    open_requests: Arc<OpenRequests>,
    on_dropped: Option<DropCallback>,
}

/// The other end of an [`UnsolicitedSender`].
#[derive(Debug)]
pub(crate) struct UnsolicitedReceiver {
    shared: Arc<PolledValue<UnsolicitedQueue>>,
    open_requests: Arc<OpenRequests>,
}

/// A message or event that belongs to no request.
#[derive(Debug)]
pub(crate) enum UnsolicitedMessage {
    /// A log message or a change.
    Notification(Notification),
    /// An input request, which counts as open until the second part is dropped.
    Request(Request, OpenRequest),
    /// The stream was interrupted, and messages were lost.
    Interrupted,
    /// The server seems to have lost the session, as noticed on the standalone stream.
    SessionLost,
    /// The connection is closed for good; sent once.
    Closed,
}

#[derive(Debug, Default)]
struct UnsolicitedQueue {
    notifications: VecDeque<Notification>,
    /// The total bytes of the notifications.
    bytes: usize,
    requests: VecDeque<(Request, OpenRequest)>,
    interrupted: bool,
    session_lost: bool,
    closed: bool,
}

/// Creates both ends.
pub(crate) fn unsolicited_channel(
    on_dropped: Option<DropCallback>,
) -> (UnsolicitedSender, UnsolicitedReceiver) {
    let shared = Arc::<PolledValue<UnsolicitedQueue>>::default();
    let open_requests = Arc::<OpenRequests>::default();
    (
        UnsolicitedSender { shared: shared.clone(), open_requests: open_requests.clone(), on_dropped },
        UnsolicitedReceiver { shared, open_requests },
    )
}

impl UnsolicitedSender {
    /// Reports a message that is dropped.
    pub(crate) fn count_dropped(&self, kind: DroppedMessage) {
        DropCallback::report(self.on_dropped.as_ref(), kind);
    }

    /// Queues a notification.
    pub(crate) fn send_notification(&self, notification: Notification) {
        let dropped = self.shared.update(|state| {
            if state.notifications.iter().any(|waiting| is_duplicate(waiting, &notification)) {
                return 0;
            }
            state.bytes += notification_bytes(&notification);
            state.notifications.push_back(notification);
            // The newest is always kept, whatever its size.
            let mut dropped = 0;
            while state.notifications.len() > MAX_NOTIFICATIONS
                || (state.notifications.len() > 1 && state.bytes > MAX_NOTIFICATION_BYTES)
            {
                state.pop_notification();
                dropped += 1;
            }
            dropped
        });
        (0..dropped).for_each(|_| self.count_dropped(DroppedMessage::Notification));
    }

    /// Queues an input request, or returns it if the queue is full; the transport then refuses it.
    pub(crate) fn send_request(&self, request: Request) -> Result<(), Request> {
        let queued = self.shared.update(|state| match state.requests.len() {
            MAX_REQUESTS.. => Err(request),
            _ => {
                state.requests.push_back((request, self.open_requests.begin()));
                Ok(())
            }
        });
        queued.inspect_err(|_| self.count_dropped(DroppedMessage::Request))
    }

    /// Signals that the connection is closed for good.
    pub(crate) fn send_closed(&self) {
        self.shared.update(|state| state.closed = true);
    }

    /// Signals that the server seems to have lost the session.
    pub(crate) fn send_session_lost(&self) {
        self.shared.update(|state| state.session_lost = true);
    }

    /// Signals that messages were lost, so that subscribers have to refresh.
    pub(crate) fn send_interrupted(&self) {
        self.shared.update(|state| state.interrupted = true);
    }
}

impl UnsolicitedReceiver {
    /// Returns the count of the input requests that are not answered yet.
    pub(crate) fn open_requests(&self) -> Arc<OpenRequests> {
        self.open_requests.clone()
    }

    /// Polls for the next message.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<UnsolicitedMessage> {
        self.shared.poll(cx, |state| match state.requests.pop_front() {
            Some((request, open)) => Some(UnsolicitedMessage::Request(request, open)),
            None => state.next_except_requests(),
        })
    }

    /// Polls for the next message, and leaves input requests in the queue.
    pub(crate) fn poll_next_except_requests(&self, cx: &mut Context<'_>) -> Poll<UnsolicitedMessage> {
        self.shared.poll(cx, UnsolicitedQueue::next_except_requests)
    }
}

impl UnsolicitedQueue {
    fn next_except_requests(&mut self) -> Option<UnsolicitedMessage> {
        if std::mem::take(&mut self.interrupted) {
            return Some(UnsolicitedMessage::Interrupted);
        }
        if let Some(notification) = self.pop_notification() {
            return Some(UnsolicitedMessage::Notification(notification));
        }
        if std::mem::take(&mut self.session_lost) {
            return Some(UnsolicitedMessage::SessionLost);
        }
        std::mem::take(&mut self.closed).then_some(UnsolicitedMessage::Closed)
    }

    fn pop_notification(&mut self) -> Option<Notification> {
        let notification = self.notifications.pop_front()?;
        self.bytes -= notification_bytes(&notification);
        Some(notification)
    }
}

/// Returns the size of a notification in bytes.
pub(super) fn notification_bytes(notification: &Notification) -> usize {
    let members =
        notification.params.members.iter().chain(notification.params.meta.iter().flat_map(JsonObject::iter));
    notification.method.len() + members.map(|(key, value)| key.len() + value.as_str().len()).sum::<usize>()
}

/// Reports whether a change notification is equal to a queued one.
pub(super) fn is_duplicate(waiting: &Notification, notification: &Notification) -> bool {
    waiting.method == notification.method
        && match &*notification.method {
            "notifications/resources/updated" => waiting.params.get("uri") == notification.params.get("uri"),
            method => method.ends_with("/list_changed"),
        }
}
