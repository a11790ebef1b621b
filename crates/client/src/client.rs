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
    CallToolResult, ClientCapabilities, CompleteResult, GetPromptResult, Implementation, Prompt, ReadResult,
    Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use trunkline_protocol::{Era, Level, Method, Notification, Raw, Revision};
use trunkline_transport::Target;

use crate::builder::Builder;
use crate::cache::{Cache, Key};
use crate::call::{Alarms, Call, Calling, Completion, LogMessage, LogSinks, Outcome, Round, Step};
use crate::carrier::Carrier;
use crate::connect::{Attempt, Connected, Plan, SpokenEras};
use crate::edge::Edge;
use crate::error::Error;
use crate::input::InputHandler;
use crate::list::List;
use crate::lists_as::ListsAs;
use crate::session::{self, Adopted};
use crate::subscribe::{Change, Changes, Subscription, Watch};
use crate::tools::KnownTools;

/// A connection to one server, whatever it is and whichever revision it speaks.
///
/// Clones share the connection; it ends with the last of them, or by [`Client::close`].
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
    inner: Arc<Inner>,
}

/// What is known of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// What it calls itself.
    pub identity: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// Its advice for the model that uses it.
    pub instructions: Option<String>,
    /// Which eras it speaks, as far as that is known.
    pub eras: SpokenEras,
    /// How it is reached: `stdio`, `channel`, `streamable-http`, `sse` or `websocket`.
    pub transport: &'static str,
    /// What was tried in order to connect, in order.
    pub attempts: Vec<Attempt>,
}

impl ServerInfo {
    /// Reports whether the server knows its client from one request to the next, so that what it is told in one counts in
    /// the others.
    pub fn keeps_sessions(&self) -> bool {
        self.revision.era() == Era::Legacy
    }

    /// Reports whether a question always comes with the request that it is about, so that nobody has to guess.
    pub fn attributes_questions(&self) -> bool {
        !self.keeps_sessions() || self.transport == "streamable-http"
    }
}

/// What all clones of a client share.
pub(crate) struct Inner {
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) session: ArcSwap<Session>,
    pub(crate) plan: Plan,
    pub(crate) input: Arc<dyn InputHandler>,
    pub(crate) tools: KnownTools,
    pub(crate) cache: Cache,
    pub(crate) changes: Changes,
    pub(crate) adopted: Adopted,
    pub(crate) alarms: Alarms,
    logs: LogSinks,
    /// The level that requests ask for, as its place among the levels and one more; zero for none.
    level: AtomicU8,
    /// Held while a session is opened again, so that many lost requests open one.
    reopening: tokio::sync::Mutex<()>,
    listener: Mutex<Option<AbortHandle>>,
    /// Told when the connection is gone for good.
    pub(crate) over: Notify,
}

/// How a server is talked to at the moment.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) edge: Edge,
    pub(crate) info: Arc<ServerInfo>,
}

