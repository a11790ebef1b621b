/// The reason why a DPoP proof is refused.
///
/// The text of each can be sent as `error_description`, and contains no part of the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// There is no header `DPoP`.
    #[error("the request has no DPoP proof")]
    Missing,
    /// There is more than one `DPoP` header.
    #[error("the request has more than one DPoP proof")]
    Multiple,
    /// The proof is not a JWS in compact form with JSON claims.
    #[error("the DPoP proof is malformed")]
    Malformed,
    /// `typ` is not `dpop+jwt`.
    #[error("the type of the DPoP proof is not dpop+jwt")]
    Type,
    /// The signature algorithm is not allowed.
    #[error("the signature algorithm of the DPoP proof is not allowed")]
    Algorithm,
    /// `jwk` is missing, private, or not supported.
    #[error("the DPoP proof has no supported public key")]
    Key,
    /// The signature is wrong.
    #[error("the signature of the DPoP proof is wrong")]
    Signature,
    /// A claim is missing or has the wrong type.
    #[error("the DPoP proof has no valid claim {0}")]
    Claim(&'static str),
    /// `htm` is another method.
    #[error("the DPoP proof is for another method")]
    Method,
    /// `htu` is another URI.
    #[error("the DPoP proof is for another URI")]
    Uri,
    /// `iat` is outside of the window.
    #[error("the DPoP proof is too old or from the future")]
    Time,
    /// `ath` is the digest of another token.
    #[error("the DPoP proof is for another access token")]
    TokenHash,
    /// The token is bound to another key.
    #[error("the access token is bound to another key")]
    KeyMismatch,
    /// A nonce is required, and the proof has none, an old one, or one of another server.
    #[error("the DPoP proof needs a nonce of this server")]
    Nonce,
    /// The proof was used before.
    #[error("the DPoP proof was used before")]
    Replayed,
    /// A bound token was sent with the scheme `Bearer`.
    #[error("the access token is bound to a key and needs the scheme DPoP")]
    BoundToken,
    /// A token without `cnf.jkt` was sent with the scheme `DPoP`.
    #[error("the access token is not bound to a key")]
    UnboundToken,
}

impl ProofError {
    /// Returns the error code for the challenge
    /// ([RFC 9449 §7.1](https://www.rfc-editor.org/rfc/rfc9449#section-7.1)).
    pub fn code(self) -> &'static str {
        match self {
            Self::Nonce => "use_dpop_nonce",
            Self::BoundToken | Self::UnboundToken | Self::KeyMismatch => "invalid_token",
            _ => "invalid_dpop_proof",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_errors_are_valid_error_descriptions() {
        for (error, code) in [
            (ProofError::Missing, "invalid_dpop_proof"),
            (ProofError::Multiple, "invalid_dpop_proof"),
            (ProofError::Malformed, "invalid_dpop_proof"),
            (ProofError::Type, "invalid_dpop_proof"),
            (ProofError::Algorithm, "invalid_dpop_proof"),
            (ProofError::Key, "invalid_dpop_proof"),
            (ProofError::Signature, "invalid_dpop_proof"),
            (ProofError::Claim("iat"), "invalid_dpop_proof"),
            (ProofError::Method, "invalid_dpop_proof"),
            (ProofError::Uri, "invalid_dpop_proof"),
            (ProofError::Time, "invalid_dpop_proof"),
            (ProofError::TokenHash, "invalid_dpop_proof"),
            (ProofError::KeyMismatch, "invalid_token"),
            (ProofError::Nonce, "use_dpop_nonce"),
            (ProofError::Replayed, "invalid_dpop_proof"),
            (ProofError::BoundToken, "invalid_token"),
            (ProofError::UnboundToken, "invalid_token"),
        ] {
            let text = error.to_string();
            assert!(
                text.bytes().all(|byte| matches!(byte, 0x20..=0x21 | 0x23..=0x5B | 0x5D..=0x7E)),
                "{text}"
            );
            assert_eq!(error.code(), code);
        }
    }
}
