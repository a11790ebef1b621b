use std::time::Duration;

use crate::access_token::TokenError;
use crate::fetch::FetchError;
use crate::jose::JwkSetError;
use crate::server_metadata::MetadataError;

/// Why a token of an issuer is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// The token is refused.
    #[error(transparent)]
    Refused(#[from] TokenError),
    /// The token cannot be checked now, since the issuer does not answer.
    #[error("the issuer does not answer; retry after {retry_after:?}")]
    Unavailable {
        /// When the next attempt makes sense.
        retry_after: Duration,
    },
}

/// Why a document of an issuer cannot be used. It is logged, and never sent to a client.
#[derive(Debug, thiserror::Error)]
pub(super) enum IssuerDocumentError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("`{url}` answered with status {status}")]
    Status { url: String, status: u16 },
    #[error("`{url}`: {source}")]
    Metadata { url: String, source: MetadataError },
    #[error("`{url}`: {source}")]
    Keys { url: String, source: JwkSetError },
    #[error("the last fetch of the metadata failed, and the next one is not due yet")]
    Waiting,
    #[error("the metadata of the issuer have no `{0}`")]
    Missing(&'static str),
    #[error("the request cannot be built: {0}")]
    Request(#[from] http::Error),
    #[error("`{url}` did not answer with an introspection response")]
    Introspection { url: String },
}
