use std::fmt;
use std::time::Duration;

use trunkline_client::{Error, ServerInfo, SupportedEras};
use trunkline_config::{ServerLocation, ServerName};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{Implementation, ServerCapabilities};
use trunkline_protocol::{Era, Revision};

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpstreamHealth {
    /// It is not connected, because nobody has needed it yet or for a while.
    Pending,
    /// It is being connected to.
    Connecting,
    /// It is connected.
    Ready,
    /// It could not be connected to, or was lost; it is tried again when the time has come.
    Failed,
    /// It wants credentials that it does not get.
    NeedsAuth,
    /// It is switched off: it may be connected, but nothing of it is offered.
    Disabled,
    /// It was disconnected by hand, and stays so until it is connected by hand.
    Disconnected,
}

impl UpstreamHealth {
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

impl fmt::Display for UpstreamHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything that can be told of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// What it is called here.
    pub name: ServerName,
    /// How it stands.
    pub state: UpstreamHealth,
    /// Why it failed last, with the end of what its program said about it, if it has failed since it was last well.
    pub reason: Option<String>,
    /// How long it will be waited before it is tried again.
    pub retry_in: Option<Duration>,
    /// Whether nothing should be served without it.
    pub required: bool,
    /// The revision that is spoken with it.
    pub revision: Option<Revision>,
    /// What it calls itself.
    pub identity: Option<Implementation>,
    /// How it is reached, such as `stdio`.
    pub transport: Option<&'static str>,
    /// The tools that it listed last.
    pub tools: usize,
    /// The prompts that it listed last.
    pub prompts: usize,
    /// The resources that it listed last.
    pub resources: usize,
    /// What of its lists could not be taken, each with the reason.
    pub skipped: Vec<String>,
    /// What of its lists was malformed or too long, and is offered without that, each with the reason.
    pub repaired: Vec<String>,
    /// The connections, and so processes, that there are.
    pub connections: usize,
    /// The calls that run.
    pub calls: usize,
    /// The calls that wait for a connection which others use.
    pub waiting: usize,
    /// How often it was connected to.
    pub starts: u64,
}

/// What is known of a server from the last time that it was connected to.
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
    /// Reports whether the server can say that it has completions.
    pub(crate) fn declares_completions(&self) -> bool {
        Dialect::of(self.revision).completions_flag
    }

    /// Describes a server that was not connected to since the previous run, as far as its listings depend on it.
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

    pub(super) fn from_info(info: &ServerInfo) -> Self {
        Self {
            revision: info.revision,
            eras: info.eras,
            is_stateful: info.is_stateful(),
            identity: info.identity.clone(),
            instructions: info.instructions.clone(),
            capabilities: info.capabilities.clone(),
            transport: info.transport,
        }
    }
}

/// Why a server is not connected.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamFailure {
    pub(crate) kind: FailureKind,
    pub(crate) reason: String,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// It cannot be reached, or does not speak the protocol.
    Unreachable,
    /// It wants other credentials.
    NeedsAuth,
    /// It was connected, and is gone.
    Lost,
}

impl UpstreamFailure {
    pub(super) fn from_error(error: &Error, reach: &ServerLocation) -> Self {
        let kind = match error {
            Error::Unauthorized { .. } => FailureKind::NeedsAuth,
            _ => FailureKind::Unreachable,
        };
        let reason = match error {
            // What was dialled has the values of variables in it, which are secrets as likely as not.
            Error::Unreachable(unreachable) => format!("cannot connect to {reach}: {}", unreachable.cause),
            _ => error.to_string(),
        };
        Self { kind, reason }
    }

    /// Returns what callers may know: a program's own words, which come after the first line, may be about another caller.
    fn headline(&self) -> &str {
        headline(&self.reason)
    }

    pub(super) fn lost(how: String) -> Self {
        Self { kind: FailureKind::Lost, reason: how }
    }

    pub(super) fn panicked() -> Self {
        Self {
            kind: FailureKind::Unreachable,
            reason: "an error within the hub broke off the attempt".to_owned(),
        }
    }

    pub(super) fn health(&self) -> UpstreamHealth {
        match self.kind {
            FailureKind::NeedsAuth => UpstreamHealth::NeedsAuth,
            FailureKind::Unreachable | FailureKind::Lost => UpstreamHealth::Failed,
        }
    }
}

/// Returns the first line of what went wrong.
pub(crate) fn headline(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

/// Why there is no connection for a call.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamUnavailable {
    /// The last attempt failed, and it is not time for another within what the call may wait.
    Failed(UpstreamFailure, Duration),
    /// Every connection that there may be is in use.
    Full(usize),
    /// Each of these connections is in use by a call that may be asked something, beside which another must not be.
    AllInUse(usize),
    /// The server is switched off.
    Disabled,
    /// The server was disconnected by hand.
    Disconnected,
    /// The server is not configured any more.
    Removed,
}

impl UpstreamUnavailable {
    /// Says it to a caller.
    pub(crate) fn headline(&self) -> String {
        match self {
            Self::Failed(failure, wait) => {
                let failure = UpstreamFailure { kind: failure.kind, reason: failure.headline().to_owned() };
                Self::Failed(failure, *wait).to_string()
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
