use std::fmt;
use std::time::Duration;

use tokio::time::Instant;
use trunkline_auth::authorizer::AuthorizationError;
use trunkline_client::{Error, ServerInfo, SupportedEras};
use trunkline_config::{ServerLocation, ServerName};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Implementation, ServerCapabilities};
use trunkline_protocol::{Era, Revision, shorten};
use trunkline_server::UpstreamItem;

use super::Upstream;
use super::bounded_text::bounded_reason;
use super::caller_profile::PoolKey;
use super::lifecycle::ConnectBlock;
use crate::registry::MAX_INSTRUCTIONS_CHARS;

/// The connection state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpstreamConnectionState {
    /// It is not connected, because it was not needed yet or was idle.
    Pending,
    /// A connection is being opened.
    Connecting,
    /// It is connected.
    Ready,
    /// It could not be connected, or the connection was lost; it is retried with backoff.
    Failed,
    /// It requires credentials that it does not get.
    NeedsAuth,
    /// It is disabled: it may be connected, but its items are not exposed.
    Disabled,
    /// It was disconnected manually, and stays so until it is connected manually.
    Disconnected,
}

impl UpstreamConnectionState {
    /// Returns the state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
            Self::Disconnected => "disconnected",
        }
    }
}

impl fmt::Display for UpstreamConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The status of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Its name in the configuration.
    pub name: ServerName,
    /// Its connection state.
    pub state: UpstreamConnectionState,
    /// The last failure, with the end of its program's stderr, if it has failed since it was last healthy.
    pub reason: Option<String>,
    /// The remaining backoff before the next attempt.
    pub retry_in: Option<Duration>,
    /// Whether the hub is ready only while it is connected.
    pub required: bool,
    /// The negotiated revision.
    pub revision: Option<Revision>,
    /// Its implementation name and version.
    pub identity: Option<Implementation>,
    /// What it declared to support, once it was connected in this run.
    pub capabilities: Option<ServerCapabilities>,
    /// The transport, such as `stdio`.
    pub transport: Option<&'static str>,
    /// The number of tools in its last listing.
    pub tools: usize,
    /// The number of prompts in its last listing.
    pub prompts: usize,
    /// The number of resources in its last listing.
    pub resources: usize,
    /// Items of its lists that were rejected, each with the reason.
    pub skipped: Vec<String>,
    /// Items of its lists that were repaired or truncated, each with the reason.
    pub repaired: Vec<String>,
    /// The open connections, and so processes.
    pub connections: usize,
    /// The running calls.
    pub calls: usize,
    /// The calls that wait for a connection.
    pub waiting: usize,
    /// How often it was connected.
    pub starts: u64,
}

/// What is known of a server since it was last connected.
#[derive(Clone, Debug)]
pub(crate) struct KnownServer {
    pub(crate) revision: Revision,
    pub(super) eras: SupportedEras,
    pub(crate) is_stateful: bool,
    pub(crate) identity: Option<Implementation>,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: ServerCapabilities,
    /// Empty where it is not known yet.
    pub(super) transport: &'static str,
}

impl KnownServer {
    /// Reports whether the server's revision has a completions capability.
    pub(crate) fn declares_completions(&self) -> bool {
        Dialect::of(self.revision).completions_flag
    }

    /// Restores a server that was not connected since the previous run, as far as its listings depend on it.
    pub(super) fn restored(revision: Revision, keeps_sessions: bool, instructions: Option<String>) -> Self {
        Self {
            revision,
            eras: SupportedEras::default(),
            is_stateful: keeps_sessions,
            identity: None,
            instructions,
            capabilities: ServerCapabilities::default(),
            transport: "",
        }
    }

    pub(super) fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns what a connection with a key shows of the server. The description of itself that the server sends to a caller
    /// with variables may be about that caller, so that the one before is kept.
    pub(super) fn from_connection(info: &ServerInfo, key: &PoolKey, before: Option<&Self>) -> Self {
        let known = Self::from_info(info);
        if key.variables.is_empty() {
            return known;
        }
        let experimental = before.and_then(|before| before.capabilities.experimental.clone());
        Self {
            identity: before.and_then(|before| before.identity.clone()),
            instructions: before.and_then(|before| before.instructions.clone()),
            capabilities: ServerCapabilities { experimental, ..known.capabilities },
            ..known
        }
    }

