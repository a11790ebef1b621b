//! Connects to a server and detects its era.
//!
//! The interpretation of a probe is a pure function ([`probe`]), so that the rules are a table that tests can read.
//! The other modules here send the requests.
//!
//! # Invariants
//!
//! - A modern server that starts slowly is never taken for a legacy one:
//!   `slow_modern_server_is_probed_again_after_version_error`, `server_that_answers_the_probe_late_is_modern`.
//! - Over HTTP no era is inferred from wrong credentials, failures or timeouts:
//!   `inconclusive_probe_fails_without_further_attempts`.
//! - HTTP+SSE is tried last, and an error lists every attempt: `http_sse_is_tried_last_and_every_attempt_is_in_the_error`.

mod attempt;
mod channel;
mod channel_probe;
mod era_cache;
mod handshake;
mod http;
mod opened_transport;
mod probe;
mod supported_eras;
mod websocket;

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_auth::authorizer::{AuthorizationOptions, Authorizer};
use trunkline_protocol::model::{ClientCapabilities, Implementation, ServerCapabilities};
use trunkline_protocol::{Era, JsonObject, Revision};
use trunkline_transport::dial::Dialer;
use trunkline_transport::process::LineCallback;
use trunkline_transport::{Secret, Target, Url};

pub use self::attempt::ConnectAttempt;
pub(crate) use self::attempt::ConnectAttempts;
pub use self::era_cache::EraCache;
pub use self::supported_eras::SupportedEras;
use self::supported_eras::{EraPreference, infer_supported_eras};
use crate::client_transport::{
    ChannelLimits, ClientTransport, CustomHeaders, HttpLimits, UnsolicitedReceiver,
};
use crate::client_transport::{EXCHANGE_TRANSPORT, FailureCause};
use crate::dropped_message::DropCallback;
use crate::edge::ProtocolEdge;
use crate::error::{ConnectError, Error};
use crate::limits::ClientLimits;
use crate::resumable_session::ResumableSession;
use crate::wire_tap::ServerWireObserver;

/// The transport for an `http` address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpTransportKind {
    /// Detected; HTTP+SSE is tried last.
    #[default]
    Any,
    /// Streamable HTTP alone.
    Streamable,
    /// HTTP+SSE alone, without trying anything else first.
    Sse,
}

/// What authorizes the requests of a client.
#[derive(Clone)]
pub(crate) enum AuthorizationSource {
    /// An authorizer of its own.
    Options(Box<AuthorizationOptions>),
    /// One that other clients use too.
    Shared(Arc<Authorizer>),
}

/// The parameters of a connection.
#[derive(Clone)]
pub(crate) struct ConnectPlan {
    pub(crate) identity: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    /// The pinned revision, or the newest of a pinned era.
    pub(crate) pin: Option<Revision>,
    /// Whether any older revision of the same era is accepted.
    pub(crate) whole_era: bool,
    /// The era to try first, if none is pinned.
    pub(crate) prefers: Era,
    pub(crate) http_transport: HttpTransportKind,
    pub(crate) limits: ClientLimits,
    /// HTTP headers of every request.
    pub(crate) headers: Vec<(String, Secret)>,
    /// How the client gets tokens that the server demands.
    pub(crate) authorization: Option<AuthorizationSource>,
    /// Environment variables of the server process.
    pub(crate) env: Vec<(String, Secret)>,
    /// The callback for lines that the process writes outside of the protocol.
    pub(crate) on_line: Option<LineCallback>,
    /// The callback for messages of the server that are dropped.
    pub(crate) on_dropped: Option<DropCallback>,
    pub(crate) era_cache: EraCache,
    /// Opens connections to addresses.
    pub(crate) dialer: Dialer,
    /// Members of `_meta` of every list request.
    pub(crate) list_meta: JsonObject,
    /// The session to continue instead of opening one.
    pub(crate) resumed: Option<ResumableSession>,
    pub(crate) ids: RequestIds,
    /// Observes the messages of the connection.
    pub(crate) observer: Option<ServerWireObserver>,
}

impl ConnectPlan {
    /// Reports whether the pin excludes the revision that a server responded with.
    pub(crate) fn rejects_revision(&self, answered: Revision) -> bool {
        self.pin.is_some_and(|pin| pin != answered && !(self.whole_era && pin.era() == answered.era()))
    }

    /// Returns the eras that a server supports, as far as the connection shows it.
    pub(crate) fn supported_eras(&self, description: &ServerDescription) -> SupportedEras {
        if let Some(session) = &self.resumed {
            return session.eras();
        }
        let wanted = match self.pin {
            Some(_) => EraPreference::Pinned,
            None => EraPreference::Preferred(self.prefers),
        };
        infer_supported_eras(wanted, description.revision.era(), description.lists_legacy)
    }

    /// Returns what authorizes requests to a server; a WebSocket is authorized by its handshake, a request over HTTP.
    pub(crate) fn authorizer(&self, url: &Url) -> Option<Arc<Authorizer>> {
        let has_own = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        match self.authorization.clone().filter(|_| !has_own)? {
            AuthorizationSource::Options(options) => {
                Some(Arc::new(Authorizer::new(*options, &Self::http_url(url), self.dialer.clone())))
            }
            AuthorizationSource::Shared(authorizer) => Some(authorizer),
        }
    }

    /// Returns the URL by which a server is known to authorization, which has no WebSocket schemes.
    pub(crate) fn http_url(url: &Url) -> Url {
        let full = url.to_full_string();
        let over_http = full.strip_prefix("ws").and_then(|rest| format!("http{rest}").parse().ok());
        over_http.unwrap_or_else(|| url.clone())
    }

