use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{Method, Refusal};

use super::{Interceptor, Next};
use crate::call::{BoxFuture, Context, HandlerOutcome, IncomingCall};

/// Aborts calls that take too long, however much progress they report.
///
/// The timeout is paused while an input request is open: users may take as long as they like, within the time that a
/// call may be suspended. A call that is run again from its start after an input request has its full time again.
///
/// The timeout of a tool is an error in its result, for the model to read; any other call is refused with
/// [`Refusal::TIMED_OUT`].
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// Allows calls to run for this long.
    pub const fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

impl Interceptor for Timeout {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let (method, context) = (call.method, call.context.clone());
        let clock = TimeoutClock::Running { since: Instant::now(), left: self.limit, sleep: None };
        Box::pin(TimedCall { future: Some(next.run(call)), method, context, limit: self.limit, clock })
    }
}

struct TimedCall {
    future: Option<BoxFuture<'static, Result<HandlerOutcome, Refusal>>>,
    method: Method,
    context: Context,
    limit: Duration,
    clock: TimeoutClock,
}

enum TimeoutClock {
    Running {
        since: Instant,
        left: Duration,
        /// Made when the call first has to wait, which most never do.
        sleep: Option<Pin<Box<Sleep>>>,
    },
    Paused {
        left: Duration,
    },
}

impl TimeoutClock {
    fn pause(&mut self) {
        if let Self::Running { since, left, .. } = self {
            *self = Self::Paused { left: left.saturating_sub(since.elapsed()) };
        }
    }

    fn resume(&mut self) {
        if let Self::Paused { left } = self {
            *self = Self::Running { since: Instant::now(), left: *left, sleep: None };
        }
    }

    /// Ready when the timeout has elapsed.
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Self::Running { since, left, sleep } = self else { return Poll::Pending };
        // A deadline beyond the range of the clock never expires.
        let Some(due) = since.checked_add(*left) else { return Poll::Pending };
        sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due))).as_mut().poll(cx)
    }
}

impl Future for TimedCall {
    type Output = Result<HandlerOutcome, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(answer) = &mut this.future else { return Poll::Pending };
        if !this.context.is_waiting() {
            this.clock.resume();
        }
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            this.future = None;
            return Poll::Ready(answer);
        }
        // Input requests are sent, and responses consumed, only in polls, so the change is visible here.
        if this.context.is_waiting() {
            this.clock.pause();
            return Poll::Pending;
        }
        std::task::ready!(this.clock.poll(cx));
        this.future = None;
        this.context.shared().abort();
        Poll::Ready(timed_out(this.method, this.limit))
    }
}

fn timed_out(method: Method, limit: Duration) -> Result<HandlerOutcome, Refusal> {
    let sentence =
        format!("the call was ended: it took longer than {limit:?}, the most that this server allows");
    match method {
        Method::ToolsCall => Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(sentence)))),
        _ => Err(Refusal::TIMED_OUT.with_message(sentence)),
    }
}
