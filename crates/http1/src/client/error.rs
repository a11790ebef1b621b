use std::error::Error;
use std::io;

const CUT_SHORT: &str = "was closed before the response was complete";

/// How far a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestDelivery {
    /// The server certainly did not act on it, since no byte of it was written or the server rejected it; it may be sent
    /// again.
    NotSent,
    /// The server may have received it, and may have acted on it.
    MaybeSent,
}

/// Why there is no response, or no more of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError<E: Error> {
    /// The server could not be reached.
    #[error(transparent)]
    Dial(#[from] E),
    /// The connection is gone.
    #[error("the connection {how}")]
    Lost {
        /// What happened to it.
        how: String,
        /// How far the request got.
        delivery: RequestDelivery,
        /// The error of the connection.
        source: io::Error,
    },
    /// The response is not HTTP/1.1, or exceeds a limit on heads.
    #[error("the server answered with something that is not HTTP: {0}")]
    Malformed(String),
    /// The body of the response is longer than the limit.
    #[error("the response is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

impl<E: Error> HttpError<E> {
    /// Returns how far the request got.
    pub fn delivery(&self) -> RequestDelivery {
        match self {
            Self::Dial(_) => RequestDelivery::NotSent,
            Self::Lost { delivery, .. } => *delivery,
            Self::Malformed(_) | Self::TooLong { .. } => RequestDelivery::MaybeSent,
        }
    }

    /// Describes what happened to a connection.
    pub(super) fn broken(error: io::Error, delivery: RequestDelivery) -> Self {
        let how = match error.kind() {
            io::ErrorKind::UnexpectedEof => CUT_SHORT.to_owned(),
            _ => format!("broke: {error}"),
        };
        Self::Lost { how, delivery, source: error }
    }
}
