use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use trunkline_protocol::Refusal;
use trunkline_session::Principal;

use super::{Interceptor, Next};
use crate::admission::{KeyPermit, KeyQuota};
use crate::call::{BoxFuture, Context, HandlerOutcome, IncomingCall};

/// Refuses calls of a principal at its limit of running calls, with [`Refusal::TOO_MANY`].
///
/// Anonymous callers are one principal. A call that waits for input does not count, since it does not run; after the
/// response it continues in any case.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    max: usize,
    pub(super) running: KeyQuota<Principal>,
}

impl ConcurrencyLimit {
    /// Allows every principal this many calls at a time.
    pub fn per_principal(most: usize) -> Self {
        Self { max: most, running: KeyQuota::new(most) }
    }
}

impl Interceptor for ConcurrencyLimit {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let principal = call.context.principal();
        let Some(permit) = self.running.acquire(principal.clone()) else {
            let refusal = Refusal::TOO_MANY.with_message(format!(
                "at most {} calls of one caller may run at a time; try again later",
                self.max
            ));
            return Box::pin(std::future::ready(Err(refusal)));
        };
        let context = call.context.clone();
        Box::pin(LimitedCall {
            future: next.run(call),
            context,
            running: self.running.clone(),
            principal,
            permit: Some(permit),
        })
    }
}

/// A call that counts while it runs.
struct LimitedCall {
    future: BoxFuture<'static, Result<HandlerOutcome, Refusal>>,
    context: Context,
    running: KeyQuota<Principal>,
    principal: Principal,
    permit: Option<KeyPermit<Principal>>,
}

impl Future for LimitedCall {
    type Output = Result<HandlerOutcome, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.permit.is_none() && !this.context.is_waiting() {
            // It was admitted when it began; a caller that has responded is not refused for the response.
            this.permit = this.running.acquire_up_to(this.principal.clone(), usize::MAX);
        }
        let answer = this.future.as_mut().poll(cx);
        if answer.is_pending() && this.context.is_waiting() {
            this.permit = None;
        }
        answer
    }
}
