use super::ProofError;
use crate::access_token::AccessTokenClaims;

/// The scheme of an `Authorization` header with an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationScheme {
    /// `Bearer` ([RFC 6750](https://www.rfc-editor.org/rfc/rfc6750)).
    Bearer,
    /// `DPoP`.
    Dpop,
}

/// The token that a proof must be for, and the key that it is bound to.
#[derive(Clone, Copy)]
pub struct TokenBinding<'a> {
    /// The access token, as it was sent.
    pub access_token: &'a str,
    /// The thumbprint of its `cnf.jkt`.
    pub key_thumbprint: &'a str,
}

impl std::fmt::Debug for TokenBinding<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenBinding").field("key_thumbprint", &self.key_thumbprint).finish_non_exhaustive()
    }
}

/// Returns the binding that a proof must match, or `None` for a bearer token, which needs no proof.
///
/// # Errors
/// A bound token came with the scheme `Bearer`, which would make it usable without its key
/// ([RFC 9449 §7.2](https://www.rfc-editor.org/rfc/rfc9449#section-7.2)), or an unbound one with `DPoP`.
pub fn require_binding<'a>(
    scheme: AuthorizationScheme,
    access_token: &'a str,
    claims: &'a AccessTokenClaims,
) -> Result<Option<TokenBinding<'a>>, ProofError> {
    match (scheme, claims.key_thumbprint.as_deref()) {
        (AuthorizationScheme::Bearer, None) => Ok(None),
        (AuthorizationScheme::Bearer, Some(_)) => Err(ProofError::BoundToken),
        (AuthorizationScheme::Dpop, None) => Err(ProofError::UnboundToken),
        (AuthorizationScheme::Dpop, Some(key_thumbprint)) => {
            Ok(Some(TokenBinding { access_token, key_thumbprint }))
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_session::Timestamp;

    use super::*;
    use crate::access_token::{TokenRules, read_introspection};

    #[test]
    fn bound_tokens_need_the_dpop_scheme() {
        use AuthorizationScheme::{Bearer, Dpop};
        for (cnf, scheme, expected) in [
            ("", Bearer, Ok(None)),
            (r#","cnf":{"jkt":"k"}"#, Bearer, Err(ProofError::BoundToken)),
            ("", Dpop, Err(ProofError::UnboundToken)),
            (r#","cnf":{"jkt":"k"}"#, Dpop, Ok(Some("k"))),
        ] {
            let body = format!(r#"{{"active":true,"sub":"ann","aud":"r"{cnf}}}"#);
            let claims =
                read_introspection(body.as_bytes(), &TokenRules::new("i", ["r"]), Timestamp(0)).unwrap();
            let binding = require_binding(scheme, "sentinel", &claims);
            assert!(!format!("{binding:?}").contains("sentinel"));
            assert_eq!(binding.map(|binding| binding.map(|binding| binding.key_thumbprint)), expected);
        }
    }
}
