use std::collections::VecDeque;
use std::task::{Context, Poll};

use trunkline_protocol::Notification;

use crate::client_transport::unsolicited::{MAX_NOTIFICATION_BYTES, is_duplicate, notification_bytes};
use crate::client_transport::{ExchangeEvent, ServerRequest};
use crate::polled_value::PolledValue;

/// Queued notifications of one request; beyond it the oldest is dropped, and the reader gets a `Skipped` event.
const MAX_NOTIFICATIONS: usize = 256;

/// Queued input requests of one request; beyond it they are refused.
const MAX_REQUESTS: usize = 16;

/// The queue between the driver and the exchange of one request.
///
/// It is bounded: progress notifications are merged, and so are equal change notifications.
#[derive(Debug, Default)]
pub(super) struct ResponseSlot {
    state: PolledValue<ResponseSlotState>,
}

#[derive(Debug, Default)]
struct ResponseSlotState {
    queue: VecDeque<ExchangeEvent>,
    /// The total bytes of the queued notifications.
    bytes: usize,
    request_count: usize,
    skipped: bool,
    last: Option<ExchangeEvent>,
}

impl ResponseSlot {
    /// Queues a notification; returns how many older ones were dropped for it.
    pub(super) fn push_notification(&self, notification: Notification) -> usize {
        self.state.update(|state| {
            if state.merge_notification(&notification) {
                return 0;
            }
            state.bytes += notification_bytes(&notification);
            state.queue.push_back(ExchangeEvent::Notification(notification));
            state.drop_oldest()
        })
    }

    /// Queues an input request; reports whether the queue accepted it, and resolves it if not.
    #[must_use]
    pub(super) fn push_request(&self, request: ServerRequest) -> bool {
        let refused = self.state.update(|state| {
            if state.request_count >= MAX_REQUESTS {
                return Some(request);
            }
            state.request_count += 1;
            state.queue.push_back(ExchangeEvent::Request(request));
            None
        });
        refused.map(ServerRequest::resolve).is_none()
    }

    /// Sets the final event.
    pub(super) fn finish(&self, last: ExchangeEvent) {
        self.state.update(|state| state.last = Some(last));
    }

    /// Polls for the next event.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<ExchangeEvent> {
        self.state.poll(cx, ResponseSlotState::next)
    }
}

impl ResponseSlotState {
    fn next(&mut self) -> Option<ExchangeEvent> {
        if std::mem::take(&mut self.skipped) {
            return Some(ExchangeEvent::Skipped);
        }
        match self.queue.pop_front() {
            Some(arrived) => {
                self.uncount(&arrived);
                Some(arrived)
            }
            None => self.last.take(),
        }
    }

    /// Subtracts an event that left the queue.
    fn uncount(&mut self, arrived: &ExchangeEvent) {
        match arrived {
            ExchangeEvent::Notification(notification) => self.bytes -= notification_bytes(notification),
            ExchangeEvent::Request(_) => self.request_count -= 1,
            ExchangeEvent::Skipped | ExchangeEvent::Response(_) | ExchangeEvent::Failed(_) => {}
        }
    }

    /// Drops the oldest notifications above the limits, and returns how many; the newest is always kept, whatever its
    /// size.
    fn drop_oldest(&mut self) -> usize {
        let mut dropped = 0;
        loop {
            let notifications = self.queue.len() - self.request_count;
            if notifications <= MAX_NOTIFICATIONS
                && (notifications <= 1 || self.bytes <= MAX_NOTIFICATION_BYTES)
            {
                return dropped;
            }
            let oldest =
                self.queue.iter().position(|arrived| matches!(arrived, ExchangeEvent::Notification(_)));
            let Some(oldest) = oldest.and_then(|oldest| self.queue.remove(oldest)) else { return dropped };
            self.uncount(&oldest);
            self.skipped = true;
            dropped += 1;
        }
    }

