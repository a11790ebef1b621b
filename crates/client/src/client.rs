use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_protocol::model::{
    CallToolResult, ClientCapabilities, CompleteResult, GetPromptResult, Implementation, Prompt,
    ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use trunkline_protocol::{Era, LoggingLevel, Method, Notification, RawJson, Revision};
use trunkline_transport::Target;

use crate::builder::ClientBuilder;
use crate::cache::ResponseCache;
use crate::call::{CallBuilder, ClientCall, CompletionRequest, LogMessage, LogSinks, StepOutcome};
use crate::capability_lists::CapabilityLists;
use crate::client_transport::{ClientTransport, OpenRequests};
use crate::connect::{ConnectAttempt, ConnectPlan, EstablishedConnection, SupportedEras};
use crate::dropped_message::{DropCallback, DroppedMessage};
use crate::edge::ProtocolEdge;
use crate::error::Error;
use crate::input::InputHandler;
use crate::known_tools::KnownTools;
use crate::list::ItemList;
use crate::resumable_session::ResumableSession;
use crate::session_listener::{self, DetachedAnswers};
use crate::subscribe::{ChangeBroadcaster, ChangeEvent, ChangeFilter, ChangeStream};
use crate::user_timeout::timeout_unless_waiting;

/// A connection to one server, over any transport and in any revision.
///
/// Clones share the connection; it closes with the last of them, or by [`Client::close`].
///
/// ```no_run
/// # async fn example() -> Result<(), trunkline_client::Error> {
/// use trunkline_client::Client;
///
/// let client = Client::connect("npx -y @modelcontextprotocol/server-everything").await?;
/// println!("{}", client.call("echo", serde_json::json!({ "message": "hi" })).await?.text());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner>,
}

/// The description of a connected server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The negotiated protocol revision.
    pub revision: Revision,
    /// Its name and version.
    pub identity: Option<Implementation>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The eras that it supports, as far as that is known.
    pub eras: SupportedEras,
    /// The transport: `stdio`, `channel`, `streamable-http`, `sse` or `websocket`, or `none` for [`Client::stub`].
    pub transport: &'static str,
    /// The connection attempts, in order.
    pub attempts: Vec<ConnectAttempt>,
}

impl ServerInfo {
    /// Reports whether the server keeps a session, so that what it receives in one request applies to later ones.
    pub fn is_stateful(&self) -> bool {
        self.revision.era() == Era::Legacy
    }

    /// Reports whether the transport attributes every input request to the call that caused it.
    pub fn attributes_requests(&self) -> bool {
        !self.is_stateful() || self.transport == "streamable-http"
    }
}

/// The state that all clones of a client share.
pub(crate) struct ClientInner {
    pub(crate) transport: Arc<dyn ClientTransport>,
    pub(crate) session: ArcSwap<CurrentSession>,
    pub(crate) plan: ConnectPlan,
    pub(crate) input: Arc<dyn InputHandler>,
    pub(crate) tools: KnownTools,
    pub(crate) cache: ResponseCache,
    pub(crate) changes: ChangeBroadcaster,
    pub(crate) detached_answers: DetachedAnswers,
    /// The input requests outside of calls that are not answered yet.
    open_requests: Arc<OpenRequests>,
    logs: LogSinks,
    /// The log level that requests carry: its index among the levels plus one, or zero for none.
    level: AtomicU8,
    /// Held while a session is opened again, so that concurrent failed requests open only one.
    pub(crate) reopen_lock: tokio::sync::Mutex<()>,
    listener_task: Mutex<Option<AbortHandle>>,
    /// Notified when the connection is closed for good.
    pub(crate) closed: Notify,
}

/// The current session: the protocol edge and the server's description.
#[derive(Debug)]
pub(crate) struct CurrentSession {
    pub(crate) edge: ProtocolEdge,
    pub(crate) info: Arc<ServerInfo>,
}

