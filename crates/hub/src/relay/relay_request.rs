use trunkline_protocol::{ByteString, JsonObject, Method, RawJson, Refusal};
use trunkline_server::{HandlerOutcome, IncomingCall};

use crate::events::ObservedCall;
use crate::figures::RelayTimer;
use crate::upstream::Upstream;

/// The parameter of `tools/call` that requests a task.
const TASK_KEY: &str = "task";

/// A request to relay to a server, with the call that it is for.
#[derive(Debug)]
pub(crate) struct RelayRequest {
    pub(crate) method: Method,
    pub(crate) rewrite: ParamRewrite,
    pub(crate) call: IncomingCall,
}

/// How the caller's parameters are rewritten for the server.
#[derive(Debug)]
pub(crate) enum ParamRewrite {
    /// Not rewritten.
    Unchanged,
    /// The same, with the server's own item name, as JSON.
    Renamed(RawJson),
    /// Replaced as a whole.
    Replaced(JsonObject),
}

/// What is recorded of a call while it is relayed. Dropped without an answer, it was cancelled.
#[derive(Debug)]
pub(super) struct RelayRecord {
    observed: Option<Box<ObservedCall>>,
    timer: RelayTimer,
}

impl RelayRecord {
    /// Records the answer, and returns it.
    pub(super) fn finish(self, answer: Result<HandlerOutcome, Refusal>) -> Result<HandlerOutcome, Refusal> {
        self.timer.finish(&answer);
        ObservedCall::finish(self.observed, answer)
    }
}

impl RelayRequest {
    /// Begins to time the call, and publishes its begin if there is a subscription.
    pub(super) fn begin_record(&self, server: &Upstream) -> RelayRecord {
        let observed = ObservedCall::begin(server.events(), &self.call, server.name(), || self.item_name());
        RelayRecord { observed, timer: RelayTimer::start(server.figures()) }
    }

    /// Returns the name or URI of the item at the server.
    fn item_name(&self) -> Option<String> {
        let key = self.method.name_header_param()?;
        let name = match &self.rewrite {
            ParamRewrite::Unchanged => self.call.params().get(key)?.as_text()?,
            ParamRewrite::Renamed(name) => name.as_text()?,
            ParamRewrite::Replaced(params) => params.get(key)?.as_text()?,
        };
        Some(name.into_owned())
    }

    /// Returns the parameters for the server. They are built only when they are sent, so that there is one copy of
    /// them.
    pub(super) fn params(&self) -> JsonObject {
        let original = &self.call.params().members;
        let mut params = match &self.rewrite {
            ParamRewrite::Unchanged => original.clone(),
            ParamRewrite::Renamed(name) => {
                let mut params = original.clone();
                params.set(ByteString::from_static("name"), name.clone());
                params
            }
            ParamRewrite::Replaced(params) => params.clone(),
        };
        // Tasks of 2025-11-25 are not relayed: the result would be one that the caller has no way to follow here.
        if self.method == Method::ToolsCall {
            params.take(TASK_KEY);
        }
        params
    }
}