    /// Merges a notification into a queued one, if it is a duplicate or if only the newest matters.
    fn merge_notification(&mut self, notification: &Notification) -> bool {
        if notification.method == "notifications/progress" {
            let is_progress = |arrived: &&mut ExchangeEvent| matches!(arrived, ExchangeEvent::Notification(waiting) if waiting.method == notification.method);
            let waiting = self.queue.iter_mut().find(is_progress);
            let Some(waiting) = waiting else { return false };
            let before = std::mem::replace(waiting, ExchangeEvent::Notification(notification.clone()));
            self.uncount(&before);
            self.bytes += notification_bytes(notification);
            return true;
        }
        self.queue
            .iter()
            .any(|arrived| matches!(arrived, ExchangeEvent::Notification(waiting) if is_duplicate(waiting, notification)))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use trunkline_protocol::envelope::{MessageLimits, MessageOrBatch, read_text};
    use trunkline_protocol::{Message, RawJson};

    use super::*;

    fn notification(json: String) -> Notification {
        match read_text(&json.into(), MessageLimits::default()).unwrap() {
            MessageOrBatch::One(Message::Notification(notification)) => notification,
            other => panic!("{other:?}"),
        }
    }

    fn drain_methods(slot: &ResponseSlot) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut methods = Vec::new();
        while let Poll::Ready(arrived) = slot.poll_next(&mut cx) {
            methods.push(match arrived {
                ExchangeEvent::Notification(notification) => {
                    format!("{} {:?}", notification.method, notification.params.members)
                }
                ExchangeEvent::Skipped => "skipped".to_owned(),
                other => format!("{other:?}"),
            });
        }
        methods
    }

    #[test]
    fn progress_and_equal_changes_are_merged_and_the_response_comes_last() {
        let slot = ResponseSlot::default();
        slot.finish(ExchangeEvent::Response(Ok(RawJson::TRUE.into())));
        for (method, params) in [
            ("progress", r#"{"progress":1}"#),
            ("tools/list_changed", "{}"),
            ("progress", r#"{"progress":2}"#),
            ("tools/list_changed", "{}"),
            ("resources/updated", r#"{"uri":"a:1"}"#),
            ("resources/updated", r#"{"uri":"a:2"}"#),
            ("resources/updated", r#"{"uri":"a:1"}"#),
        ] {
            slot.push_notification(notification(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#
            )));
        }
        assert_eq!(
            drain_methods(&slot),
            [
                r#"notifications/progress {"progress": 2}"#,
                "notifications/tools/list_changed {}",
                r#"notifications/resources/updated {"uri": "a:1"}"#,
                r#"notifications/resources/updated {"uri": "a:2"}"#,
                "Response(Ok(true))",
            ]
        );
    }

    #[test]
    fn notification_flood_is_bounded_and_reported_as_skipped() {
        let slot = ResponseSlot::default();
        let mut dropped = 0;
        for number in 0..10 * MAX_NOTIFICATIONS {
            dropped += slot.push_notification(notification(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{number}}}}}"#
            )));
        }
        assert_eq!(dropped, 9 * MAX_NOTIFICATIONS);
        let methods = drain_methods(&slot);
        assert_eq!(methods.len(), MAX_NOTIFICATIONS + 1);
        assert_eq!(methods[0], "skipped");
        assert!(methods[MAX_NOTIFICATIONS].contains(&(10 * MAX_NOTIFICATIONS - 1).to_string()));
    }
    #[test]
    fn large_notification_flood_is_bounded_and_the_last_is_delivered() {
        let slot = ResponseSlot::default();
        let large = |number: usize, bytes: usize| {
            let data = "x".repeat(bytes);
            notification(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"number":{number},"data":"{data}"}}}}"#
            ))
        };
        for number in 0..100 {
            slot.push_notification(large(number, MAX_NOTIFICATION_BYTES / 10));
            assert!(slot.state.with(|state| state.bytes) <= MAX_NOTIFICATION_BYTES);
        }
        // A single one may exceed this limit, since the limit for messages applies to it.
        slot.push_notification(large(100, 2 * MAX_NOTIFICATION_BYTES));
        let methods = drain_methods(&slot);
        assert_eq!(methods.len(), 2);
        assert!(methods[0] == "skipped" && methods[1].contains("100"));
        assert_eq!(slot.state.with(|state| state.bytes), 0);
    }
}
