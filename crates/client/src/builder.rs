use std::fmt;
use std::sync::Arc;

use trunkline_auth::authorizer::{AuthorizationOptions, Authorizer};
use trunkline_protocol::model::Implementation;
use trunkline_protocol::{Era, JsonObject, LoggingLevel, RawJson, Revision, meta};
use trunkline_transport::dial::Dialer;
use trunkline_transport::process::{LineCallback, OutputLine};
use trunkline_transport::{Secret, Target};

use crate::call::{LogMessage, LogSinks};
use crate::client::Client;
use crate::connect::{
    self, AuthorizationSource, ConnectAttempts, ConnectPlan, EraCache, HttpTransportKind, RequestIds,
};
use crate::dropped_message::{DropCallback, DroppedMessage};
#[cfg(feature = "config")]
use crate::error::ConnectError;
use crate::error::Error;
use crate::input::{InputHandler, NoInputHandler};
use crate::limits::ClientLimits;
use crate::resumable_session::ResumableSession;
use crate::wire_tap::ServerWireObserver;

/// Builds a [`Client`]: how it connects, and how it handles what the server sends.
#[must_use = "nothing happens before `connect`"]
#[derive(Clone)]
pub struct ClientBuilder {
    identity: Implementation,
    input: Arc<dyn InputHandler>,
    pin: Option<Revision>,
    whole_era: bool,
    prefers: Era,
    http_transport: HttpTransportKind,
    /// The limits, if the caller has set them.
    limits: Option<ClientLimits>,
    headers: Vec<(String, Secret)>,
    env: Vec<(String, Secret)>,
    logs: LogSinks,
    on_line: Option<LineCallback>,
    on_dropped: Option<DropCallback>,
    level: Option<LoggingLevel>,
    era_cache: EraCache,
    dialer: Dialer,
    authorization: Option<AuthorizationSource>,
    list_meta: JsonObject,
    resumed: Option<ResumableSession>,
    observer: Option<ServerWireObserver>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            identity: Implementation::new("trunkline", env!("CARGO_PKG_VERSION")),
            input: Arc::new(NoInputHandler),
            pin: None,
            whole_era: false,
            prefers: Era::Modern,
            http_transport: HttpTransportKind::default(),
            limits: None,
            headers: Vec::new(),
            env: Vec::new(),
            logs: LogSinks::default(),
            on_line: None,
            on_dropped: None,
            level: None,
            era_cache: EraCache::default(),
            dialer: Dialer::default(),
            authorization: None,
            list_meta: JsonObject::new(),
            resumed: None,
            observer: None,
        }
    }
}

