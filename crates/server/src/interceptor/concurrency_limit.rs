use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::Refusal;
use trunkline_session::Principal;

use super::{Interceptor, Next};
use crate::call::{BoxFuture, Context, HandlerOutcome, IncomingCall};

/// Refuses calls of a principal at its limit of running calls, with [`Refusal::TOO_MANY`].
///
/// Anonymous callers are one principal. A call that waits for input does not count, since it does not run; after the
/// response it continues in any case.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    max: usize,
    /// Only principals with running calls.
    running: Arc<Mutex<HashMap<Principal, usize>>>,
}

impl ConcurrencyLimit {
    /// Allows every principal this many calls at a time.
    pub fn per_principal(most: usize) -> Self {
        Self { max: most, running: Arc::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.running.lock()
    }

    fn acquire(&self, principal: &Principal, most: usize) -> Option<ConcurrencyPermit> {
        let mut running = self.lock();
        let count = running.get(principal).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        running.insert(principal.clone(), count + 1);
        Some(ConcurrencyPermit { limit: self.clone(), principal: principal.clone() })
    }
}

impl Interceptor for ConcurrencyLimit {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let principal = call.context.principal();
        let Some(permit) = self.acquire(&principal, self.max) else {
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
            limit: self.clone(),
            principal,
            permit: Some(permit),
        })
    }
}

/// A call that counts while it runs.
struct LimitedCall {
    future: BoxFuture<'static, Result<HandlerOutcome, Refusal>>,
    context: Context,
    limit: ConcurrencyLimit,
    principal: Principal,
    permit: Option<ConcurrencyPermit>,
}

impl Future for LimitedCall {
    type Output = Result<HandlerOutcome, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.permit.is_none() && !this.context.is_waiting() {
            // It was admitted when it began; a caller that has responded is not refused for the response.
            this.permit = this.limit.acquire(&this.principal, usize::MAX);
        }
        let answer = this.future.as_mut().poll(cx);
        if answer.is_pending() && this.context.is_waiting() {
            this.permit = None;
        }
        answer
    }
}

/// One call that counts.
#[derive(Debug)]
struct ConcurrencyPermit {
    limit: ConcurrencyLimit,
    principal: Principal,
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut running = self.limit.lock();
        match running.get_mut(&self.principal) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                running.remove(&self.principal);
            }
        }
    }
}
