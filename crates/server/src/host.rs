//! Hosting a handler, and the transports to serve it over.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use trunkline_protocol::RevisionSet;
use trunkline_session::{Principal, SessionBus, StateKeys, StateKeysError, StateLimits, StateStore};
use trunkline_transport::{Channel, ChannelOpener, MemoryChannel, Target};

use crate::call::Handler;
use crate::channel::ChannelServer;
use crate::edge::legacy::{SessionSummary, SessionTransport};
use crate::env::EnvPolicy;
use crate::error::BuildError;
use crate::http::{self, DrainOutcome, HttpServerOptions, HttpService};
use crate::interceptor::Layers;
use crate::limits::ServerLimits;
use crate::metrics::Metrics;
use crate::server::Server;
use crate::server_core::ServerCore;
use crate::shutdown::Shutdown;
use crate::wire_tap::ClientWireObserver;

/// How a handler is served, for every transport.
#[derive(Clone, Debug, Default)]
pub struct HostOptions {
    /// The revisions that clients may use. Default all of them.
    pub revisions: RevisionSet,
    /// The bounds.
    pub limits: ServerLimits,
    /// The keys that encrypt the state that travels through clients. Default one random key, so that suspended calls
    /// do not survive a restart and can be resumed by this process alone.
    pub state_keys: Option<StateKeys>,
    /// Interceptors around every call, outside of the handler's own. Default none.
    pub layers: Layers,
    /// The metrics that count and time the calls. Default none.
    pub metrics: Option<Metrics>,
    /// The handle that shuts the server down.
    pub shutdown: Shutdown,
    /// The bounds of the state that handlers keep between calls.
    pub state_limits: StateLimits,
    /// The store of handler state that other nodes must find too; `None` is in memory, within
    /// [`HostOptions::state_limits`].
    pub state_store: Option<Arc<dyn StateStore>>,
    /// The bus between the processes that share sessions, events and states. Default none, for a single process; with one,
    /// [`HttpServerOptions::sessions`](crate::http::HttpServerOptions::sessions) and
    /// [`HttpServerOptions::events`](crate::http::HttpServerOptions::events) have to be stores that these processes share, and
    /// all of them need the same [`HostOptions::state_keys`].
    pub bus: Option<Arc<dyn SessionBus>>,
    /// The environment variables that handlers may see of their callers. Default none.
    pub env: EnvPolicy,
    /// Whether roots in the `clientInfo` of a legacy client count, which no revision allows but some clients send;
    /// they have `"trunkline/source": "clientInfo"` in their `_meta`. Default no.
    pub client_info_roots: bool,
    /// Whether a legacy client has to send `notifications/initialized` before any request but a ping. Default no:
    /// earlier requests are answered, as other servers do. A request before `initialize` is refused in any case.
    pub require_initialized: bool,
    /// Whether the response to `initialize` has the session's id as `trunkline/sessionId` in its `_meta` too, for
    /// clients that cannot read headers. Default no: the id is in the header `Mcp-Session-Id`, and is not sent over
    /// transports without headers.
    pub session_in_meta: bool,
    /// Observes the messages of all clients. Default none.
    pub observer: Option<ClientWireObserver>,
    /// Whether a legacy session requests the client's roots when it begins and whenever they change, so that no call waits
    /// for them. Default no: they are requested when a handler needs them, since some clients declare roots and then hang
    /// when they are requested outside of a call.
    pub roots_at_start: bool,
}

/// A handler ready to be served over any number of transports at once.
#[derive(Clone)]
pub struct Host {
    core: Arc<ServerCore>,
}

impl Host {
    /// Prepares a handler for serving.
    ///
    /// # Errors
    /// The operating system gives no random bytes for a key.
    pub fn new(handler: impl Handler, options: HostOptions) -> Result<Self, StateKeysError> {
        let keys = match &options.state_keys {
            Some(keys) => keys.clone(),
            None => StateKeys::random()?,
        };
        let handler = options.layers.clone().wrap(handler);
        let core = ServerCore::new(handler, &keys, options);
        Ok(Self { core })
    }