impl ClientBuilder {
    /// Observes the messages of the connection.
    pub fn observer(self, observer: ServerWireObserver) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Sets the name and version that the client reports to servers (`clientInfo`).
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = identity;
        self
    }

    /// Sets the handler for input requests: elicitation, sampling and roots. Without one, the client declares none
    /// of these capabilities.
    pub fn input(mut self, handler: impl InputHandler) -> Self {
        self.input = Arc::new(handler);
        self
    }

    /// Pins one protocol revision; the server is not probed.
    pub fn pin(mut self, revision: Revision) -> Self {
        (self.pin, self.whole_era) = (Some(revision), false);
        self
    }

    /// Pins an era: any revision of it is accepted, and the other era is not tried.
    pub fn era(self, era: Era) -> Self {
        let newest = match era {
            Era::Legacy => Revision::NEWEST_LEGACY,
            Era::Modern => Revision::NEWEST,
        };
        Self { whole_era: true, ..self.pin(newest) }
    }

    /// Sets the era to try first with a server that may support both. If the server does not support it, the other
    /// era is tried. Ignored if a revision or an era is pinned. Default: modern.
    pub fn prefer(mut self, era: Era) -> Self {
        self.prefers = era;
        self
    }

    /// Sets the transport for an `http` address. Default: detected.
    pub fn http_transport(mut self, transport: HttpTransportKind) -> Self {
        self.http_transport = transport;
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Adds a header to every HTTP request to the target.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), Secret::new(value)));
        self
    }

    /// Obtains the tokens that a server over HTTP demands.
    ///
    /// Without this a server that requires authorization is an [`Error::Unauthorized`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), trunkline_client::Error> {
    /// use trunkline_client::Client;
    /// use trunkline_client::authorization::{AuthorizationOptions, BrowserUserAgent};
    ///
    /// let login = AuthorizationOptions::code_flow(BrowserUserAgent::new());
    /// let client = Client::builder().authorization(login).connect("https://mcp.example.com/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn authorization(mut self, options: AuthorizationOptions) -> Self {
        self.authorization = Some(AuthorizationSource::Options(Box::new(options)));
        self
    }

    /// Authorizes requests with an authorizer that several clients of one server share, so that its token is refreshed
    /// once for all of them.
    pub fn authorizer(mut self, authorizer: Arc<Authorizer>) -> Self {
        self.authorization = Some(AuthorizationSource::Shared(authorizer));
        self
    }

    /// Sends a bearer token with every HTTP request to the target.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.header("Authorization", format!("Bearer {}", token.into()))
    }

    /// Sets an environment variable of the server process that is started.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), Secret::new(value)));
        self
    }

    /// Calls a function for every log message of the server.
    pub fn on_log(mut self, callback: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        self.logs.all = Some(Arc::new(callback));
        self
    }

    /// Calls a function for every log message that cannot be attributed to one running call. The second argument is
    /// whether the message may belong to an abandoned call.
    pub fn on_session_log(mut self, callback: impl Fn(&LogMessage, bool) + Send + Sync + 'static) -> Self {
        self.logs.session = Some(Arc::new(callback));
        self
    }

    /// Calls a function for every line that the server process writes outside of the protocol: to its standard
    /// error, and lines on its standard output that are not messages.
    ///
    /// Without it, the error contains the last lines of standard error if the process exits, and all others are
    /// dropped.
    pub fn on_line(mut self, callback: impl Fn(&OutputLine<'_>) + Send + Sync + 'static) -> Self {
        self.on_line = Some(Arc::new(callback));
        self
    }

    /// Calls a function for every message of the server that is dropped, so that it can be counted and logged. Without
    /// it, those that an operator should know of are warnings.
    pub fn on_dropped(mut self, callback: impl Fn(DroppedMessage) + Send + Sync + 'static) -> Self {
        self.on_dropped = Some(DropCallback::new(callback));
        self
    }

    /// Adds a member to `_meta` of every list request. Keys that are reserved by the protocol are ignored.
    pub fn list_meta(mut self, key: impl Into<String>, value: RawJson) -> Self {
        let key = key.into();
        if !meta::is_hop_by_hop(&key) {
            self.list_meta.set(key, value);
        }
        self
    }

    /// Requests log messages of this level and above, if the server supports logging.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.level = Some(level);
        self
    }

    /// Sets the cache of server eras; clones of one [`EraCache`] share their entries.
    pub fn era_cache(mut self, era_cache: EraCache) -> Self {
        self.era_cache = era_cache;
        self
    }

    /// Sets the dialer for network connections: proxies, timeouts, and trusted certificates.
    pub fn dialer(mut self, dialer: Dialer) -> Self {
        self.dialer = dialer;
        self
    }

    /// Continues a session of Streamable HTTP that another client opened, without a handshake.
    ///
    /// The [`InputHandler`] should have the capabilities of that client, which the server was sent for good. The first
    /// request shows whether the server still knows the session; if not, a new one is opened, and the client has its
    /// log level and subscriptions there too. One client at a time should have a session: a server sends what belongs to
    /// no request to one of them.
    pub fn resume(mut self, session: ResumableSession) -> Self {
        self.resumed = Some(session);
        self
    }

    /// Connects to the target.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with every attempt, [`Error::Unauthorized`], or [`Error::InvalidOptions`] if the
    /// target is not valid, such as a name that is not configured.
    pub async fn connect(self, target: impl Into<Target>) -> Result<Client, Error> {
        match target.into() {
            #[cfg(feature = "config")]
            Target::Name { name, file } => self.connect_by_name(name, file).await,
            target => self.connect_to(target).await,
        }
    }

    /// Connects to a configured server. Options set on the builder override the configuration.
    #[cfg(feature = "config")]
    async fn connect_by_name(
        mut self,
        name: String,
        file: Option<std::path::PathBuf>,
    ) -> Result<Client, Error> {
        let crate::config::ConfiguredTarget { target, headers, http_transport: over_http, timeout, server } =
            crate::config::find_server(name.clone(), file).await?;
        if self.pin.is_none() {
            self = crate::config::with_pinned_revision(self, &server);
        }
        self.headers.splice(0..0, headers);
        if self.http_transport == HttpTransportKind::Any {
            self.http_transport = over_http;
        }
        if let (None, Some(timeout)) = (&self.limits, timeout) {
            self.limits = Some(ClientLimits::default().with_request_timeout(timeout));
        }
        self.connect_to(target).await.map_err(|error| match error {
            // The configured target may contain a secret, so the error has the server's name instead.
            Error::Unreachable(unreachable) => {
                Error::Unreachable(Box::new(ConnectError { target: name, ..*unreachable }))
            }
            error => error,
        })
    }

    /// Takes what a connection is opened with; the rest is for the client itself.
    pub(crate) fn take_plan(self) -> (ConnectPlan, Arc<dyn InputHandler>, LogSinks, Option<LoggingLevel>) {
        let plan = ConnectPlan {
            identity: self.identity,
            capabilities: self.input.capabilities(),
            pin: self.pin,
            whole_era: self.whole_era,
            prefers: self.prefers,
            http_transport: self.http_transport,
            limits: self.limits.unwrap_or_default(),
            headers: self.headers,
            env: self.env,
            on_line: self.on_line,
            on_dropped: self.on_dropped,
            era_cache: self.era_cache,
            dialer: self.dialer,
            authorization: self.authorization,
            list_meta: self.list_meta,
            ids: if self.resumed.is_some() { RequestIds::random() } else { RequestIds::default() },
            resumed: self.resumed,
            observer: self.observer,
        };
        (plan, self.input, self.logs, self.level)
    }

    async fn connect_to(self, target: Target) -> Result<Client, Error> {
        let (plan, input, logs, level) = self.take_plan();
        let mut attempts = ConnectAttempts::default();
        // Boxed, since the state of connecting would otherwise be part of every future around it.
        let connected = Box::pin(connect::connect(target, &plan, &mut attempts)).await?;
        Box::pin(Client::new(connected, attempts.into_vec(), plan, input, logs, level)).await
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("identity", &self.identity)
            .field("pin", &self.pin)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
