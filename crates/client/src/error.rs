use std::fmt;
use std::time::Duration;

use trunkline_protocol::{Era, RawJson, Refusal};

use crate::client_transport::{DeliveryStatus, TransportFailure, TransportFailureKind};
use crate::connect::ConnectAttempt;

/// Why something could not be done, in kinds that a program can act on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server was never reached, or does not speak the protocol.
    #[error(transparent)]
    Unreachable(Box<ConnectError>),
    /// The server wants credentials, or better ones.
    #[error("the server refuses access (HTTP {status}){}", hint(.challenge.as_deref()))]
    Unauthorized {
        /// The HTTP status, 401 or 403.
        status: u16,
        /// What the server says about the credentials that it wants, its `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server answered with an error.
    #[error(transparent)]
    ErrorResponse(ErrorResponse),
    /// The server was silent for too long, or took too long in all; it was told that nobody waits any more.
    #[error("no answer within {after:?}")]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The server asked something that nobody answered.
    #[error("the server asked something that was not answered: {0}")]
    InputDeclined(Refusal),
    /// The connection is gone.
    #[error("{cause}")]
    Closed {
        /// What happened.
        cause: String,
        /// Whether the server may have done what it was asked to.
        may_have_run: bool,
    },
    /// The server answered with an HTTP status that is no answer.
    #[error("the server answered with HTTP {status}{}", hint(Some(.excerpt)))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
        /// Whether the server may have done what it was asked to.
        may_have_run: bool,
    },
    /// The server sent a message above the limit, [`ClientLimits::message_bytes`](crate::ClientLimits::message_bytes).
    #[error("the server sent a message of more than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// What the server sent is not what the protocol, or its own schema, promises.
    #[error("the server's answer makes no sense: {0}")]
    Malformed(String),
    /// The server, or the revision that it speaks, does not have this.
    #[error("{0}")]
    Unsupported(String),
    /// What the program asked for makes no sense, and was not sent.
    #[error("{0}")]
    Invalid(String),
}

/// A server that was never reached, with everything that was tried.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectError {
    /// What was to be reached.
    pub target: String,
    /// What was tried, in order.
    pub attempts: Vec<ConnectAttempt>,
    /// Why it failed in the end.
    pub cause: String,
}

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The code.
    pub code: i64,
    /// The sentence.
    pub message: String,
    /// What else the server says about it.
    pub data: Option<RawJson>,
}

impl Error {
    /// Reports whether the server may have done what it was asked to, although there is no answer.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::TooLong { .. } | Self::Malformed(_) => true,
            Self::Closed { may_have_run, .. } | Self::Status { may_have_run, .. } => *may_have_run,
            _ => false,
        }
    }
}

impl From<TransportFailure> for Error {
    fn from(loss: TransportFailure) -> Self {
        let may_have_run = loss.delivery == DeliveryStatus::MaybeDelivered;
        match loss.kind {
            TransportFailureKind::Closed(cause) => Self::Closed { cause, may_have_run },
            TransportFailureKind::SessionGone => Self::Closed {
                cause: "the server does not know the session any more".to_owned(),
                may_have_run,
            },
            TransportFailureKind::Unauthorized { status, challenge } => {
                Self::Unauthorized { status, challenge }
            }
            TransportFailureKind::Status { status, excerpt } => {
                Self::Status { status, excerpt, may_have_run }
            }
            TransportFailureKind::TooLong { limit } => Self::TooLong { limit },
            TransportFailureKind::Malformed(problem) => Self::Malformed(problem),
        }
    }
}

impl ErrorResponse {
    /// Reads the error of a response. A server that writes it badly has still refused.
    pub(crate) fn from_raw(raw: &RawJson) -> Self {
        let members = raw.members().unwrap_or_default();
        let code = members.get("code").and_then(|code| code.get::<i64>().ok());
        let code = code.unwrap_or_else(|| Refusal::INTERNAL.code(Era::Modern));
        let message = members.text("message");
        let message = message.map_or_else(|| "the server gave no reason".to_owned(), Into::into);
        Self {
            code,
            message,
            data: members
                .get("data")
                .and_then(RawJson::without_lone_surrogates)
                .map(|data| data.to_owned_buffer()),
        }
    }

    /// Carries the error on to another party.
    pub fn into_refusal(self) -> Refusal {
        Refusal::relayed(self.code, self.message, self.data)
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server refused: {} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorResponse {}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {}: {}", self.target, self.cause)
    }
}

impl std::error::Error for ConnectError {}

fn hint(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(String::new, |text| format!(": {text}"))
}
