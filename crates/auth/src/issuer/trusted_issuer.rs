use crate::access_token::{IntrospectionCredentials, TokenRules};
use crate::fetch::{FetchError, allowed_url};

/// An issuer that a resource server trusts, and how its tokens are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustedIssuer {
    /// What its tokens must have.
    pub rules: TokenRules,
    /// How they are checked.
    pub check: TokenCheck,
}

/// How the tokens of an issuer are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenCheck {
    /// By their signature ([RFC 9068](https://www.rfc-editor.org/rfc/rfc9068)).
    Jwt {
        /// Where the keys are; `None` finds them by the metadata of the issuer.
        jwks_uri: Option<String>,
    },
    /// By the issuer itself ([RFC 7662](https://www.rfc-editor.org/rfc/rfc7662)).
    Introspection {
        /// The endpoint; `None` finds it by the metadata of the issuer.
        endpoint: Option<String>,
        /// How this server authenticates there.
        credentials: IntrospectionCredentials,
    },
}

/// Why an issuer cannot be trusted as it is described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustedIssuerError {
    /// A URL is neither `https` nor on this machine.
    #[error(transparent)]
    Url(#[from] FetchError),
    /// The identifier has a query or a fragment, which RFC 8414 §2 forbids.
    #[error("the issuer `{0}` has a query or a fragment")]
    Identifier(String),
    /// No audience is accepted, so every token would be refused.
    #[error("the issuer `{0}` has no accepted audience")]
    NoAudience(String),
}

impl TrustedIssuer {
    /// Trusts the JWTs of an issuer, with keys that its metadata name.
    pub fn jwt(rules: TokenRules) -> Self {
        Self { rules, check: TokenCheck::Jwt { jwks_uri: None } }
    }

    /// Trusts the tokens that an issuer reports as active.
    pub fn introspection(rules: TokenRules, credentials: IntrospectionCredentials) -> Self {
        Self { rules, check: TokenCheck::Introspection { endpoint: None, credentials } }
    }

    /// Sets where the keys or the introspection endpoint are, for an issuer without metadata.
    #[must_use]
    pub fn at(mut self, url: impl Into<String>) -> Self {
        match &mut self.check {
            TokenCheck::Jwt { jwks_uri: place } | TokenCheck::Introspection { endpoint: place, .. } => {
                *place = Some(url.into());
            }
        }
        self
    }

    /// Returns the identifier.
    pub fn issuer(&self) -> &str {
        &self.rules.issuer
    }

    /// Checks the URLs and that there is an audience.
    ///
    /// # Errors
    /// See [`TrustedIssuerError`].
    pub fn validate(&self) -> Result<(), TrustedIssuerError> {
        let issuer = self.issuer();
        if issuer.contains(['?', '#', ' ']) {
            return Err(TrustedIssuerError::Identifier(issuer.to_owned()));
        }
        allowed_url(issuer)?;
        let place = match &self.check {
            TokenCheck::Jwt { jwks_uri: place } | TokenCheck::Introspection { endpoint: place, .. } => place,
        };
        place.as_deref().map(allowed_url).transpose()?;
        if self.rules.audiences.is_empty() {
            return Err(TrustedIssuerError::NoAudience(issuer.to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_need_secure_urls_and_an_audience() {
        let issuer = |issuer: &str, audiences: &[&str]| {
            TrustedIssuer::jwt(TokenRules::new(issuer, audiences.iter().copied()))
        };
        for (trusted, expected) in [
            (issuer("https://login.example", &["r"]), true),
            (issuer("http://127.0.0.1:9/realm", &["r"]), true),
            (issuer("http://login.example", &["r"]), false),
            (issuer("https://login.example?a", &["r"]), false),
            (issuer("https://login.example#a", &["r"]), false),
            (issuer("login.example", &["r"]), false),
            (issuer("https://login.example", &[]), false),
            (issuer("https://login.example", &["r"]).at("https://keys.example/jwks"), true),
            (issuer("https://login.example", &["r"]).at("http://keys.example/jwks"), false),
        ] {
            assert_eq!(trusted.validate().is_ok(), expected, "{trusted:?}");
        }
    }
}