    /// Returns the limits of a channel.
    pub(crate) fn channel_limits(&self) -> ChannelLimits {
        let ClientLimits { bounds, in_flight, queued_bytes, malformed_messages, .. } = self.limits;
        let message_memory = self.limits.message_memory.clone();
        ChannelLimits {
            bounds,
            in_flight,
            queued_bytes: queued_bytes.max(1),
            malformed_messages,
            message_memory,
        }
    }

    /// Returns the limits of responses over HTTP.
    pub(crate) fn http_limits(&self) -> HttpLimits {
        let ClientLimits { bounds, message_bytes, in_flight, malformed_messages, .. } = self.limits;
        let message_memory = self.limits.message_memory.clone();
        HttpLimits { bounds, message_bytes, in_flight, malformed_messages, message_memory }
    }

    /// Returns the headers of every request.
    ///
    /// # Errors
    /// One of them is invalid or reserved.
    pub(crate) fn custom_headers(&self) -> Result<CustomHeaders, Error> {
        let mut headers = CustomHeaders::default();
        for (name, value) in &self.headers {
            headers.add(name, value).map_err(Error::invalid_options)?;
        }
        Ok(headers)
    }
}

/// Refuses a transport that is authorized once for the requests of all callers.
///
/// # Errors
/// [`Error::InvalidOptions`] if each request is authorized with what the token of its caller is exchanged for.
fn refuse_token_exchange(authorizer: Option<&Arc<Authorizer>>) -> Result<(), Error> {
    match authorizer.is_some_and(|authorizer| authorizer.exchanges_tokens()) {
        true => Err(Error::InvalidOptions { cause: EXCHANGE_TRANSPORT.to_owned(), source: None }),
        false => Ok(()),
    }
}

/// Why a target cannot be connected to in an existing session.
const NOT_RESUMABLE: &str = "only a session of Streamable HTTP can be continued";

/// The request ids of one client, which are never reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestIds(Arc<AtomicU64>);

impl RequestIds {
    /// Starts at a random number, so that the ids differ from those of other clients of the same session. They stay
    /// below 2^53, which every JSON implementation reads exactly.
    pub(crate) fn random() -> Self {
        let random = RandomState::new().build_hasher().finish() >> 12;
        Self(Arc::new(AtomicU64::new(random | (1 << 32))))
    }

    pub(crate) fn next(&self) -> u64 {
        // Relaxed: the number only has to be unique.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A connection with a known era, ready for requests.
pub(crate) struct EstablishedConnection {
    pub(crate) transport: Arc<dyn ClientTransport>,
    pub(crate) edge: ProtocolEdge,
    pub(crate) description: ServerDescription,
    pub(crate) unsolicited: UnsolicitedReceiver,
    /// The name of the transport, for users.
    pub(crate) transport_name: &'static str,
}

/// A server's description of itself.
#[derive(Clone, Debug)]
pub(crate) struct ServerDescription {
    pub(crate) revision: Revision,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) identity: Option<Implementation>,
    pub(crate) instructions: Option<String>,
    /// Whether it listed legacy revisions in its response to `server/discover`.
    pub(crate) lists_legacy: bool,
}

impl fmt::Debug for EstablishedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EstablishedConnection")
            .field("description", &self.description)
            .field("transport", &self.transport_name)
            .finish_non_exhaustive()
    }
}

/// Connects to a target and detects its era.
pub(crate) async fn connect(
    target: Target,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    if plan.resumed.is_some() && !matches!(&target, Target::Url(url) if !url.scheme().is_websocket()) {
        return Err(Error::InvalidOptions { cause: NOT_RESUMABLE.to_owned(), source: None });
    }
    match target {
        Target::Channel(opener) => {
            channel::connect(&channel::ChannelSource::Opener(opener), plan, attempts).await
        }
        Target::Command(command) => {
            channel::connect(&channel::ChannelSource::Command(command), plan, attempts).await
        }
        Target::Url(url) if url.scheme().is_websocket() => {
            channel::connect(&channel::ChannelSource::WebSocket(url), plan, attempts).await
        }
        Target::Url(url) => http::connect(&url, plan, attempts).await,
        Target::Name { name, .. } => Err(Error::InvalidOptions {
            cause: format!(
                "`{name}` is neither an address nor a command line; if it is the name of a program, put `./` or its \
                 path before it; a name in a configuration is looked up with the feature `config`"
            ),
            source: None,
        }),
        Target::Invalid(error) => Err(Error::invalid_options(error)),
        other => Err(Error::Unsupported(format!("cannot connect to {other}"))),
    }
}

/// Opens a new session over a transport that had one before.
///
/// # Errors
/// The server does not open another session.
pub(crate) async fn initialize(
    transport: &dyn ClientTransport,
    plan: &ConnectPlan,
    revision: Revision,
) -> Result<(ProtocolEdge, ServerDescription), Error> {
    handshake::initialize(transport, plan, revision).await.map_err(|failure| match failure {
        handshake::HandshakeError::TimedOut(after) => Error::TimedOut { after },
        handshake::HandshakeError::Transport(failure) => failure.into(),
        handshake::HandshakeError::ErrorResponse(refused) => Error::ErrorResponse(refused),
        handshake::HandshakeError::InvalidVersion(problem) => Error::Malformed(problem),
    })
}

impl ConnectAttempts {
    /// Returns the error after all attempts failed.
    pub(crate) fn connect_error(&self, target: impl fmt::Display, cause: impl Into<FailureCause>) -> Error {
        let FailureCause { message, source } = cause.into();
        Error::Unreachable(Box::new(ConnectError {
            target: target.to_string(),
            attempts: self.as_slice().to_vec(),
            cause: message,
            source,
        }))
    }
}
