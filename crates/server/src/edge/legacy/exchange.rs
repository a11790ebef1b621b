use std::task::{Context as TaskContext, Poll, ready};

use super::super::{Answer, Event};
use super::call::LegacyCall;

/// The call of one message, or the calls of one batch, which are answered together.
#[expect(
    clippy::large_enum_variant,
    reason = "batches are rare, and boxing a call would cost every other one"
)]
pub(crate) enum LegacyExchange {
    /// One call.
    Single(LegacyCall),
    /// The calls of a batch that still run, and the answers of those that do not.
    Batch { calls: Vec<LegacyCall>, answers: Vec<String> },
    /// Everything is answered.
    Over,
}

impl LegacyExchange {
    /// Polls for what the carrier must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        let event = match self {
            Self::Single(call) => ready!(call.poll_event(cx)),
            Self::Batch { calls, answers } => ready!(poll_batch(calls, answers, cx)),
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
        answers => Event::Answer(Answer { message: format!("[{}]", answers.join(",")), status: 200 }),
    })
}
