use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use trunkline_protocol::Refusal;
use trunkline_protocol::codec::Dialect;

use super::call_state::CallState;
use super::notification::{CallNotification, PendingAction};
use super::outcome::{BoxFuture, Handler, HandlerOutcome, IncomingCall};
use crate::metrics::process;

/// A call in progress: the handler's future and the state that it shares with its exchange.
///
/// Dropping it cancels the call.
pub(crate) struct ExecutingCall {
    shared: Arc<CallState>,
    future: Option<BoxFuture<'static, Result<HandlerOutcome, Refusal>>>,
    /// The outcome, while notifications remain to be sent before it. Boxed, since that is rare and every call is
    /// moved.
    finished: Option<Box<Result<HandlerOutcome, Refusal>>>,
    started: bool,
    /// The future was pending with open input requests, and has not been polled since.
    settling: bool,
}

/// The next step of a call: an action while it runs, or its outcome.
pub(crate) type CallProgress = ControlFlow<Result<HandlerOutcome, Refusal>, PendingAction>;

impl ExecutingCall {
    /// Starts a call; nothing runs before the first poll.
    pub(crate) fn start(handler: &dyn Handler, call: IncomingCall) -> Self {
        let shared = call.context.shared().clone();
        // Making the future may already run the author's code, and that may panic.
        let future = catch_unwind(AssertUnwindSafe(|| handler.call(call)));
        Self::from_future(shared, future.unwrap_or_else(|_| Box::pin(std::future::ready(Err(panicked())))))
    }

    pub(crate) fn from_future(
        shared: Arc<CallState>,
        future: BoxFuture<'static, Result<HandlerOutcome, Refusal>>,
    ) -> Self {
        Self { shared, future: Some(future), finished: None, started: false, settling: false }
    }

    pub(crate) fn shared(&self) -> &Arc<CallState> {
        &self.shared
    }

    /// Renders a notification for the caller; `None` if the caller does not want it.
    pub(crate) fn render(&self, notification: &CallNotification) -> Option<String> {
        self.shared.with_caller(|caller| {
            notification.render(
                Dialect::of(caller.revision),
                caller.progress_token.as_ref(),
                caller.log_level,
            )
        })
    }

    /// Polls for the next step.
    ///
    /// Cancel safe: a step that was not returned is returned by the next poll.
    pub(crate) fn poll_step(&mut self, cx: &mut TaskContext<'_>) -> Poll<CallProgress> {
        loop {
            // A call has no pending action before its first poll.
            if std::mem::replace(&mut self.started, true)
                && let Some(action) = self.shared.urgent_action()
            {
                if matches!(action, PendingAction::Cancelled) {
                    self.drop_future();
                }
                return Poll::Ready(ControlFlow::Continue(action));
            }
            if let Some(done) = self.finished.take() {
                return Poll::Ready(ControlFlow::Break(*done));
            }
            if let Poll::Ready(done) = self.poll_future(cx) {
                if self.shared.is_idle() {
                    return Poll::Ready(ControlFlow::Break(done));
                }
                self.finished = Some(Box::new(done));
                continue;
            }
            return match self.shared.next_action(cx.waker()) {
                Some(PendingAction::Cancelled) => continue,
                // A round is closed once the future has stayed pending for one more turn after its last input
                // request.
                Some(PendingAction::InputRequests) if !std::mem::replace(&mut self.settling, true) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(PendingAction::InputRequests) => {
                    self.settling = false;
                    Poll::Ready(ControlFlow::Continue(PendingAction::InputRequests))
                }
                Some(action) => Poll::Ready(ControlFlow::Continue(action)),
                None => {
                    self.settling = false;
                    Poll::Pending
                }
            };
        }
    }

    /// Polls the future while no exchange drives the call; ready when it has ended.
    pub(crate) fn poll_suspended(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.finished.is_none() {
            self.finished = Some(Box::new(ready!(self.poll_future(cx))));
        }
        Poll::Ready(())
    }

    fn poll_future(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<HandlerOutcome, Refusal>> {
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
            self.drop_future();
            Poll::Ready(Err(panicked()))
        })
    }

    /// Drops the future: it holds values of the author, and their `drop` may panic.
    fn drop_future(&mut self) {
        if let Some(future) = self.future.take()
            && catch_unwind(AssertUnwindSafe(|| drop(future))).is_err()
        {
            panicked();
        }
    }
}

fn panicked() -> Refusal {
    process::count_panic();
    tracing::error!("a handler panicked; its caller, if it still waits, gets an internal error");
    Refusal::PANICKED
}

impl Drop for ExecutingCall {
    fn drop(&mut self) {
        if self.future.is_some() {
            self.shared.cancel();
            self.drop_future();
        }
    }
}

impl fmt::Debug for ExecutingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutingCall").field("method", &self.shared.method()).finish_non_exhaustive()
    }
}
