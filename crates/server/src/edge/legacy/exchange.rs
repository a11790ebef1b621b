use std::task::{Context as TaskContext, Poll, ready};

use trunkline_protocol::Refusal;

use super::super::{Answer, Event};
use super::call::LegacyCall;
use crate::unanswered::Reserved;

/// The call of one message, or the calls of one batch, which are answered together.
pub(crate) enum LegacyExchange {
    /// One call.
    Single(Box<LegacyCall>),
    /// The calls of a batch that still run, and the answers of those that do not.
    Batch {
        calls: Vec<LegacyCall>,
        answers: Vec<String>,
        /// Room for the batch, of which each call holds a part.
        _reserved: Option<Reserved>,
    },
    /// Everything is answered.
    Over,
}

impl LegacyExchange {
    /// Reports whether a call waits for an answer of the client.
    pub(crate) fn is_asking(&self) -> bool {
        self.calls().iter().any(LegacyCall::is_asking)
    }

    /// Fails the questions that are open, as if the client were gone.
    pub(crate) fn abandon_questions(&self) {
        self.calls().iter().for_each(LegacyCall::abandon_questions);
    }

    /// Returns how many calls still run.
    pub(crate) fn count(&self) -> usize {
        self.calls().len()
    }

    /// Ends what still runs, and answers that with a refusal.
    pub(crate) fn cut_short(self, refusal: &Refusal) -> Answer {
        match self {
            Self::Single(call) => call.refuse(refusal),
            Self::Batch { calls, mut answers, .. } => {
                answers.extend(calls.iter().map(|call| call.refuse(refusal).message));
                together(&answers)
            }
            Self::Over => together(&[]),
        }
    }

    /// Keeps the room of a large message while it runs.
    pub(super) fn keep(&mut self, reserved: Reserved) {
        match self {
            Self::Single(call) => call.keep(reserved),
            Self::Batch { _reserved, .. } => *_reserved = Some(reserved),
            Self::Over => {}
        }
    }

    fn calls(&self) -> &[LegacyCall] {
        match self {
            Self::Single(call) => std::slice::from_ref(call),
            Self::Batch { calls, .. } => calls,
            Self::Over => &[],
        }
    }

    /// Polls for what the carrier must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        let event = match self {
            Self::Single(call) => ready!(call.poll_event(cx)),
            Self::Batch { calls, answers, .. } => ready!(poll_batch(calls, answers, cx)),
            Self::Over => return Poll::Ready(Event::Nothing),
        };
        if matches!(event, Event::Answer(_) | Event::Nothing) {
            *self = Self::Over;
        }
        Poll::Ready(event)
    }
}

fn poll_batch(
    calls: &mut Vec<LegacyCall>,
    answers: &mut Vec<String>,
    cx: &mut TaskContext<'_>,
) -> Poll<Event> {
    let mut at = 0;
    while let Some(call) = calls.get_mut(at) {
        match call.poll_event(cx) {
            Poll::Pending => at += 1,
            Poll::Ready(Event::Answer(answer)) => {
                calls.swap_remove(at);
                answers.push(answer.message);
            }
            Poll::Ready(Event::Nothing) => {
                calls.swap_remove(at);
            }
            Poll::Ready(event) => return Poll::Ready(event),
        }
    }
    if !calls.is_empty() {
        return Poll::Pending;
    }
    Poll::Ready(match answers.as_slice() {
        [] => Event::Nothing,
        answers => Event::Answer(together(answers)),
    })
}

/// Makes the answer of a batch.
pub(super) fn together(answers: &[String]) -> Answer {
    Answer { message: format!("[{}]", answers.join(",")), status: 200 }
}