impl Client {
    /// Connects to a server: an `http`, `https`, `ws` or `wss` address, a command line, a name in an `mcp.json` or
    /// `trunkline.toml` (with the feature `config`), or a server in this process.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub async fn connect(target: impl Into<Target>) -> Result<Self, Error> {
        Self::builder().connect(target).await
    }

    /// Begins a connection with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn new(
        connected: Connected,
        attempts: Vec<Attempt>,
        plan: Plan,
        input: Arc<dyn InputHandler>,
        logs: LogSinks,
        level: Option<Level>,
    ) -> Result<Self, Error> {
        let Connected { carrier, edge, described, aside, transport } = connected;
        let info = Arc::new(ServerInfo {
            eras: plan.learned(&described),
            revision: described.revision,
            identity: described.identity,
            capabilities: described.capabilities,
            instructions: described.instructions,
            transport,
            attempts,
        });
        let limits = &plan.limits;
        let inner = Arc::new(Inner {
            cache: Cache::new(limits.cached, limits.cached_bytes),
            carrier,
            session: ArcSwap::from_pointee(Session { edge, info }),
            plan,
            input,
            tools: KnownTools::default(),
            changes: Changes::default(),
            adopted: Adopted::default(),
            alarms: Alarms::default(),
            logs,
            level: AtomicU8::new(0),
            reopening: tokio::sync::Mutex::default(),
            listener: Mutex::default(),
            over: Notify::new(),
        });
        let listener = tokio::spawn(session::listen(&inner, aside)).abort_handle();
        *inner.listener.lock() = Some(listener);
        let client = Self { inner };
        if let Some(level) = level {
            client.inner.ask_for_level(level).await?;
        }
        Ok(client)
    }

    /// Returns what is known of the server.
    pub fn server(&self) -> Arc<ServerInfo> {
        self.inner.session.load().info.clone()
    }

    /// Returns the revision that is spoken with the server.
    pub fn revision(&self) -> Revision {
        self.inner.session.load().info.revision
    }

    /// Lists the tools, all pages of them.
    ///
    /// # Errors
    /// [`Error`]: the server is gone, refuses, or lists without end.
    pub async fn tools(&self) -> Result<Arc<List<Tool>>, Error> {
        self.inner.list().await
    }

    /// Lists the prompts, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn prompts(&self) -> Result<Arc<List<Prompt>>, Error> {
        self.inner.list().await
    }

    /// Lists the resources, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn resources(&self) -> Result<Arc<List<Resource>>, Error> {
        self.inner.list().await
    }

    /// Lists the resource templates, all pages of them.
    ///
    /// # Errors
    /// As [`Client::tools`].
    pub async fn templates(&self) -> Result<Arc<List<ResourceTemplate>>, Error> {
        self.inner.list().await
    }

    /// Lists what the server has for clients of other capabilities than this one's. A legacy session has declared its own for
    /// good, and lists what it always does.
    pub fn lists_as(&self, capabilities: ClientCapabilities) -> ListsAs {
        ListsAs::new(self.inner.clone(), capabilities)
    }

    /// Calls a tool with arguments, a JSON object.
    pub fn call(&self, tool: impl Into<String>, arguments: impl Into<Raw>) -> Calling<CallToolResult> {
        Calling::new(self.clone(), Call::tool(tool, arguments))
    }

    /// Reads a resource.
    pub fn read(&self, uri: impl Into<String>) -> Calling<ReadResult> {
        Calling::new(self.clone(), Call::read(uri))
    }

    /// Fetches a prompt with arguments, a JSON object of strings.
    pub fn get_prompt(&self, name: impl Into<String>, arguments: impl Into<Raw>) -> Calling<GetPromptResult> {
        Calling::new(self.clone(), Call::prompt(name, arguments))
    }

    /// Asks what an argument could be completed to.
    pub fn complete(&self, completion: Completion) -> Calling<CompleteResult> {
        Calling::new(self.clone(), Call::complete(completion))
    }

    /// Asks for log messages from a level on: once for all in a session, else with every request from now on.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the server writes no log.
    pub async fn set_level(&self, level: Level) -> Result<(), Error> {
        if !self.server().capabilities.logging {
            return Err(Error::Unsupported("the server sends no log messages".to_owned()));
        }
        self.inner.ask_for_level(level).await
    }

    /// Asks whether the server is there, and returns how long it took to say so.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the revision has no ping.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        self.inner.run(&Call::of(Method::Ping), None).await?;
        Ok(began.elapsed())
    }

    /// Tells the server that the roots have changed, where a server can be told.
    ///
    /// # Errors
    /// The connection is gone, or the server does not read.
    pub async fn roots_changed(&self) -> Result<(), Error> {
        let notification = self.inner.session.load().edge.roots_changed();
        match notification.filter(|_| self.inner.plan.capabilities.roots()) {
            Some(posted) => {
                let after = self.inner.plan.limits.silent_for;
                let posted = tokio::time::timeout(after, self.inner.carrier.post(posted)).await;
                Ok(posted.map_err(|_| Error::TimedOut { after })??)
            }
            None => Ok(()),
        }
    }

    /// Begins to watch for changes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the server tells of nothing that is to be watched.
    pub async fn subscribe(&self, watch: Watch) -> Result<Subscription, Error> {
        Subscription::open(self.clone(), watch).await
    }

    /// Makes one step of a call: to its result, or to questions that the caller answers.
    ///
    /// # Errors
    /// [`Error`]; whether the server may have run the call nevertheless is told by [`Error::may_have_run`].
    pub fn step(&self, mut call: Call) -> impl Future<Output = Result<Outcome, Error>> + Send {
        call.gathers = true;
        let given = call.given.take();
        async move {
            match self.inner.step(&call, given).await? {
                Step::Done(result) => Ok(Outcome::Done(result)),
                Step::Ask(questions, then) => {
                    Ok(Outcome::Ask(Box::new(Round::new(self.clone(), call, questions, then))))
                }
            }
        }
    }

    /// Runs a call to its result, which is returned as the server wrote it; questions are answered by the
    /// [`InputHandler`].
    ///
    /// # Errors
    /// As [`Client::step`].
    pub async fn run(&self, mut call: Call) -> Result<Raw, Error> {
        let given = call.given.take();
        self.inner.run(&call, given).await
    }

    /// Returns how many calls were given up that the server has not answered yet, and within which it may still ask something
    /// where nothing says to which call a question belongs. As long as there are any, the next question may be theirs.
    pub fn abandoned_calls(&self) -> usize {
        self.inner.carrier.abandoned()
    }

    /// Reports whether the connection is gone for good.
    pub fn is_closed(&self) -> bool {
        self.inner.carrier.is_over()
    }

    /// Waits until the connection is gone for good, and says how that came. A server without a standing connection is never
    /// gone for good.
    pub async fn closed(&self) -> String {
        loop {
            let over = self.inner.over.notified();
            if let Some(how) = self.inner.carrier.epitaph() {
                return how;
            }
            over.await;
        }
    }

    /// Ends the connection in an orderly way, for all clones.
    pub async fn close(self) {
        let within = self.inner.plan.limits.close_within;
        if tokio::time::timeout(within, self.inner.carrier.close()).await.is_err() {
            tracing::debug!(?within, "the connection did not end in time");
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl Inner {
    /// Tells whoever wants to know of a log message.
    pub(crate) fn log(&self, message: &LogMessage) {
        if let Some(tell) = &self.logs.all {
            tell(message);
        }
    }

    /// Takes a notice that belongs to no request.
    pub(crate) fn notice(&self, notice: &Notification) {
        if notice.method == "notifications/message" {
            if let Some(message) = LogMessage::read(notice) {
                self.log(&message);
                if let Some(tell) = &self.logs.session {
                    tell(&message, self.carrier.abandoned() > 0);
                }
            }
        } else if notice.method == "notifications/elicitation/complete" {
            if let Some(id) = notice.params.get("elicitationId").and_then(Raw::as_text) {
                self.input.page_done(&id);
            }
        } else if let Some(change) = Change::read(notice) {
            self.changed(&change);
        }
    }

    /// Forgets what a change has made old, and tells whoever watches.
    pub(crate) fn changed(&self, change: &Change) {
        self.forget(change);
        self.changes.publish(change);
    }

    /// Forgets what a change has made old.
    pub(crate) fn forget(&self, change: &Change) {
        self.cache.forget(|key| match (change, key) {
            (Change::Missed, _) => true,
            (Change::Tools, Key::List(list)) => *list == Method::ToolsList.as_str(),
            (Change::Prompts, Key::List(list)) => *list == Method::PromptsList.as_str(),
            (Change::Resources, Key::List(list)) => {
                [Method::ResourcesList.as_str(), Method::TemplatesList.as_str()].contains(list)
            }
            (Change::Resource(changed), Key::Read(uri)) => crate::subscribe::is_part_of(changed, uri),
            _ => false,
        });
    }

    pub(crate) fn level(&self) -> Option<Level> {
        let place = usize::from(self.level.load(Ordering::Relaxed));
        place.checked_sub(1).and_then(|place| Level::ALL.get(place).copied())
    }

    async fn ask_for_level(self: &Arc<Self>, level: Level) -> Result<(), Error> {
        let session = self.session.load_full();
        #[expect(clippy::cast_possible_truncation, reason = "there are eight levels")]
        let place = Level::ALL.iter().position(|known| *known == level).map_or(0, |place| place as u8 + 1);
        self.level.store(place, Ordering::Relaxed);
        match session.edge.set_level(level).filter(|_| session.info.capabilities.logging) {
            Some(call) => self.run(&call, None).await.map(drop),
            None => Ok(()),
        }
    }

    /// Opens a session again that the server has forgotten, unless somebody else has done so already.
    pub(crate) fn reopen(
        self: &Arc<Self>,
        lost: &Arc<Session>,
    ) -> futures_util::future::BoxFuture<'_, Result<(), Error>> {
        let lost = lost.clone();
        Box::pin(async move {
            let one_at_a_time = self.reopening.lock().await;
            let current = self.session.load_full();
            if !Arc::ptr_eq(&current, &lost) {
                return Ok(());
            }
            let (edge, described) =
                crate::connect::initialize(&*self.carrier, &self.plan, lost.info.revision).await?;
            let info = ServerInfo {
                eras: lost.info.eras,
                revision: described.revision,
                identity: described.identity,
                capabilities: described.capabilities,
                instructions: described.instructions,
                transport: lost.info.transport,
                attempts: lost.info.attempts.clone(),
            };
            self.session.store(Arc::new(Session { edge, info: Arc::new(info) }));
            drop(one_at_a_time);
            session::restore(self).await;
            Ok(())
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let listener = self.listener.lock().take();
        if let Some(listener) = listener {
            listener.abort();
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("session", &self.session.load()).finish_non_exhaustive()
    }
}
