use std::task::{Context as TaskContext, Poll};

use super::super::{Answer, Event};
use super::call::LegacyCall;

/// The call of one message, or the calls of one batch, which are answered together.
pub(crate) struct LegacyExchange {
    calls: Vec<LegacyCall>,
    /// The answers so far of a batch; `None` when the message was not one.
    batch: Option<Vec<String>>,
}

impl LegacyExchange {
    pub(super) fn single(call: LegacyCall) -> Self {
        Self { calls: vec![call], batch: None }
    }

    pub(super) fn batch(calls: Vec<LegacyCall>, answers: Vec<String>) -> Self {
        Self { calls, batch: Some(answers) }
    }

    pub(super) fn into_calls(self) -> Vec<LegacyCall> {
        self.calls
    }

    /// Polls for what the carrier must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        let mut at = 0;
        while let Some(call) = self.calls.get_mut(at) {
            match call.poll_event(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Event::Answer(answer)) => {
                    self.calls.swap_remove(at);
                    match &mut self.batch {
                        None => return Poll::Ready(Event::Answer(answer)),
                        Some(answers) => answers.push(answer.message),
                    }
                }
                Poll::Ready(Event::Nothing) => {
                    self.calls.swap_remove(at);
                }
                Poll::Ready(event) => return Poll::Ready(event),
            }
        }
        if !self.calls.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(match self.batch.take() {
            Some(answers) if !answers.is_empty() => {
                Event::Answer(Answer { message: format!("[{}]", answers.join(",")), status: 200 })
            }
            _ => Event::Nothing,
        })
    }
}
