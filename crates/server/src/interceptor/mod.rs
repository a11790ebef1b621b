//! Interceptors: what stands around every call, ours and a program's own.
//!
//! An interceptor is given a call and the way on. It may look at the call, refuse it, wait, pass it on, and look at or
//! replace what comes back. What belongs to the protocol itself (the handshake, pings, subscriptions, and whatever is
//! refused before it is a call) does not come this way.

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
use self::layers::Layered;
pub use self::layers::Layers;
pub use self::timeout::Timeout;
pub use self::trace::Trace;
use crate::call::{BoxFuture, Call, Handler as _, Outcome};
use crate::dispatch;
use crate::server::ServerHandle;

/// What stands around calls.
///
/// An async function of a [`Call`] and a [`Next`] is one:
///
/// ```
/// # use trunkline_server::{Call, Next, Server};
/// let server = Server::new("demo").layer(|call: Call, next: Next| async move {
///     let method = call.method;
///     let answer = next.run(call).await;
///     tracing::info!(method = method.as_str(), refused = answer.is_err(), "answered");
///     answer
/// });
/// ```
///
/// The future is dropped when the caller cancels, and what it holds with it. It goes on being polled while the call waits
/// for its caller; [`Context::is_waiting`](crate::Context::is_waiting) tells.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an interceptor",
    note = "an async function of `Call` and `Next` that returns `Result<Outcome, Refusal>` is one"
)]
pub trait Interceptor: Send + Sync + 'static {
    /// Answers a call, usually with what the way on answers.
    fn around(&self, call: Call, next: Next) -> BoxFuture<'static, Result<Outcome, Refusal>>;
}

impl<F, Fut> Interceptor for F
where
    F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, Refusal>> + Send + 'static,
{
    fn around(&self, call: Call, next: Next) -> BoxFuture<'static, Result<Outcome, Refusal>> {
        Box::pin(self(call, next))
    }
}

/// The way on from an interceptor: the next one, and in the end the handler.
#[must_use = "the call is not answered unless it is passed on"]
pub struct Next {
    way: Way,
    at: usize,
}

/// Whose layers, and what stands behind them.
#[derive(Clone)]
enum Way {
    Server(ServerHandle),
    Handler(Arc<Layered>),
}

impl Next {
    pub(crate) fn into_server(server: ServerHandle) -> Self {
        Self { way: Way::Server(server), at: 0 }
    }

    /// Reports whether there is a tool of this name, as far as the handler says.
    pub fn has_tool(&self, name: &str) -> bool {
        match &self.way {
            Way::Server(server) => server.has_tool(name),
            Way::Handler(layered) => layered.handler.has_tool(name),
        }
    }

    /// Passes the call on.
    pub fn run(self, call: Call) -> BoxFuture<'static, Result<Outcome, Refusal>> {
        let layers = match &self.way {
            Way::Server(server) => server.layers(),
            Way::Handler(layered) => &layered.layers,
        };
        match (layers.get(self.at), &self.way) {
            (Some(layer), way) => layer.around(call, Self { way: way.clone(), at: self.at + 1 }),
            (None, Way::Server(server)) => dispatch::answer(server, call),
            (None, Way::Handler(layered)) => layered.handler.call(call),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("at", &self.at).finish_non_exhaustive()
    }
}