    pub(super) fn from_info(info: &ServerInfo) -> Self {
        Self {
            revision: info.revision,
            eras: info.eras,
            is_stateful: info.is_stateful(),
            identity: info.identity.as_ref().map(short_identity),
            instructions: info.instructions.as_deref().map(short_instructions),
            capabilities: info.capabilities.clone(),
            transport: info.transport,
        }
    }
}

/// Returns the name and version of a server, of which it is free to send megabytes.
fn short_identity(identity: &Implementation) -> Implementation {
    let [name, version] = [&identity.name, &identity.version].map(|text| {
        let short = shorten(text);
        UpstreamItem::Truncated.count(usize::from(short != *text));
        short
    });
    Implementation::new(name, version)
}

/// Cuts the instructions of a server.
fn short_instructions(text: &str) -> String {
    match text.char_indices().nth(MAX_INSTRUCTIONS_CHARS).and_then(|(end, _)| text.get(..end)) {
        Some(start) => {
            UpstreamItem::Truncated.count(1);
            start.to_owned()
        }
        None => text.to_owned(),
    }
}

/// Why a server is not connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamFailure {
    pub(crate) kind: FailureKind,
    pub(crate) reason: String,
    /// What callers may learn of it, if there is more than the kind.
    pub(crate) for_callers: Option<String>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// It cannot be reached, or violates the protocol.
    Unreachable,
    /// It requires other credentials.
    NeedsAuth,
    /// The connection was lost.
    Lost,
}

impl UpstreamFailure {
    pub(super) fn from_error(error: &Error, reach: &ServerLocation) -> Self {
        let kind = if demands_auth(error) { FailureKind::NeedsAuth } else { FailureKind::Unreachable };
        let reason = match error {
            // The resolved address contains the values of variables, which are often secrets; `reach` does not.
            Error::Authorization(error) if error.needs_login() => {
                "a user has to log in: call its tool `login`; at a hub without users, `trunkline login` does the same".to_owned()
            }
            Error::Unreachable(unreachable) => format!("cannot connect to {reach}: {}", unreachable.cause),
            _ => error.to_string(),
        };
        let for_callers = match error {
            Error::Authorization(error) => exchange_problem(error),
            _ => None,
        };
        Self { kind, reason: bounded_reason(reason), for_callers }
    }

    /// Returns the part that callers may see: the program's own output, after the first line, may be about another
    /// caller.
    fn headline(&self) -> &str {
        headline(&self.reason)
    }

    pub(super) fn lost(how: String) -> Self {
        Self { kind: FailureKind::Lost, reason: bounded_reason(how), for_callers: None }
    }

    pub(super) fn panicked() -> Self {
        Self {
            kind: FailureKind::Unreachable,
            reason: "an error within the hub broke off the attempt".to_owned(),
            for_callers: None,
        }
    }
}

/// Reports whether a request fails until there is another token.
pub(super) fn demands_auth(error: &Error) -> bool {
    match error {
        Error::Authorization(error) => is_permanent(error),
        Error::Unauthorized { status, challenge } => requires_auth(*status, challenge.as_deref()),
        _ => false,
    }
}

/// Reports whether an authorization fails until a user or the operator does something about it. Otherwise the
/// authorization server may be unreachable, or a credential be missing for the moment.
fn is_permanent(error: &AuthorizationError) -> bool {
    error.needs_login()
        || error.oauth_error().is_some()
        || matches!(error, AuthorizationError::NoSubjectToken | AuthorizationError::SubjectTokenExpired)
        || matches!(error, AuthorizationError::Refused { .. })
}

/// Returns what a caller learns of a failed token exchange: the OAuth error, but no address behind the hub.
pub(crate) fn exchange_problem(error: &AuthorizationError) -> Option<String> {
    match error {
        AuthorizationError::NoSubjectToken => Some(
            "it is reached with the access token of the caller, and this call came without one".to_owned(),
        ),
        AuthorizationError::SubjectTokenExpired => {
            Some("the access token of the caller has expired; repeat the call with a new one".to_owned())
        }
        AuthorizationError::Exchange { .. } => Some(match error.oauth_error() {
            Some(error) => format!(
                "the authorization server refused to exchange the access token of the caller: {}",
                error.code()
            ),
            None => "the access token of the caller could not be exchanged; try again later".to_owned(),
        }),
        _ => None,
    }
}