impl Client {
    /// Connects to a server: an `http`, `https`, `ws` or `wss` address, a command line, a name in an `mcp.json` or
    /// `trunkline.toml` (with the feature `config`), or a server in this process.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect(target: impl Into<Target>) -> Result<Self, Error> {
        Self::builder().connect(target).await
    }

    /// Returns a builder with default options.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    pub(crate) async fn new(
        connected: EstablishedConnection,
        attempts: Vec<ConnectAttempt>,
        plan: ConnectPlan,
        input: Arc<dyn InputHandler>,
        logs: LogSinks,
        level: Option<LoggingLevel>,
    ) -> Result<Self, Error> {
        let EstablishedConnection { transport, edge, description, unsolicited, transport_name } = connected;
        let info = Arc::new(ServerInfo {
            eras: plan.supported_eras(&description),
            revision: description.revision,
            identity: description.identity,
            capabilities: description.capabilities,
            instructions: description.instructions,
            transport: transport_name,
            attempts,
        });
        let session = CurrentSession { edge, info };
        let inner = ClientInner::new(transport, session, plan, input, logs, unsolicited.open_requests());
        let listener = tokio::spawn(session_listener::listen(&inner, unsolicited)).abort_handle();
        *inner.listener_task.lock() = Some(listener);
        if let Some(observer) = &inner.plan.observer {
            observer.connected(&inner.session.load().info);
        }
        let client = Self { inner };
        if let Some(level) = level {
            client.inner.request_log_level(level).await?;
        }
        Ok(client)
    }

    /// Returns the description of the server.
    pub fn server(&self) -> Arc<ServerInfo> {
        self.inner.session.load().info.clone()
    }

    /// Returns the negotiated protocol revision.
    pub fn revision(&self) -> Revision {
        self.inner.session.load().info.revision
    }

    /// Returns the session, so that another client can continue it with
    /// [`ClientBuilder::resume`](crate::ClientBuilder::resume). Only servers over Streamable HTTP have such sessions, up to
    /// revision 2025-11-25.
    pub fn resumable_session(&self) -> Option<ResumableSession> {
        let session = self.inner.session.load();
        let id = self.inner.transport.session_id().filter(|_| session.info.is_stateful())?;
        Some(ResumableSession::new(id, &session.info))
    }

    /// Leaves the session open at the server when the connection closes, so that another client can continue it.
    /// Without this, closing the connection deletes the session.
    pub fn keep_session(&self) {
        self.inner.transport.keep_session();
    }

    /// Lists the tools, all pages of them.
    ///
    /// # Errors
    /// [`Error`]: the connection is closed, the server refuses, or the list exceeds a limit.
    pub async fn tools(&self) -> Result<Arc<ItemList<Tool>>, Error> {
        self.inner.list().await
    }

    /// Lists the prompts, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn prompts(&self) -> Result<Arc<ItemList<Prompt>>, Error> {
        self.inner.list().await
    }

    /// Lists the resources, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn resources(&self) -> Result<Arc<ItemList<Resource>>, Error> {
        self.inner.list().await
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn templates(&self) -> Result<Arc<ItemList<ResourceTemplate>>, Error> {
        self.inner.list().await
    }

    /// Returns the server's lists for clients with other capabilities than this one's. A legacy session has
    /// declared its capabilities for good, so its lists do not change.
    pub fn lists_for(&self, capabilities: ClientCapabilities) -> CapabilityLists {
        CapabilityLists::new(self.inner.clone(), capabilities)
    }

    /// Calls a tool with arguments, a JSON object.
    pub fn call(
        &self,
        tool: impl Into<String>,
        arguments: impl Into<RawJson>,
    ) -> CallBuilder<CallToolResult> {
        CallBuilder::new(self.clone(), ClientCall::tool(tool, arguments))
    }

    /// Reads a resource.
    pub fn read(&self, uri: impl Into<String>) -> CallBuilder<ReadResourceResult> {
        CallBuilder::new(self.clone(), ClientCall::read(uri))
    }

    /// Fetches a prompt with arguments, a JSON object of strings.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Into<RawJson>,
    ) -> CallBuilder<GetPromptResult> {
        CallBuilder::new(self.clone(), ClientCall::prompt(name, arguments))
    }

    /// Requests completions of an argument.
    pub fn complete(&self, completion: CompletionRequest) -> CallBuilder<CompleteResult> {
        CallBuilder::new(self.clone(), ClientCall::complete(completion))
    }

    /// Sets the minimum level of log messages: with one request in a legacy session, otherwise with every request
    /// from now on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the server has no logging.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<(), Error> {
        if !self.server().capabilities.logging {
            return Err(Error::Unsupported("the server sends no log messages".to_owned()));
        }
        self.inner.request_log_level(level).await
    }

    /// Pings the server, and returns the round-trip time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the revision has no ping.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        self.inner.run(&ClientCall::with_method(Method::Ping), None).await?;
        Ok(began.elapsed())
    }

    /// Notifies the server that the roots have changed, if the era has that notification.
    ///
    /// # Errors
    /// The connection is closed, or the server does not read.
    pub async fn roots_changed(&self) -> Result<(), Error> {
        let session = self.inner.session.load_full();
        let notification = session.edge.roots_changed();
        match notification.filter(|_| self.inner.plan.capabilities.roots()) {
            Some(posted) => {
                let after = self.inner.plan.limits.request_timeout;
                let waits = || self.inner.transport.is_waiting_for_user();
                self.inner.observe_posted(&session, None, &posted);
                let posted = timeout_unless_waiting(after, waits, self.inner.transport.post(posted)).await;
                Ok(posted.map_err(|_| Error::TimedOut { after })??)
            }
            None => Ok(()),
        }
    }

    /// Subscribes to changes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the server reports none of the requested changes.
    pub async fn subscribe(&self, filter: ChangeFilter) -> Result<ChangeStream, Error> {
        ChangeStream::open(self.clone(), filter).await
    }

    /// Runs one step of a call: to its result, or to input requests that the caller answers.
    ///
    /// # Errors
    /// [`Error`]; [`Error::may_have_run`] reports whether the server may have run the call.
    pub fn step(&self, mut call: ClientCall) -> impl Future<Output = Result<StepOutcome, Error>> + Send {
        call.batches_requests = true;
        let supplied_input = call.supplied_input.take();
        async move { self.inner.step(&call, supplied_input).await }
    }

    /// Runs a call to its result, which is returned as the server wrote it; the [`InputHandler`] answers input
    /// requests.
    ///
    /// # Errors
    /// As [`Client::step`].
    pub async fn run(&self, mut call: ClientCall) -> Result<RawJson, Error> {
        let supplied_input = call.supplied_input.take();
        self.inner.run(&call, supplied_input).await
    }

    /// Waits until the answers to all input requests are sent that the server has sent outside of calls. What the server
    /// sent before it answered an earlier [`Client::ping`] is among them, unless it came over another stream.
    pub async fn session_requests_answered(&self) {
        self.inner.open_requests.wait_answered().await;
    }

    /// Returns the number of abandoned calls without a response, if the transport does not attribute input requests
    /// to calls. While it is not zero, the next input request may belong to one of them.
    pub fn abandoned_calls(&self) -> usize {
        self.inner.transport.abandoned_requests()
    }

    /// Returns what the server's program printed outside of the protocol, if there is a program and it printed something:
    /// the last lines of its standard error, and the first line of its standard output that is no message.
    pub fn process_output(&self) -> Option<String> {
        self.inner.transport.process_output()
    }

    /// Reports whether the connection is closed for good.
    pub fn is_closed(&self) -> bool {
        self.inner.transport.is_closed()
    }

    /// Waits until the connection is closed for good, and returns the reason. It never completes over Streamable
    /// HTTP, which has no permanent connection.
    pub async fn closed(&self) -> String {
        loop {
            let over = self.inner.closed.notified();
            if let Some(how) = self.inner.transport.close_reason() {
                return how;
            }
            over.await;
        }
    }

    /// Closes the connection gracefully, for all clones.
    pub async fn close(self) {
        let within = self.inner.plan.limits.close_timeout;
        if tokio::time::timeout(within, self.inner.transport.close()).await.is_err() {
            tracing::debug!(?within, "the connection did not end in time");
        }
    }

    pub(crate) fn from_inner(inner: Arc<ClientInner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<ClientInner> {
        &self.inner
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl ClientInner {
    pub(crate) fn new(
        transport: Arc<dyn ClientTransport>,
        session: CurrentSession,
        plan: ConnectPlan,
        input: Arc<dyn InputHandler>,
        logs: LogSinks,
        open_requests: Arc<OpenRequests>,
    ) -> Arc<Self> {
        Arc::new(Self {
            cache: ResponseCache::new(plan.limits.cache_entries, plan.limits.cache_bytes),
            transport,
            session: ArcSwap::from_pointee(session),
            plan,
            input,
            tools: KnownTools::default(),
            changes: ChangeBroadcaster::default(),
            detached_answers: DetachedAnswers::default(),
            open_requests,
            logs,
            level: AtomicU8::new(0),
            reopen_lock: tokio::sync::Mutex::default(),
            listener_task: Mutex::default(),
            closed: Notify::new(),
        })
    }

    /// Passes a log message to the client's callback.
    pub(crate) fn log(&self, message: &LogMessage) {
        if let Some(callback) = &self.logs.all {
            callback(message);
        }
    }

    /// Handles a notification that belongs to no request.
    pub(crate) fn handle_notification(&self, notification: &Notification) {
        if notification.method == "notifications/message" {
            let Some(message) = LogMessage::read(notification) else {
                return self.count_dropped(DroppedMessage::Unreadable);
            };
            self.log(&message);
            if let Some(callback) = &self.logs.session {
                callback(&message, self.transport.abandoned_requests() > 0);
            }
        } else if notification.method == "notifications/elicitation/complete" {
            if let Some(id) = notification.params.get("elicitationId").and_then(RawJson::as_text) {
                self.input.elicitation_complete(&id);
            }
        } else if let Some(change) = ChangeEvent::read(notification) {
            self.publish_change(&change);
        } else {
            self.count_dropped(DroppedMessage::Notification);
        }
    }

    /// Reports a message that is dropped.
    pub(crate) fn count_dropped(&self, kind: DroppedMessage) {
        DropCallback::report(self.plan.on_dropped.as_ref(), kind);
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        let index = usize::from(self.level.load(Ordering::Relaxed));
        index.checked_sub(1).and_then(|index| LoggingLevel::ALL.get(index).copied())
    }

    async fn request_log_level(self: &Arc<Self>, level: LoggingLevel) -> Result<(), Error> {
        let session = self.session.load_full();
        #[expect(clippy::cast_possible_truncation, reason = "there are eight levels")]
        let index =
            LoggingLevel::ALL.iter().position(|known| *known == level).map_or(0, |index| index as u8 + 1);
        self.level.store(index, Ordering::Relaxed);
        match session.edge.set_level_call(level).filter(|_| session.info.capabilities.logging) {
            Some(call) => self.run(&call, None).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for ClientInner {
    fn drop(&mut self) {
        let listener = self.listener_task.lock().take();
        if let Some(listener) = listener {
            listener.abort();
            if let Some(observer) = &self.plan.observer {
                observer.disconnected(&self.session.load().info);
            }
        }
    }
}

impl fmt::Debug for ClientInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientInner").field("session", &self.session.load()).finish_non_exhaustive()
    }
}
