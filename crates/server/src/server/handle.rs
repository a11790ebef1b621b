use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use serde::Serialize;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{
    CacheHint, CallToolResult, Implementation, ListCapability, ResourcesCapability, ServerCapabilities,
};
use trunkline_protocol::{JsonObject, Method, Params, RawJson, Refusal, Revision};
use trunkline_session::Principal;

use super::ServerSettings;
use crate::call::{BoxFuture, CallScope, CallState, Caller, Context, Handler, HandlerOutcome, IncomingCall};
use crate::caller_identity::CallerIdentity;
use crate::change::{ChangePublisher, ChangeSubscription, ServerChange, SubscriptionFilter};
use crate::dispatch;
use crate::env::Env;
use crate::error::BuildError;
use crate::interceptor::{Layers, Next};
use crate::part::{Part, Parts};
use crate::provider::{ChangeNotifier, PartSource};
use crate::registry::{PartRegistry, ProviderParts, RejectedParts};
use crate::state::StateStores;

/// A server that is built; clones are the same server.
///
/// Its parts may be added and removed while it runs, and subscribers are notified. A running call keeps the parts
/// that it started with.
#[derive(Clone)]
pub struct ServerHandle {
    inner: Arc<ServerInner>,
}

pub(crate) struct ServerInner {
    settings: ServerSettings,
    registry: ArcSwap<PartRegistry>,
    /// Held while the next snapshot is made, so that no change is lost; never while a handler runs.
    update_lock: Mutex<()>,
    publisher: ChangePublisher,
    sources: Vec<Arc<dyn PartSource>>,
    /// Counts the lists requested from sources, so that an older list never replaces a newer one.
    list_generation: AtomicU64,
    /// The state between calls without a transport; a host has its own.
    states: Arc<StateStores>,
}

impl ServerHandle {
    /// Makes the server, and copies the lists of its providers.
    ///
    /// An invalid part of a provider is left out with a warning, as it is when its list changes: it may come from a
    /// peer, and must not block the others.
    ///
    /// # Errors
    /// Names that are already in use.
    pub(super) fn new(
        settings: ServerSettings,
        registry: PartRegistry,
        sources: Vec<Arc<dyn PartSource>>,
    ) -> Result<Self, Vec<String>> {
        let inner = ServerInner {
            settings,
            registry: ArcSwap::from_pointee(registry),
            update_lock: Mutex::new(()),
            publisher: ChangePublisher::default(),
            sources,
            list_generation: AtomicU64::new(0),
            states: Arc::default(),
        };
        let server = Self { inner: Arc::new(inner) };
        let mut problems = Vec::new();
        for (at, source) in server.inner.sources.iter().enumerate() {
            // The notifier is set before the source is listed, so that no change is missed in between.
            source.set_notifier(ChangeNotifier::new(Arc::downgrade(&server.inner), at));
            let left_out = server.refresh(at);
            left_out.unusable.iter().for_each(|problem| tracing::warn!("left out: {problem}"));
            problems.extend(left_out.collisions);
        }
        if problems.is_empty() { Ok(server) } else { Err(problems) }
    }

    pub(crate) fn upgrade(inner: &Weak<ServerInner>) -> Option<Self> {
        inner.upgrade().map(|inner| Self { inner })
    }

    /// Copies the list of a source again, notifies subscribers, and returns what had to be left out and why.
    pub(crate) fn refresh(&self, at: usize) -> RejectedParts {
        let Some(source) = self.inner.sources.get(at) else { return RejectedParts::default() };
        let turn = self.inner.list_generation.fetch_add(1, Ordering::SeqCst);
        // The provider's own code runs before the lock is taken.
        let provided =
            ProviderParts { source: source.name(), generation: turn, parts: source.clone().parts() };
        let change = source.change();
        let left_out = {
            let _changing = self.inner.update_lock.lock();
            let Some((next, left_out)) = self.registry().with_provider_parts(at, provided) else {
                return RejectedParts::default();
            };
            self.inner.registry.store(Arc::new(next));
            left_out
        };
        self.inner.publisher.publish(&change);
        left_out
    }

    pub(crate) fn registry(&self) -> Guard<Arc<PartRegistry>> {
        self.inner.registry.load()
    }

    pub(crate) fn page_size(&self) -> usize {
        self.inner.settings.page_size
    }

    pub(crate) fn list_cache(&self) -> CacheHint {
        self.inner.settings.list_cache
    }

    pub(crate) fn layers(&self) -> &Layers {
        &self.inner.settings.layers
    }

