//! The log of who ran what, and of who tried to run what is hidden.
//!
//! Its events have the target `audit`. Values of arguments are never among what they tell.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_server::protocol::codec::Reply;
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::protocol::{Method, Refusal, shorten};
use trunkline_server::{BoxFuture, Call, Context, Interceptor, Next, Outcome};

use crate::policy::Policy;
use crate::run::Ending;

/// Tells that a command was run, how it ended and how long it took.
pub(crate) fn ran(command: &str, context: &Context, ending: &Ending, took: Duration) {
    let (principal, millis) = (context.principal(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    tracing::info!(target: "audit", command, %principal, ending = %ending, millis, "ran");
}

/// Tells that a command could not be run.
pub(crate) fn failed(command: &str, context: &Context, error: &dyn fmt::Display) {
    let principal = context.principal();
    tracing::warn!(target: "audit", command, %principal, %error, "could not be run");
}

/// How the call of a tool that is not there is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UnknownTool {
    /// By the error that the protocol has for it.
    #[default]
    Refused,
    /// By a result that is marked as an error, as golem's server does.
    Said,
}

/// Tells of calls of what is hidden, and answers them like calls of what is not there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doorkeeper {
    pub(crate) policy: Arc<Policy>,
    /// The words of hidden commands by every name that a caller could know them by.
    pub(crate) hidden: Arc<BTreeMap<String, Vec<String>>>,
    pub(crate) unknown: UnknownTool,
}

impl Doorkeeper {
    /// Returns the words of a command that a caller means.
    fn words(&self, name: &str) -> Vec<String> {
        let known = self.hidden.get(name).cloned();
        known.unwrap_or_else(|| name.split_whitespace().map(str::to_owned).collect())
    }

    fn tell(&self, name: &str, context: &Context) {
        let decision = self.policy.decide(&self.words(name));
        if !decision.is_allowed() {
            let principal = context.principal();
            tracing::warn!(target: "audit", command = %shorten(name), %principal, %decision, "refused");
        }
    }
}

impl Interceptor for Doorkeeper {
    fn around(&self, call: Call, next: Next) -> BoxFuture<'static, Result<Outcome, Refusal>> {
        if call.method == Method::ToolsCall
            && let Some(name) = call.name()
            && !next.has_tool(&name)
        {
            self.tell(&name, &call.context);
            if self.unknown == UnknownTool::Said {
                let said = CallToolResult::error(format!("Error: Tool '{}' not found", shorten(&name)));
                return Box::pin(std::future::ready(Ok(Outcome::Done(Reply::Tool(said)))));
            }
        }
        next.run(call)
    }
}
