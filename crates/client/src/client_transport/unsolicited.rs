//! What a server says outside of any request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_protocol::{JsonObject, Notification, Request};

use crate::mailbox::Mailbox;

/// Log messages and the like that wait to be looked at; beyond it the oldest is dropped.
const MAX_NOTIFICATIONS: usize = 256;

/// The bytes of those that wait, as far as there is more than one; beyond it the oldest is dropped.
pub(super) const MAX_NOTIFICATION_BYTES: usize = 1 << 20;

/// Questions that wait to be looked at; beyond it they are refused.
const MAX_REQUESTS: usize = 16;

/// Where a carrier puts what belongs to no request. Clones put it into the same place.
///
/// It never waits and never grows: change notices that nobody has looked at yet are merged, since the second says no more
/// than the first, and of everything else the oldest goes.
#[derive(Clone, Debug)]
pub(crate) struct UnsolicitedSender {
    shared: Arc<Mailbox<UnsolicitedQueue>>,
}

/// The other end of an [`UnsolicitedSender`].
#[derive(Debug)]
pub(crate) struct UnsolicitedReceiver {
    shared: Arc<Mailbox<UnsolicitedQueue>>,
}

/// Something that a server said outside of any request.
#[derive(Debug)]
pub(crate) enum UnsolicitedMessage {
    /// A log message or a change.
    Notification(Notification),
    /// A question.
    Request(Request),
    /// For a while the server could not be heard, and what it said meanwhile is lost.
    Interrupted,
    /// The server seems to have forgotten the session, although nobody has asked it for anything.
    SessionLost,
    /// The connection is gone for good; told once.
    Closed,
}

#[derive(Debug, Default)]
struct UnsolicitedQueue {
    notifications: VecDeque<Notification>,
    /// The bytes that the notices have together.
    bytes: usize,
    requests: VecDeque<Request>,
    interrupted: bool,
    session_lost: bool,
    closed: bool,
}

/// Makes both ends.
pub(crate) fn unsolicited_channel() -> (UnsolicitedSender, UnsolicitedReceiver) {
    let shared = Arc::<Mailbox<UnsolicitedQueue>>::default();
    (UnsolicitedSender { shared: shared.clone() }, UnsolicitedReceiver { shared })
}

impl UnsolicitedSender {
    /// Puts a notification aside.
    pub(crate) fn send_notification(&self, notice: Notification) {
        self.shared.update(|state| {
            if state.notifications.iter().any(|waiting| is_duplicate(waiting, &notice)) {
                return;
            }
            state.bytes += notification_bytes(&notice);
            state.notifications.push_back(notice);
            // However large the newest is, it is heard.
            while state.notifications.len() > MAX_NOTIFICATIONS
                || (state.notifications.len() > 1 && state.bytes > MAX_NOTIFICATION_BYTES)
            {
                state.pop_notification();
            }
        });
    }

    /// Puts a question aside, or gives it back if too many wait; the carrier then refuses it.
    pub(crate) fn send_request(&self, question: Request) -> Result<(), Request> {
        self.shared.update(|state| match state.requests.len() {
            MAX_REQUESTS.. => Err(question),
            _ => {
                state.requests.push_back(question);
                Ok(())
            }
        })
    }

    /// Says that nothing will ever come again.
    pub(crate) fn send_closed(&self) {
        self.shared.update(|state| state.closed = true);
    }

    /// Says that the server seems to have forgotten the session.
    pub(crate) fn send_session_lost(&self) {
        self.shared.update(|state| state.session_lost = true);
    }

    /// Says that what the server said meanwhile is lost, so that whoever watches has to look again.
    pub(crate) fn send_interrupted(&self) {
        self.shared.update(|state| state.interrupted = true);
    }
}

impl UnsolicitedReceiver {
    /// Polls for what comes next.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<UnsolicitedMessage> {
        self.shared.poll(cx, |state| match state.requests.pop_front() {
            Some(question) => Some(UnsolicitedMessage::Request(question)),
            None => state.next_except_requests(),
        })
    }

    /// Polls for what comes next, and lets questions wait.
    pub(crate) fn poll_next_except_requests(&self, cx: &mut Context<'_>) -> Poll<UnsolicitedMessage> {
        self.shared.poll(cx, UnsolicitedQueue::next_except_requests)
    }
}

impl UnsolicitedQueue {
    fn next_except_requests(&mut self) -> Option<UnsolicitedMessage> {
        if std::mem::take(&mut self.interrupted) {
            return Some(UnsolicitedMessage::Interrupted);
        }
        if let Some(notice) = self.pop_notification() {
            return Some(UnsolicitedMessage::Notification(notice));
        }
        if std::mem::take(&mut self.session_lost) {
            return Some(UnsolicitedMessage::SessionLost);
        }
        std::mem::take(&mut self.closed).then_some(UnsolicitedMessage::Closed)
    }

    fn pop_notification(&mut self) -> Option<Notification> {
        let notice = self.notifications.pop_front()?;
        self.bytes -= notification_bytes(&notice);
        Some(notice)
    }
}

/// Returns how many bytes of the server's a notice holds.
pub(super) fn notification_bytes(notice: &Notification) -> usize {
    let members = notice.params.members.iter().chain(notice.params.meta.iter().flat_map(JsonObject::iter));
    notice.method.len() + members.map(|(key, value)| key.len() + value.as_str().len()).sum::<usize>()
}

/// Reports whether a change notice says nothing that another one does not say already.
pub(super) fn is_duplicate(waiting: &Notification, notice: &Notification) -> bool {
    waiting.method == notice.method
        && match &*notice.method {
            "notifications/resources/updated" => waiting.params.get("uri") == notice.params.get("uri"),
            method => method.ends_with("/list_changed"),
        }
}
