use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

pub use trunkline_auth::ErrorSource;
use trunkline_auth::authorizer::AuthorizationError;
use trunkline_protocol::{Era, RawJson, Refusal};
use trunkline_transport::http::RequestDelivery;

use crate::client_transport::{FailureCause, TransportFailure, TransportFailureKind};
use crate::connect::ConnectAttempt;

/// The characters of a server's error message that are shown; programs get all of them.
const MAX_SHOWN_CHARACTERS: usize = 2048;

/// The errors of a client, by kinds that a program can act on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server was never reached, or does not support the protocol.
    #[error(transparent)]
    Unreachable(Box<ConnectError>),
    /// The server requires other credentials.
    #[error("the server refuses access (HTTP {status}){}", hint(.challenge.as_deref()))]
    Unauthorized {
        /// The HTTP status, 401 or 403.
        status: u16,
        /// The server's `WWW-Authenticate` header.
        challenge: Option<String>,
    },
    /// The server requires authorization, and the client's [`AuthorizationOptions`] could not provide it.
    ///
    /// [`AuthorizationOptions`]: trunkline_auth::authorizer::AuthorizationOptions
    #[error(transparent)]
    Authorization(AuthorizationError),
    /// The server responded with a JSON-RPC error.
    #[error(transparent)]
    ErrorResponse(ErrorResponse),
    /// The request timeout or the total timeout expired; the request was cancelled.
    #[error("no answer within {after:?}")]
    TimedOut {
        /// The time that was waited.
        after: Duration,
    },
    /// The server requested input, and the input was declined.
    #[error("input was requested and declined: {0}")]
    InputDeclined(Refusal),
    /// The connection is closed.
    #[error("{cause}")]
    Closed {
        /// What happened.
        cause: String,
        /// Whether the server may have run the request.
        delivery: RequestDelivery,
        /// The error of the connection, if that is the cause.
        source: Option<ErrorSource>,
    },
    /// The server responded with an HTTP error status.
    #[error("the server answered with HTTP {status}{}", hint(Some(.excerpt)))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
        /// Whether the server may have run the request.
        delivery: RequestDelivery,
    },
    /// The server sent a message above the limit, [`ClientLimits::message_bytes`](crate::ClientLimits::message_bytes).
    #[error("the server sent a message of more than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The server violated the protocol, or its own output schema.
    #[error("invalid response from the server: {0}")]
    Malformed(String),
    /// The server, or its protocol revision, does not support this.
    #[error("{0}")]
    Unsupported(String),
    /// The request is invalid, and was not sent.
    #[error("{0}")]
    Invalid(String),
    /// The target or an option of the client is invalid; nothing was connected.
    #[error("{cause}")]
    InvalidOptions {
        /// What is invalid.
        cause: String,
        /// The error that the cause comes from, if there is one.
        source: Option<ErrorSource>,
    },
}

/// A failed connection, with every attempt.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot connect to {target}: {cause}")]
#[non_exhaustive]
pub struct ConnectError {
    /// The target.
    pub target: String,
    /// The attempts, in order.
    pub attempts: Vec<ConnectAttempt>,
    /// The cause of the failure.
    pub cause: String,
    /// The error that the cause comes from, if there is one.
    pub source: Option<ErrorSource>,
}

/// A JSON-RPC error of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The additional data.
    pub data: Option<RawJson>,
}

impl Error {
    pub(crate) fn invalid_options(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::InvalidOptions { cause: error.to_string(), source: Some(error.into()) }
    }

    /// Reports whether the server may have run the request, although there is no response.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::TooLong { .. } | Self::Malformed(_) => true,
            Self::Closed { delivery, .. } | Self::Status { delivery, .. } => {
                *delivery == RequestDelivery::MaybeSent
            }
            _ => false,
        }
    }
}

impl From<TransportFailure> for Error {
    fn from(failure: TransportFailure) -> Self {
        let delivery = failure.delivery;
        match failure.kind {
            TransportFailureKind::Closed(FailureCause { message, source }) => {
                Self::Closed { cause: message, delivery, source }
            }
            TransportFailureKind::SessionGone => Self::Closed {
                cause: "the server does not know the session any more".to_owned(),
                delivery,
                source: None,
            },
            TransportFailureKind::Unauthorized { status, challenge } => {
                Self::Unauthorized { status, challenge }
            }
            TransportFailureKind::Authorization(error) => Self::Authorization(error),
            TransportFailureKind::Status { status, excerpt } => Self::Status { status, excerpt, delivery },
            TransportFailureKind::TimedOut { after } => Self::TimedOut { after },
            TransportFailureKind::TooLong { limit } => Self::TooLong { limit },
            TransportFailureKind::Malformed(problem) => Self::Malformed(problem),
        }
    }
}

impl ErrorResponse {
    /// Parses the error of a response. A malformed error is still an error.
    pub fn from_raw(raw: &RawJson) -> Self {
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

    /// Returns the message for logs and people: a server is free to send megabytes.
    pub(crate) fn shown_message(&self) -> Cow<'_, str> {
        let end = self.message.char_indices().nth(MAX_SHOWN_CHARACTERS).map(|(end, _)| end);
        match end.and_then(|end| self.message.get(..end)) {
            Some(start) => format!("{start}…").into(),
            None => self.message.as_str().into(),
        }
    }

    /// Converts the error to a refusal, to relay it to another peer.
    pub fn into_refusal(self) -> Refusal {
        Refusal::relayed(self.code, self.message, self.data)
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server refused: {} ({})", self.shown_message(), self.code)
    }
}

impl std::error::Error for ErrorResponse {}

fn hint(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map_or_else(String::new, |text| format!(": {text}"))
}