    /// Adds a part, or several at once: all of them or none.
    ///
    /// # Errors
    /// [`BuildError`] with every problem, such as names that are already in use.
    pub fn add(&self, part: impl Part) -> Result<(), BuildError> {
        let parts = Parts::of(part);
        let mut changes = Vec::new();
        changes.extend((!parts.tools.is_empty()).then_some(ServerChange::Tools));
        changes.extend((!parts.prompts.is_empty()).then_some(ServerChange::Prompts));
        let resources = !parts.resources.is_empty() || !parts.templates.is_empty();
        changes.extend(resources.then_some(ServerChange::Resources));
        {
            let _changing = self.inner.update_lock.lock();
            let next = self.registry().with(parts).map_err(BuildError::new)?;
            self.inner.registry.store(Arc::new(next));
        }
        for change in &changes {
            self.inner.publisher.publish(change);
        }
        Ok(())
    }

    /// Removes a tool; returns false if there is none of this name.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.remove(&ServerChange::Tools, |registry| registry.remove_tool(name))
    }

    /// Removes a prompt; returns false if there is none of this name.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.remove(&ServerChange::Prompts, |registry| registry.prompts.remove(name).is_some())
    }

    /// Removes a resource; returns false if there is none of this URI.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.remove(&ServerChange::Resources, |registry| registry.resources.remove(uri).is_some())
    }

    /// Removes a resource template, named as it was written; returns false if there is none.
    pub fn remove_template(&self, uri_template: &str) -> bool {
        self.remove(&ServerChange::Resources, |registry| registry.remove_template(uri_template))
    }

    fn remove(&self, change: &ServerChange, remove: impl FnOnce(&mut PartRegistry) -> bool) -> bool {
        {
            let _changing = self.inner.update_lock.lock();
            let mut next = PartRegistry::clone(&self.registry());
            if !remove(&mut next) {
                return false;
            }
            self.inner.registry.store(Arc::new(next));
        }
        self.inner.publisher.publish(change);
        true
    }

    /// Notifies the subscribers of a resource, or of one that contains it, that its content has changed.
    pub fn notify_updated(&self, uri: impl Into<String>) {
        self.inner.publisher.publish(&ServerChange::ResourceUpdated(uri.into().into()));
    }

    /// Calls a tool without any transport, as this process and in the newest revision.
    ///
    /// # Errors
    /// The refusal, if the call is refused; an error of the tool itself is a result.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<CallToolResult, Refusal> {
        let arguments = RawJson::from_value(&arguments).map_err(|error| {
            Refusal::INVALID_PARAMS.with_message(format!("the arguments have no JSON form: {error}"))
        })?;
        let mut members = JsonObject::new();
        members.set("name", RawJson::from_text(tool));
        members.set("arguments", arguments);
        match Handler::call(self, local_call(Method::ToolsCall, members, self.inner.states.clone())).await? {
            HandlerOutcome::Done(ServerResult::Tool(result)) => Ok(result),
            _ => Err(Refusal::INTERNAL.with_message("the tool has no result")),
        }
    }
}

fn declared(named: &JsonObject) -> Option<RawJson> {
    (!named.is_empty()).then(|| named.to_raw())
}

/// Makes a call from this process, as a client without any capabilities.
fn local_call(method: Method, members: JsonObject, states: Arc<StateStores>) -> IncomingCall {
    let caller = Caller {
        principal: Principal::Process,
        revision: Revision::NEWEST,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        request_id: None,
        session: None,
        connection: None,
        remote_address: None,
        transport: "channel",
        state_id: None,
        log_level: None,
        progress_token: None,
        env: Env::NONE,
        grant: None,
    };
    IncomingCall {
        method,
        continuation: None,
        context: Context::new(CallState::new(
            method,
            Params { members, meta: None },
            caller,
            Vec::new(),
            CallScope::Sessionless(states),
        )),
    }
}

impl Handler for ServerHandle {
    fn identity(&self) -> Implementation {
        self.inner.settings.identity.clone()
    }

    fn capabilities(&self) -> ServerCapabilities {
        let offers = self.registry().features;
        let list = ListCapability { list_changed: true };
        ServerCapabilities {
            tools: offers.tools.then_some(list),
            prompts: offers.prompts.then_some(list),
            resources: offers
                .resources
                .then_some(ResourcesCapability { subscribe: true, list_changed: true }),
            completions: offers.completions,
            logging: true,
            experimental: declared(&self.inner.settings.experimental),
            extensions: declared(&self.inner.settings.extensions),
            ..ServerCapabilities::default()
        }
    }

    fn instructions(&self, _: CallerIdentity<'_>) -> Option<String> {
        self.inner.settings.instructions.clone()
    }

    fn mirrored_arguments(&self, tool: &str, _: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        self.registry().tool(tool)?.mirrored()
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.registry().tool(tool).is_some()
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let call = IncomingCall { context: call.context.with_server(self.clone()), ..call };
        if self.layers().is_empty() {
            return dispatch::answer(self, call);
        }
        Next::for_server(self.clone()).run(call)
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.inner.publisher.subscribe(filter)
    }

    fn changes(&self) -> Option<ChangePublisher> {
        Some(self.inner.publisher.clone())
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle")
            .field("identity", &self.inner.settings.identity)
            .finish_non_exhaustive()
    }
}
