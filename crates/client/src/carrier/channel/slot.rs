use std::collections::VecDeque;
use std::task::{Context, Poll};

use trunkline_protocol::Notification;

use crate::carrier::aside::{MOST_BYTES, says_the_same, weight};
use crate::carrier::{Arrived, Asked};
use crate::mailbox::Mailbox;

/// Notices that wait for one request to be polled; beyond it the oldest is dropped, and whoever polls is told.
const MOST_NOTICES: usize = 256;

/// Questions within one request that nobody has taken yet; beyond it they are refused.
const MOST_QUESTIONS: usize = 16;

/// Where the driver leaves what a server says within one request, for the exchange to find.
///
/// It is never full for long words: progress is merged, and so are changes that say the same.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Mailbox<State>,
}

#[derive(Debug, Default)]
struct State {
    before: VecDeque<Arrived>,
    /// The bytes that the notices among them have together.
    bytes: usize,
    questions: usize,
    skipped: bool,
    last: Option<Arrived>,
}

impl Slot {
    /// Leaves a notice.
    pub(super) fn notice(&self, notice: Notification) {
        self.state.change(|state| {
            if state.merges(&notice) {
                return;
            }
            state.bytes += weight(&notice);
            state.before.push_back(Arrived::Notice(notice));
            state.drop_oldest();
        });
    }

    /// Leaves a question; reports whether there was room for it, and settles it if not.
    #[must_use]
    pub(super) fn question(&self, question: Asked) -> bool {
        let refused = self.state.change(|state| {
            if state.questions >= MOST_QUESTIONS {
                return Some(question);
            }
            state.questions += 1;
            state.before.push_back(Arrived::Question(question));
            None
        });
        refused.map(Asked::settle).is_none()
    }

    /// Leaves the last word.
    pub(super) fn finish(&self, last: Arrived) {
        self.state.change(|state| state.last = Some(last));
    }

    /// Polls for the next word.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Arrived> {
        self.state.poll(cx, State::next)
    }
}

impl State {
    fn next(&mut self) -> Option<Arrived> {
        if std::mem::take(&mut self.skipped) {
            return Some(Arrived::Skipped);
        }
        match self.before.pop_front() {
            Some(arrived) => {
                self.taken(&arrived);
                Some(arrived)
            }
            None => self.last.take(),
        }
    }

    /// Counts off what is not here any more.
    fn taken(&mut self, arrived: &Arrived) {
        match arrived {
            Arrived::Notice(notice) => self.bytes -= weight(notice),
            Arrived::Question(_) => self.questions -= 1,
            Arrived::Skipped | Arrived::Response(_) | Arrived::Lost(_) => {}
        }
    }

    /// Drops the oldest notices as long as there are too many; however large the newest is, it is heard.
    fn drop_oldest(&mut self) {
        loop {
            let notices = self.before.len() - self.questions;
            if notices <= MOST_NOTICES && (notices <= 1 || self.bytes <= MOST_BYTES) {
                return;
            }
            let oldest = self.before.iter().position(|arrived| matches!(arrived, Arrived::Notice(_)));
            let Some(oldest) = oldest.and_then(|oldest| self.before.remove(oldest)) else { return };
            self.taken(&oldest);
            self.skipped = true;
        }
    }

    /// Merges a notice into one that waits, if it says no more, or if only the newest counts.
    fn merges(&mut self, notice: &Notification) -> bool {
        if notice.method == "notifications/progress" {
            let is_progress = |arrived: &&mut Arrived| matches!(arrived, Arrived::Notice(waiting) if waiting.method == notice.method);
            let waiting = self.before.iter_mut().find(is_progress);
            let Some(waiting) = waiting else { return false };
            let before = std::mem::replace(waiting, Arrived::Notice(notice.clone()));
            self.taken(&before);
            self.bytes += weight(notice);
            return true;
        }
        self.before
            .iter()
            .any(|arrived| matches!(arrived, Arrived::Notice(waiting) if says_the_same(waiting, notice)))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use trunkline_protocol::envelope::{Bounds, Incoming, read_text};
    use trunkline_protocol::{Message, Raw};

    use super::*;

    fn notice(json: String) -> Notification {
        match read_text(&json.into(), Bounds::default()).unwrap() {
            Incoming::One(Message::Notification(notice)) => notice,
            other => panic!("{other:?}"),
        }
    }

    fn said(slot: &Slot) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut said = Vec::new();
        while let Poll::Ready(arrived) = slot.poll_next(&mut cx) {
            said.push(match arrived {
                Arrived::Notice(notice) => format!("{} {:?}", notice.method, notice.params.members),
                Arrived::Skipped => "skipped".to_owned(),
                other => format!("{other:?}"),
            });
        }
        said
    }

    #[test]
    fn progress_and_equal_changes_are_merged_and_the_response_comes_last() {
        let slot = Slot::default();
        slot.finish(Arrived::Response(Ok(Raw::TRUE.into())));
        for (method, params) in [
            ("progress", r#"{"progress":1}"#),
            ("tools/list_changed", "{}"),
            ("progress", r#"{"progress":2}"#),
            ("tools/list_changed", "{}"),
            ("resources/updated", r#"{"uri":"a:1"}"#),
            ("resources/updated", r#"{"uri":"a:2"}"#),
            ("resources/updated", r#"{"uri":"a:1"}"#),
        ] {
            slot.notice(notice(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#
            )));
        }
        assert_eq!(
            said(&slot),
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
        let slot = Slot::default();
        for number in 0..10 * MOST_NOTICES {
            slot.notice(notice(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{number}}}}}"#
            )));
        }
        let said = said(&slot);
        assert_eq!(said.len(), MOST_NOTICES + 1);
        assert_eq!(said[0], "skipped");
        assert!(said[MOST_NOTICES].contains(&(10 * MOST_NOTICES - 1).to_string()));
    }
    #[test]
    fn a_flood_of_large_notices_costs_no_more_than_the_bound_and_the_last_is_heard() {
        let slot = Slot::default();
        let large = |number: usize, bytes: usize| {
            let data = "x".repeat(bytes);
            notice(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"number":{number},"data":"{data}"}}}}"#
            ))
        };
        for number in 0..100 {
            slot.notice(large(number, MOST_BYTES / 10));
            assert!(slot.state.look(|state| state.bytes) <= MOST_BYTES);
        }
        // One alone may be larger than the bound, since the bound for messages holds for it.
        slot.notice(large(100, 2 * MOST_BYTES));
        let said = said(&slot);
        assert_eq!(said.len(), 2);
        assert!(said[0] == "skipped" && said[1].contains("100"));
        assert_eq!(slot.state.look(|state| state.bytes), 0);
    }
}
