/// The reason why an access token is refused.
///
/// The text of each can be sent as `error_description` of `invalid_token`
/// ([RFC 6750 §3.1](https://www.rfc-editor.org/rfc/rfc6750#section-3.1)): it is fixed, and holds nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is not a JWS in compact form with JSON claims.
    #[error("the access token is malformed")]
    Malformed,
    /// The signature algorithm is not allowed.
    #[error("the signature algorithm of the access token is not allowed")]
    Algorithm,
    /// The issuer is not configured.
    #[error("the issuer of the access token is not trusted here")]
    Issuer,
    /// The token is of another type, such as an ID token.
    #[error("the token is not an access token")]
    Type,
    /// No known key of the issuer can have signed the token. Newer keys may.
    #[error("the access token is signed with an unknown key")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the access token is wrong")]
    Signature,
    /// The token has expired.
    #[error("the access token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the access token is not valid yet")]
    NotYetValid,
    /// The token is for another resource.
    #[error("the access token is for another audience")]
    Audience,
    /// A claim is missing or has the wrong type.
    #[error("the access token has no valid claim {0}")]
    Claim(&'static str),
    /// The token is bound to its sender by a method that is not supported.
    #[error("the access token is bound by a method that is not supported")]
    Confirmation,
    /// The authorization server reports that the token is not active.
    #[error("the access token is not active")]
    Inactive,
    /// The answer of the introspection endpoint cannot be read.
    #[error("the access token could not be checked")]
    Introspection,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_errors_are_valid_error_descriptions() {
        for error in [
            TokenError::Malformed,
            TokenError::Algorithm,
            TokenError::Issuer,
            TokenError::Type,
            TokenError::UnknownKey,
            TokenError::Signature,
            TokenError::Expired,
            TokenError::NotYetValid,
            TokenError::Audience,
            TokenError::Claim("exp"),
            TokenError::Confirmation,
            TokenError::Inactive,
            TokenError::Introspection,
        ] {
            let text = error.to_string();
            // RFC 6750 §3: printable ASCII without `"` and `\`.
            assert!(
                text.bytes().all(|byte| matches!(byte, 0x20..=0x21 | 0x23..=0x5B | 0x5D..=0x7E)),
                "{text}"
            );
        }
    }
}
