use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use trunkline_protocol::Refusal;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Implementation, ServerCapabilities};

use super::{Interceptor, Next, NextTarget};
use crate::call::{BoxFuture, Handler, HandlerOutcome, IncomingCall};
use crate::caller_identity::CallerIdentity;
use crate::change::{ChangePublisher, ChangeSubscriber, ChangeSubscription, SubscriptionFilter};

/// Interceptors in their order: the first is the outermost, sees a call first and its result last.
#[derive(Clone, Default)]
pub struct Layers {
    layers: Vec<Arc<dyn Interceptor>>,
}

impl Layers {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an interceptor inside of the existing ones.
    #[must_use]
    pub fn with(mut self, interceptor: impl Interceptor) -> Self {
        self.push(interceptor);
        self
    }

    pub(crate) fn push(&mut self, interceptor: impl Interceptor) {
        self.layers.push(Arc::new(interceptor));
    }

    /// Reports whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    pub(super) fn get(&self, at: usize) -> Option<&dyn Interceptor> {
        self.layers.get(at).map(|layer| &**layer)
    }

    /// Wraps a handler in the interceptors; without any, returns the handler itself.
    pub(crate) fn wrap(self, handler: impl Handler) -> Arc<dyn Handler> {
        if self.is_empty() {
            return Arc::new(handler);
        }
        Arc::new(InterceptedHandler(Arc::new(LayeredHandler { layers: self, handler: Box::new(handler) })))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({})", self.layers.len())
    }
}

pub(super) struct LayeredHandler {
    pub(super) layers: Layers,
    pub(super) handler: Box<dyn Handler>,
}

/// A handler with interceptors around its calls.
struct InterceptedHandler(Arc<LayeredHandler>);

impl Handler for InterceptedHandler {
    fn identity(&self) -> Implementation {
        self.0.handler.identity()
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.0.handler.capabilities()
    }

    fn instructions(&self, caller: CallerIdentity<'_>) -> Option<String> {
        self.0.handler.instructions(caller)
    }

    fn mirrored_arguments(&self, tool: &str, caller: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        self.0.handler.mirrored_arguments(tool, caller)
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.0.handler.has_tool(tool)
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        Next { target: NextTarget::Handler(self.0.clone()), index: 0 }.run(call)
    }

    fn prepare_subscription(
        &self,
        listener: &ChangeSubscriber,
        uris: BTreeSet<String>,
    ) -> BoxFuture<'static, Result<BTreeSet<String>, Refusal>> {
        self.0.handler.prepare_subscription(listener, uris)
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.0.handler.subscribe(filter)
    }

    fn changes(&self) -> Option<ChangePublisher> {
        self.0.handler.changes()
    }
}
