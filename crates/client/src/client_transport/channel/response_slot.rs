use std::collections::VecDeque;
use std::task::{Context, Poll};

use trunkline_protocol::Notification;

use crate::client_transport::unsolicited::{MAX_NOTIFICATION_BYTES, is_duplicate, notification_bytes};
use crate::client_transport::{ExchangeEvent, ServerRequest};
use crate::mailbox::Mailbox;

/// Notices that wait for one request to be polled; beyond it the oldest is dropped, and whoever polls is told.
const MAX_NOTIFICATIONS: usize = 256;

/// Questions within one request that nobody has taken yet; beyond it they are refused.
const MAX_REQUESTS: usize = 16;

/// Where the driver leaves what a server says within one request, for the exchange to find.
///
/// It is never full for long words: progress is merged, and so are changes that say the same.
#[derive(Debug, Default)]
pub(super) struct ResponseSlot {
    state: Mailbox<ResponseSlotState>,
}

#[derive(Debug, Default)]
struct ResponseSlotState {
    queue: VecDeque<ExchangeEvent>,
    /// The bytes that the notices among them have together.
    bytes: usize,
    request_count: usize,
    skipped: bool,
    last: Option<ExchangeEvent>,
}

impl ResponseSlot {
    /// Leaves a notice.
    pub(super) fn push_notification(&self, notice: Notification) {
        self.state.update(|state| {
            if state.merge_notification(&notice) {
                return;
            }
            state.bytes += notification_bytes(&notice);
            state.queue.push_back(ExchangeEvent::Notification(notice));
            state.drop_oldest();
        });
    }

    /// Leaves a question; reports whether there was room for it, and settles it if not.
    #[must_use]
    pub(super) fn push_request(&self, question: ServerRequest) -> bool {
        let refused = self.state.update(|state| {
            if state.request_count >= MAX_REQUESTS {
                return Some(question);
            }
            state.request_count += 1;
            state.queue.push_back(ExchangeEvent::Request(question));
            None
        });
        refused.map(ServerRequest::resolve).is_none()
    }

    /// Leaves the last word.
    pub(super) fn finish(&self, last: ExchangeEvent) {
        self.state.update(|state| state.last = Some(last));
    }

    /// Polls for the next word.
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

    /// Counts off what is not here any more.
    fn uncount(&mut self, arrived: &ExchangeEvent) {
        match arrived {
            ExchangeEvent::Notification(notice) => self.bytes -= notification_bytes(notice),
            ExchangeEvent::Request(_) => self.request_count -= 1,
            ExchangeEvent::Skipped | ExchangeEvent::Response(_) | ExchangeEvent::Failed(_) => {}
        }
    }

    /// Drops the oldest notices as long as there are too many; however large the newest is, it is heard.
    fn drop_oldest(&mut self) {
        loop {
            let notices = self.queue.len() - self.request_count;
            if notices <= MAX_NOTIFICATIONS && (notices <= 1 || self.bytes <= MAX_NOTIFICATION_BYTES) {
                return;
            }
            let oldest =
                self.queue.iter().position(|arrived| matches!(arrived, ExchangeEvent::Notification(_)));
            let Some(oldest) = oldest.and_then(|oldest| self.queue.remove(oldest)) else { return };
            self.uncount(&oldest);
            self.skipped = true;
        }
    }

    /// Merges a notice into one that waits, if it says no more, or if only the newest counts.
    fn merge_notification(&mut self, notice: &Notification) -> bool {
        if notice.method == "notifications/progress" {
            let is_progress = |arrived: &&mut ExchangeEvent| matches!(arrived, ExchangeEvent::Notification(waiting) if waiting.method == notice.method);
            let waiting = self.queue.iter_mut().find(is_progress);
            let Some(waiting) = waiting else { return false };
            let before = std::mem::replace(waiting, ExchangeEvent::Notification(notice.clone()));
            self.uncount(&before);
            self.bytes += notification_bytes(notice);
            return true;
        }
        self.queue
            .iter()
            .any(|arrived| matches!(arrived, ExchangeEvent::Notification(waiting) if is_duplicate(waiting, notice)))
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
            MessageOrBatch::One(Message::Notification(notice)) => notice,
            other => panic!("{other:?}"),
        }
    }

    fn drain_methods(slot: &ResponseSlot) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut said = Vec::new();
        while let Poll::Ready(arrived) = slot.poll_next(&mut cx) {
            said.push(match arrived {
                ExchangeEvent::Notification(notice) => {
                    format!("{} {:?}", notice.method, notice.params.members)
                }
                ExchangeEvent::Skipped => "skipped".to_owned(),
                other => format!("{other:?}"),
            });
        }
        said
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
    fn a_flood_of_notices_costs_no_more_than_the_bound_and_is_told() {
        let slot = ResponseSlot::default();
        for number in 0..10 * MAX_NOTIFICATIONS {
            slot.push_notification(notification(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{number}}}}}"#
            )));
        }
        let said = drain_methods(&slot);
        assert_eq!(said.len(), MAX_NOTIFICATIONS + 1);
        assert_eq!(said[0], "skipped");
        assert!(said[MAX_NOTIFICATIONS].contains(&(10 * MAX_NOTIFICATIONS - 1).to_string()));
    }
    #[test]
    fn a_flood_of_large_notices_costs_no_more_than_the_bound_and_the_last_is_heard() {
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
        // One alone may be larger than the bound, since the bound for messages holds for it.
        slot.push_notification(large(100, 2 * MAX_NOTIFICATION_BYTES));
        let said = drain_methods(&slot);
        assert_eq!(said.len(), 2);
        assert!(said[0] == "skipped" && said[1].contains("100"));
        assert_eq!(slot.state.with(|state| state.bytes), 0);
    }
}
