//! What a server says outside of any request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_protocol::{Members, Notification, Request};

use crate::mailbox::Mailbox;

/// Log messages and the like that wait to be looked at; beyond it the oldest is dropped.
const MOST_NOTICES: usize = 256;

/// The bytes of those that wait, as far as there is more than one; beyond it the oldest is dropped.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// Questions that wait to be looked at; beyond it they are refused.
const MOST_QUESTIONS: usize = 16;

/// Where a carrier puts what belongs to no request. Clones put it into the same place.
///
/// It never waits and never grows: change notices that nobody has looked at yet are merged, since the second says no more
/// than the first, and of everything else the oldest goes.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    shared: Arc<Mailbox<State>>,
}

/// The other end of an [`Aside`].
#[derive(Debug)]
pub(crate) struct AsideReceiver {
    shared: Arc<Mailbox<State>>,
}

/// Something that a server said outside of any request.
#[derive(Debug)]
pub(crate) enum AsideEvent {
    /// A log message or a change.
    Notice(Notification),
    /// A question.
    Question(Request),
    /// For a while the server could not be heard, and what it said meanwhile is lost.
    Interrupted,
    /// The server seems to have forgotten the session, although nobody has asked it for anything.
    Forgotten,
    /// The connection is gone for good; told once.
    Closed,
}

#[derive(Debug, Default)]
struct State {
    notices: VecDeque<Notification>,
    /// The bytes that the notices have together.
    bytes: usize,
    questions: VecDeque<Request>,
    interrupted: bool,
    forgotten: bool,
    closed: bool,
}

/// Makes both ends.
pub(crate) fn aside() -> (Aside, AsideReceiver) {
    let shared = Arc::<Mailbox<State>>::default();
    (Aside { shared: shared.clone() }, AsideReceiver { shared })
}

impl Aside {
    /// Puts a notification aside.
    pub(crate) fn notice(&self, notice: Notification) {
        self.shared.change(|state| {
            if state.notices.iter().any(|waiting| says_the_same(waiting, &notice)) {
                return;
            }
            state.bytes += weight(&notice);
            state.notices.push_back(notice);
            // However large the newest is, it is heard.
            while state.notices.len() > MOST_NOTICES || (state.notices.len() > 1 && state.bytes > MOST_BYTES)
            {
                state.take_notice();
            }
        });
    }

    /// Puts a question aside, or gives it back if too many wait; the carrier then refuses it.
    pub(crate) fn question(&self, question: Request) -> Result<(), Request> {
        self.shared.change(|state| match state.questions.len() {
            MOST_QUESTIONS.. => Err(question),
            _ => {
                state.questions.push_back(question);
                Ok(())
            }
        })
    }

    /// Says that nothing will ever come again.
    pub(crate) fn closed(&self) {
        self.shared.change(|state| state.closed = true);
    }

    /// Says that the server seems to have forgotten the session.
    pub(crate) fn forgotten(&self) {
        self.shared.change(|state| state.forgotten = true);
    }

    /// Says that what the server said meanwhile is lost, so that whoever watches has to look again.
    pub(crate) fn interrupted(&self) {
        self.shared.change(|state| state.interrupted = true);
    }
}

impl AsideReceiver {
    /// Polls for what comes next.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<AsideEvent> {
        self.shared.poll(cx, |state| match state.questions.pop_front() {
            Some(question) => Some(AsideEvent::Question(question)),
            None => state.next_but_questions(),
        })
    }

    /// Polls for what comes next, and lets questions wait.
    pub(crate) fn poll_next_but_questions(&self, cx: &mut Context<'_>) -> Poll<AsideEvent> {
        self.shared.poll(cx, State::next_but_questions)
    }
}

impl State {
    fn next_but_questions(&mut self) -> Option<AsideEvent> {
        if std::mem::take(&mut self.interrupted) {
            return Some(AsideEvent::Interrupted);
        }
        if let Some(notice) = self.take_notice() {
            return Some(AsideEvent::Notice(notice));
        }
        if std::mem::take(&mut self.forgotten) {
            return Some(AsideEvent::Forgotten);
        }
        std::mem::take(&mut self.closed).then_some(AsideEvent::Closed)
    }

    fn take_notice(&mut self) -> Option<Notification> {
        let notice = self.notices.pop_front()?;
        self.bytes -= weight(&notice);
        Some(notice)
    }
}

/// Returns how many bytes of the server's a notice holds.
pub(super) fn weight(notice: &Notification) -> usize {
    let members = notice.params.members.iter().chain(notice.params.meta.iter().flat_map(Members::iter));
    notice.method.len() + members.map(|(key, value)| key.len() + value.as_str().len()).sum::<usize>()
}

/// Reports whether a change notice says nothing that another one does not say already.
pub(super) fn says_the_same(waiting: &Notification, notice: &Notification) -> bool {
    waiting.method == notice.method
        && match &*notice.method {
            "notifications/resources/updated" => waiting.params.get("uri") == notice.params.get("uri"),
            method => method.ends_with("/list_changed"),
        }
}
