//! Interceptors: middleware around every call, ours and a program's own.
//!
//! An interceptor gets a call and the next handler. It may inspect the call, refuse it, wait, pass it on, and inspect
//! or replace the result. Protocol messages (the handshake, pings, subscriptions, and requests that are refused
//! before they become a call) are not intercepted.
//!
//! # Invariants
//!
//! - The interceptor added first is the outermost: `first_added_interceptor_is_outermost`.
//! - Interceptors wrap every call, those of the host outside: `host_layers_wrap_server_layers_and_every_handler`.

mod concurrency_limit;
mod layers;
mod timeout;
mod trace;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use trunkline_protocol::Refusal;

pub use self::concurrency_limit::ConcurrencyLimit;
use self::layers::LayeredHandler;
pub use self::layers::Layers;
pub use self::timeout::Timeout;
pub use self::trace::Trace;
use crate::call::{BoxFuture, Handler as _, HandlerOutcome, IncomingCall};
use crate::dispatch;
use crate::server::ServerHandle;

/// Middleware around calls.
///
/// An async function of an [`IncomingCall`] and a [`Next`] is one:
///
/// ```
/// # use trunkline_server::{IncomingCall, Next, Server};
/// let server = Server::new("demo").layer(|call: IncomingCall, next: Next| async move {
///     let method = call.method;
///     let answer = next.run(call).await;
///     tracing::info!(method = method.as_str(), refused = answer.is_err(), "answered");
///     answer
/// });
/// ```
///
/// The future, and all that it holds, is dropped when the caller cancels. It is still polled while the call waits for
/// input; [`Context::is_waiting`](crate::Context::is_waiting) reports that.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an interceptor",
    note = "an async function of `IncomingCall` and `Next` that returns `Result<HandlerOutcome, Refusal>` is one"
)]
pub trait Interceptor: Send + Sync + 'static {
    /// Handles a call, usually with the result of the next handler.
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>>;
}

impl<F, Fut> Interceptor for F
where
    F: Fn(IncomingCall, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<HandlerOutcome, Refusal>> + Send + 'static,
{
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        Box::pin(self(call, next))
    }
}

/// The rest of the chain after an interceptor: the next one, and in the end the handler.
#[must_use = "the call is not answered unless it is passed on"]
pub struct Next {
    target: NextTarget,
    index: usize,
}

/// The owner of the layers, and the handler behind them.
#[derive(Clone)]
enum NextTarget {
    Server(ServerHandle),
    Handler(Arc<LayeredHandler>),
}

impl Next {
    pub(crate) fn for_server(server: ServerHandle) -> Self {
        Self { target: NextTarget::Server(server), index: 0 }
    }

    /// Reports whether the handler knows a tool of this name.
    pub fn has_tool(&self, name: &str) -> bool {
        match &self.target {
            NextTarget::Server(server) => server.has_tool(name),
            NextTarget::Handler(layered) => layered.handler.has_tool(name),
        }
    }

    /// Passes the call on.
    pub fn run(self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let layers = match &self.target {
            NextTarget::Server(server) => server.layers(),
            NextTarget::Handler(layered) => &layered.layers,
        };
        match (layers.get(self.index), &self.target) {
            (Some(layer), way) => layer.intercept(call, Self { target: way.clone(), index: self.index + 1 }),
            (None, NextTarget::Server(server)) => dispatch::answer(server, call),
            (None, NextTarget::Handler(layered)) => layered.handler.call(call),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("at", &self.index).finish_non_exhaustive()
    }
}