    pub(crate) fn from_core(core: Arc<ServerCore>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<ServerCore> {
        &self.core
    }

    /// Returns the endpoint as an HTTP service.
    pub fn http_service(&self, options: HttpServerOptions) -> HttpService {
        HttpService::new(self.core.clone(), options)
    }

    /// Serves one channel until its peer disconnects or the server shuts down.
    ///
    /// # Errors
    /// [`ServeError::Transport`] if the channel breaks, [`ServeError::Aborted`] if calls were not answered: those
    /// that still ran when the server stopped, or [`ServerLimits::drain_timeout`] after the peer had ended its side.
    pub async fn serve_channel(&self, channel: impl Channel, principal: Principal) -> Result<(), ServeError> {
        check_answered(ChannelServer::new(self.core.clone(), principal, channel).await?)
    }

    /// Serves a client within this process, on a task of its own, and returns the client's end.
    pub fn connect(&self) -> MemoryChannel {
        let (ours, theirs) = trunkline_transport::memory(64);
        let host = self.clone();
        tokio::spawn(async move {
            // A memory channel ends when the client drops its end, which is no error; no client is left to report a
            // call to.
            let _ = host.serve_channel(ours, Principal::Process).await;
        });
        theirs
    }

    /// Replaces the keys of [`HostOptions::state_keys`] while the server runs; returns whether they differ from those
    /// before. Calls that were sealed under a key that is no longer there have to be started again.
    pub fn replace_state_keys(&self, keys: &StateKeys) -> bool {
        self.core.sealer.replace(keys)
    }

    /// Returns the handle that shuts the server down.
    pub fn shutdown(&self) -> &Shutdown {
        &self.core.shutdown
    }

    /// Leaves the bus, if the server is on one, so that other processes take this one for ended. Serving over HTTP does so by
    /// itself when it ends.
    pub async fn leave_bus(&self) {
        if let Some(bus) = &self.core.bus {
            bus.leave().await;
        }
    }

    /// Returns how many states handlers keep in memory, and how many in the store.
    pub fn states(&self) -> (usize, usize) {
        self.core.states.count()
    }

    /// Returns up to `most` legacy sessions over channels, such as stdio and WebSockets, in no order. Those over Streamable HTTP
    /// are in a store, and [`HttpService::list_sessions`] returns both.
    pub fn channel_sessions(&self, most: usize) -> Vec<SessionSummary> {
        self.core.channel_sessions.summaries(most)
    }

    /// Returns how many calls run, and how many are suspended.
    pub fn load(&self) -> (usize, usize) {
        (self.core.calls(), self.core.suspended_calls.count())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("load", &self.load()).finish_non_exhaustive()
    }
}

/// Why a server could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Its parts do not fit together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no key for state.
    #[error(transparent)]
    Keys(#[from] StateKeysError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The transport failed.
    #[error("the transport failed: {0}")]
    Transport(#[from] io::Error),
    /// Calls were still running at the deadline, and were refused or aborted.
    #[error("{0} calls were ended before they were answered")]
    Aborted(usize),
}

/// Turns the number of unanswered calls into an error.
fn check_answered(unanswered: usize) -> Result<(), ServeError> {
    match unanswered {
        0 => Ok(()),
        calls => Err(ServeError::Aborted(calls)),
    }
}

impl Server {
    /// Prepares the server to be served over any number of transports.
    ///
    /// # Errors
    /// The parts do not fit together, or there is no key for state.
    pub fn host(&self, options: HostOptions) -> Result<Host, ServeError> {
        Ok(Host::new(self.handle()?, options)?)
    }

    /// Serves the server until its peer disconnects or it is shut down.
    ///
    /// # Errors
    /// [`ServeError`]: the parts do not fit together, or the transport fails.
    pub async fn serve(&self, binding: impl ServerTransport) -> Result<(), ServeError> {
        binding.serve(self.host(HostOptions::default())?).await
    }
}

/// A server in this process is a target like any other: each connection is a memory channel of its own.
impl From<Host> for Target {
    fn from(host: Host) -> Self {
        let name = host.core.handler.identity().name;
        let open = move || std::future::ready(Ok(host.connect()));
        Self::Channel(ChannelOpener::new(format!("{name} in this process"), open))
    }
}

/// The server is built when it is first connected to, and served with the default options.
impl From<Server> for Target {
    fn from(server: Server) -> Self {
        let host = OnceLock::new();
        let open = move || {
            let host =
                host.get_or_init(|| server.host(HostOptions::default()).map_err(|error| error.to_string()));
            std::future::ready(
                host.as_ref().map(Host::connect).map_err(|error| io::Error::other(error.clone())),
            )
        };
        Self::Channel(ChannelOpener::new("a server in this process", open))
    }
}

/// A transport binding to serve a server with.
pub trait ServerTransport {
    /// Serves until the transport ends.
    fn serve(self, host: Host) -> impl Future<Output = Result<(), ServeError>> + Send;
}

/// The default grace period for calls at the end.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Serves over this process's standard input and output.
pub const fn stdio() -> StdioServer {
    StdioServer { grace: DEFAULT_GRACE }
}

/// The binding to standard input and output.
#[derive(Clone, Copy, Debug)]
pub struct StdioServer {
    grace: Duration,
}

impl StdioServer {
    /// Sets how long calls may take to finish when the input ends or the server shuts down, after which they are
    /// refused; 30 s unless set.
    #[must_use]
    pub const fn grace(self, grace: Duration) -> Self {
        Self { grace }
    }
}

impl ServerTransport for StdioServer {
    async fn serve(self, host: Host) -> Result<(), ServeError> {
        let channel = trunkline_transport::stdio(host.core.limits.message_bytes)?;
        let server = ChannelServer::new(host.core, Principal::Process, channel).with_grace(self.grace);
        check_answered(server.with_transport_kind(SessionTransport::Stdio).await?)
    }
}

/// Serves over HTTP on an address such as `127.0.0.1:8080`.
pub fn http(address: impl Into<String>) -> HttpServer {
    HttpServer { address: address.into(), options: None, grace: DEFAULT_GRACE }
}

/// The binding to an HTTP listener.
#[derive(Clone, Debug)]
pub struct HttpServer {
    address: String,
    options: Option<HttpServerOptions>,
    grace: Duration,
}

impl HttpServer {
    /// Sets how the endpoint is served; the default is [`HttpServerOptions::for_address`].
    #[must_use]
    pub fn options(mut self, options: HttpServerOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets how long calls may take to finish when the server shuts down; 30 s unless set.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}

impl ServerTransport for HttpServer {
    async fn serve(self, host: Host) -> Result<(), ServeError> {
        let listen = async {
            let listener = TcpListener::bind(&self.address).await?;
            let address = listener.local_addr()?;
            Ok::<(TcpListener, SocketAddr), io::Error>((listener, address))
        };
        let (listener, address) =
            listen.await.map_err(|cause| ServeError::Listen { address: self.address.clone(), cause })?;
        let options = self.options.unwrap_or_else(|| HttpServerOptions::for_address(address.ip()));
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        tracing::info!("listening on {scheme}://{address}{}", options.path);
        if let Some(warning) = options.warning(address.ip()) {
            tracing::warn!("{warning}");
        }
        let endpoint = host.http_service(options);
        match http::serve(listener, &endpoint, endpoint.clone(), self.grace).await? {
            DrainOutcome::Cleanly => Ok(()),
            DrainOutcome::Aborted(calls) => Err(ServeError::Aborted(calls)),
        }
    }
}