/// Reports whether a response requires a token, or one with more scopes
/// ([RFC 6750, section 3](https://www.rfc-editor.org/rfc/rfc6750#section-3)). Any other 403 may be temporary, such as
/// that of a firewall.
pub(super) fn requires_auth(status: u16, challenge: Option<&str>) -> bool {
    let lacks_scope = || {
        let challenge = challenge.unwrap_or_default();
        challenge.contains("error=\"insufficient_scope\"") || challenge.contains("error=insufficient_scope")
    };
    status == 401 || (status == 403 && lacks_scope())
}

/// Returns the first line of a reason.
pub(crate) fn headline(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

/// Why there is no connection for a call.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamUnavailable {
    /// The last attempt failed, and the backoff is longer than the call may wait.
    Failed(UpstreamFailure, Duration),
    /// The server rejected the credentials, and is not retried until they may have changed.
    NeedsAuth(UpstreamFailure),
    /// The connection limit is reached, and all connections are in use.
    Full(usize),
    /// Each of these connections is in use by a call that may require input, beside which another must not run.
    AllInUse(usize),
    /// The server is disabled.
    Disabled,
    /// The server was disconnected manually.
    Disconnected,
    /// The server is not configured any more.
    Removed,
}

impl UpstreamUnavailable {
    /// Reports whether a login or another credential would help.
    pub(crate) fn is_auth(&self) -> bool {
        match self {
            Self::NeedsAuth(_) => true,
            Self::Failed(failure, _) => failure.kind == FailureKind::NeedsAuth,
            _ => false,
        }
    }

    /// Returns the message for a caller.
    pub(crate) fn headline(&self) -> String {
        match self {
            Self::Failed(failure, wait) => {
                let failure = UpstreamFailure { reason: failure.headline().to_owned(), ..failure.clone() };
                Self::Failed(failure, *wait).to_string()
            }
            // The challenge of the server is for the hub: a client would fetch a token for the wrong resource.
            Self::NeedsAuth(failure) => {
                failure.for_callers.clone().unwrap_or_else(|| "it requires authorization".to_owned())
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for UpstreamUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure, wait) if wait.is_zero() => f.write_str(&failure.reason),
            Self::Failed(failure, wait) => {
                write!(f, "{} (next attempt in {:.1} s)", failure.reason, wait.as_secs_f64())
            }
            Self::NeedsAuth(failure) => write!(f, "it requires authorization: {}", failure.reason),
            Self::Full(most) => write!(f, "all of its {most} connections are in use"),
            Self::AllInUse(count) => write!(
                f,
                "other calls that may ask the user something are in progress on all of its connections ({count}); try again later"
            ),
            Self::Disabled => f.write_str("it is disabled"),
            Self::Disconnected => f.write_str("it was disconnected manually"),
            Self::Removed => f.write_str("it is no longer configured"),
        }
    }
}

impl Upstream {
    /// Returns the status of the server.
    pub(crate) fn status(&self) -> UpstreamStatus {
        let (state, now) = (self.lock(), Instant::now());
        let listing = state.listings.union().unwrap_or_default();
        let known = state.known_server.as_deref();
        UpstreamStatus {
            name: self.name.clone(),
            state: state.connection_state(),
            reason: match state.lifecycle().failure() {
                Some(failure) => Some(failure.reason.clone()),
                None => self.last_call_error.load().as_deref().cloned(),
            },
            retry_in: match state.lifecycle().connect_block(now) {
                Some(ConnectBlock::RetryIn(wait, _)) => Some(wait),
                Some(ConnectBlock::NeedsAuth(_)) | None => None,
            },
            required: self.config.load().required,
            revision: known.map(|known| known.revision),
            identity: known.and_then(|known| known.identity.clone()),
            capabilities: known
                .filter(|known| !known.transport.is_empty())
                .map(|known| known.capabilities.clone()),
            transport: known.map(|known| known.transport).filter(|transport| !transport.is_empty()),
            tools: listing.tools.len(),
            prompts: listing.prompts.len(),
            resources: listing.resources.len(),
            skipped: listing.skipped.to_vec(),
            repaired: listing.repaired.to_vec(),
            connections: state.connections.len(),
            calls: state.connections.iter().map(|connection| connection.call_count()).sum(),
            waiting: self.wait_list.len(),
            starts: state.starts,
        }
    }
}
