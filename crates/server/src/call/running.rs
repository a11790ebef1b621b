use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use trunkline_protocol::Refusal;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::Question;

use super::note::{Left, Note};
use super::outcome::{BoxFuture, Call, Handler, Outcome};
use super::shared::Shared;
use crate::metrics::process;

/// A call in progress: the handler's future and what it shares with its exchange.
///
/// Dropping it cancels the call.
pub(crate) struct Running {
    shared: Arc<Shared>,
    future: Option<BoxFuture<'static, Result<Outcome, Refusal>>>,
    /// How it ended, while something has to be said before that. Boxed, since that is rare and every call is moved.
    finished: Option<Box<Result<Outcome, Refusal>>>,
    started: bool,
    /// The future was pending with open questions, and has not been polled since.
    settling: bool,
}

/// What a call does next.
pub(crate) enum Step {
    /// It says something.
    Note(Note),
    /// It has put these questions and waits.
    Ask(Vec<(String, Question)>),
    /// It asks to be detached from its stream for a while.
    Release(Duration),
    /// It is over.
    Done(Result<Outcome, Refusal>),
    /// It was cancelled by its caller, who wants no answer.
    Cancelled,
}

impl Running {
    /// Starts a call; nothing runs before the first poll.
    pub(crate) fn start(handler: &dyn Handler, call: Call) -> Self {
        let shared = call.context.shared().clone();
        // Making the future may already run the author's code, and that may panic.
        let future = catch_unwind(AssertUnwindSafe(|| handler.call(call)));
        Self::from_future(shared, future.unwrap_or_else(|_| Box::pin(std::future::ready(Err(panicked())))))
    }

    pub(crate) fn from_future(
        shared: Arc<Shared>,
        future: BoxFuture<'static, Result<Outcome, Refusal>>,
    ) -> Self {
        Self { shared, future: Some(future), finished: None, started: false, settling: false }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Writes a note as the caller reads it; `None` if it does not want to.
    pub(crate) fn render(&self, note: &Note) -> Option<String> {
        self.shared.with_caller(|caller| {
            note.render(Dialect::of(caller.revision), caller.progress_token.as_ref(), caller.log_level)
        })
    }

    /// Polls for the next step.
    ///
    /// Cancel safe: a step that was not returned is returned by the next poll.
    pub(crate) fn poll_step(&mut self, cx: &mut TaskContext<'_>) -> Poll<Step> {
        loop {
            // Before its first poll a call has said nothing yet.
            if std::mem::replace(&mut self.started, true) {
                match self.shared.urgent() {
                    Left::Cancelled => {
                        self.let_go();
                        return Poll::Ready(Step::Cancelled);
                    }
                    Left::Note(note) => return Poll::Ready(Step::Note(note)),
                    _ => {}
                }
            }
            if let Some(done) = self.finished.take() {
                return Poll::Ready(Step::Done(*done));
            }
            if let Poll::Ready(done) = self.poll_future(cx) {
                if self.shared.is_quiet() {
                    return Poll::Ready(Step::Done(done));
                }
                self.finished = Some(Box::new(done));
                continue;
            }
            return match self.shared.rest(cx.waker()) {
                Left::Cancelled => continue,
                Left::Note(note) => Poll::Ready(Step::Note(note)),
                Left::Release(retry) => Poll::Ready(Step::Release(retry)),
                // A round is closed once the future has stayed pending for one more turn after it put a question.
                Left::Questions if !std::mem::replace(&mut self.settling, true) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Left::Questions => {
                    self.settling = false;
                    Poll::Ready(Step::Ask(self.shared.take_unsent()))
                }
                Left::Nothing => {
                    self.settling = false;
                    Poll::Pending
                }
            };
        }
    }

    /// Polls the future while no exchange carries the call; ready when it has ended.
    pub(crate) fn poll_parked(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.finished.is_none() {
            self.finished = Some(Box::new(ready!(self.poll_future(cx))));
        }
        Poll::Ready(())
    }

    fn poll_future(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<Outcome, Refusal>> {
        let slot = &mut self.future;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let Some(future) = slot.as_mut() else { return Poll::Pending };
            let polled = future.as_mut().poll(cx);
            if polled.is_ready() {
                drop(slot.take());
            }
            polled
        }));
        polled.unwrap_or_else(|_| {
            self.let_go();
            Poll::Ready(Err(panicked()))
        })
    }

    /// Drops the future: what it holds is the author's, and may panic when it goes.
    fn let_go(&mut self) {
        if let Some(future) = self.future.take()
            && catch_unwind(AssertUnwindSafe(|| drop(future))).is_err()
        {
            panicked();
        }
    }
}

fn panicked() -> Refusal {
    process::panicked();
    tracing::error!("a handler panicked; its caller, if it still waits, gets an internal error");
    Refusal::PANICKED
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.future.is_some() {
            self.shared.cancel();
            self.let_go();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("method", &self.shared.method()).finish_non_exhaustive()
    }
}
