use std::collections::BTreeSet;
use std::pin::Pin;

use bytes::Bytes;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{Implementation, InputRequest, ServerCapabilities};
use trunkline_protocol::{Method, Params, RawJson, Refusal};

use super::context::Context;
use crate::caller_identity::CallerIdentity;
use crate::change::{ChangePublisher, ChangeSubscriber, ChangeSubscription, SubscriptionFilter};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One request to a handler: the same for every era and transport.
#[derive(Debug)]
pub struct IncomingCall {
    /// The method.
    pub method: Method,
    /// The bytes of the portable continuation that this call was suspended with, if it was.
    pub continuation: Option<Bytes>,
    /// The caller, and the means to reach it.
    pub context: Context,
}

/// How a call ends, or pauses.
///
/// A step of a client's call has the same outcomes in a type of its own, `StepOutcome`: its result is the JSON of a
/// server, and its round holds a connection, while these are values that an edge writes in the revision of the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerOutcome {
    /// The call has its result.
    Done(ServerResult),
    /// The call needs input before it can continue.
    InputRequired(InputRound),
}

/// Input requests that are sent together, and how the call continues after the responses.
#[derive(Debug)]
pub struct InputRound {
    /// The input requests, each under its key; without any, the handler is simply called again later.
    pub requests: Vec<(String, InputRequest)>,
    /// How the call continues.
    pub continuation: HandlerContinuation,
}

/// How a suspended call continues.
///
/// A handler that calls [`Context::ask`] suspends its own future and needs none of this.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerContinuation {
    /// The handler is called again, on any replica, with the responses and these bytes.
    Portable(Bytes),
}

/// Answers calls: a [`Server`](crate::Server) made of parts, or a program's own implementation.
pub trait Handler: Send + Sync + 'static {
    /// Returns the server's description of itself.
    fn identity(&self) -> Implementation;

    /// Returns the current capabilities.
    fn capabilities(&self) -> ServerCapabilities;

    /// Returns the instructions for the model of a caller, if there are any.
    fn instructions(&self, caller: CallerIdentity<'_>) -> Option<String>;

    /// Returns the schema of a tool's arguments, so that headers which mirror arguments can be checked; `None` for a
    /// tool that the caller may not see.
    fn mirrored_arguments(
        &self,
        tool: &str,
        caller: CallerIdentity<'_>,
    ) -> Option<std::sync::Arc<trunkline_protocol::mirror::MirroredParams>>;

    /// Reports whether there is a tool of this name, for metrics, where callers could otherwise choose labels.
    ///
    /// Without an implementation, all tools of the handler share one series.
    fn has_tool(&self, _tool: &str) -> bool {
        false
    }

    /// Answers one call.
    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>>;

    /// Prepares change notifications for resources, and returns the resources that the subscriber will be notified
    /// of: all of them, unless the handler has to subscribe at an upstream first.
    ///
    /// # Errors
    /// The subscription as a whole is refused, such as for a scope that the subscriber's token lacks.
    fn prepare_subscription(
        &self,
        _listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BoxFuture<'static, Result<BTreeSet<String>, Refusal>> {
        Box::pin(std::future::ready(Ok(uris)))
    }

    /// Begins a subscription to changes.
    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription;

    /// Returns the publisher of its changes, so that they also reach the clients of other processes that share sessions.
    /// Default none: changes reach the clients of this process.
    fn changes(&self) -> Option<ChangePublisher> {
        None
    }
}

impl IncomingCall {
    /// Returns the parameters, with the members of the protocol (`_meta`, input responses, state) still in them.
    pub fn params(&self) -> &Params {
        self.context.shared().params()
    }

    /// Returns the target of the call: the tool, the prompt or the URI of the resource, as the caller wrote it.
    pub fn name(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.params().get(self.method.name_header_param()?)?.as_text()
    }

    /// Returns the responses that came with the request, by key, as far as no input request has consumed them.
    ///
    /// A handler that returns [`HandlerOutcome::InputRequired`] finds its responses here when it is called again.
    pub fn input_responses(&self) -> Vec<(String, RawJson)> {
        self.context.shared().unused_responses()
    }

    /// Returns the arguments of a tool or prompt; absent ones are an empty object.
    pub fn arguments(&self) -> RawJson {
        self.context.shared().arguments().clone()
    }
}
