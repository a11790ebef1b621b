use trunkline_auth::issuer::TrustedIssuerError;

use crate::http::ProtectedResourceError;

/// Why a resource server cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceServerError {
    /// The public URL is not that of an endpoint.
    #[error(transparent)]
    Resource(#[from] ProtectedResourceError),
    /// An issuer is not described as it must be.
    #[error(transparent)]
    Issuer(#[from] TrustedIssuerError),
    /// An issuer is named twice.
    #[error("the issuer `{0}` is listed twice")]
    DuplicateIssuer(String),
    /// Two issuers introspect tokens: each would see the tokens of the other.
    #[error(
        "`{first}` and `{second}` both use introspection, and each would receive the tokens of the other"
    )]
    SeveralIntrospections {
        /// The first issuer.
        first: String,
        /// The second issuer.
        second: String,
    },
    /// There is neither an issuer nor a static token, so every request would be refused.
    #[error("there is neither an issuer nor a static token")]
    NoCredentials,
    /// The system has no random numbers for DPoP nonces.
    #[error("no random numbers for DPoP nonces")]
    NoRandom,
}
