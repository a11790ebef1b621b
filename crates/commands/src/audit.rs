//! The audit log: which principal ran which command, and calls of hidden tools.
//!
//! Its events have the target `audit`, and never contain argument values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_server::protocol::codec::ServerResult;
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::protocol::{Method, Refusal, shorten};
use trunkline_server::{BoxFuture, Context, HandlerOutcome, IncomingCall, Interceptor, Next};

use crate::policy::Policy;
use crate::run::CommandEnding;

/// Logs that a command was run, its exit and its duration.
pub(crate) fn log_run(command: &str, context: &Context, ending: &CommandEnding, took: Duration) {
    let (principal, millis) = (context.principal(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    tracing::info!(target: "audit", command, %principal, ending = %ending, millis, "ran");
}

/// Logs that a command could not be run.
pub(crate) fn log_failure(command: &str, context: &Context, error: &dyn fmt::Display) {
    let principal = context.principal();
    tracing::warn!(target: "audit", command, %principal, %error, "failed to start");
}

/// How calls of unknown tools are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnknownToolReply {
    /// With the protocol's error.
    #[default]
    ProtocolError,
    /// With a result that is marked as an error, like golem's server.
    ErrorResult,
}

/// Logs calls of hidden tools, and answers them like calls of unknown tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenToolInterceptor {
    pub(crate) policy: Arc<Policy>,
    /// The words of hidden commands, by every name that a caller could use.
    pub(crate) hidden: Arc<BTreeMap<String, Vec<String>>>,
    pub(crate) unknown: UnknownToolReply,
}

impl HiddenToolInterceptor {
    /// Returns the words of the command that a caller named.
    fn command_words(&self, name: &str) -> Vec<String> {
        let known = self.hidden.get(name).cloned();
        known.unwrap_or_else(|| name.split_whitespace().map(str::to_owned).collect())
    }

    fn log_denied_call(&self, name: &str, context: &Context) {
        let decision = self.policy.decide(&self.command_words(name));
        if !decision.is_allowed() {
            let principal = context.principal();
            tracing::warn!(target: "audit", command = %shorten(name), %principal, %decision, "refused");
        }
    }
}

impl Interceptor for HiddenToolInterceptor {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        if call.method == Method::ToolsCall
            && let Some(name) = call.name()
            && !next.has_tool(&name)
        {
            self.log_denied_call(&name, &call.context);
            if self.unknown == UnknownToolReply::ErrorResult {
                let result = CallToolResult::error(format!("Error: Tool '{}' not found", shorten(&name)));
                return Box::pin(std::future::ready(Ok(HandlerOutcome::Done(ServerResult::Tool(result)))));
            }
        }
        next.run(call)
    }
}
