use std::sync::Arc;

use http::HeaderValue;

use super::dpop_key::DpopKey;
use super::error::{AuthorizationError, RefreshError};
use crate::registration::ClientRegistration;
use crate::token_set::{AccessTokenKind, TokenSet};
use crate::token_store::{TokenGeneration, TokenKey};

/// The tokens that requests use, with all that belongs to them.
#[derive(Debug)]
pub(super) struct ActiveTokens {
    pub(super) key: TokenKey,
    pub(super) tokens: TokenSet,
    /// The generation that the store has them under.
    pub(super) stored: TokenGeneration,
    /// The key that they are bound to.
    pub(super) dpop: Option<DpopKey>,
    /// The client that they were issued to, if it was registered by this process.
    pub(super) client: Option<ClientRegistration>,
    /// The header of requests.
    pub(super) authorization: HeaderValue,
}

impl ActiveTokens {
    /// Makes tokens ready for use; `generated` is the key that was generated for them, else it is stored with them.
    pub(super) fn new(
        key: TokenKey,
        mut tokens: TokenSet,
        stored: TokenGeneration,
        generated: Option<DpopKey>,
    ) -> Result<Self, AuthorizationError> {
        let dpop = match (tokens.kind, generated, &tokens.dpop_key) {
            (AccessTokenKind::Bearer, ..) => None,
            (AccessTokenKind::Dpop, Some(key), _) => Some(key),
            (AccessTokenKind::Dpop, None, Some(stored)) => Some(DpopKey::from_text(stored)?),
            (AccessTokenKind::Dpop, None, None) => return Err(AuthorizationError::Signing),
        };
        tokens.dpop_key = dpop.as_ref().map(DpopKey::to_text);
        let authorization = tokens.authorization().ok_or(AuthorizationError::Signing)?;
        Ok(Self { key, tokens, stored, dpop, client: None, authorization })
    }

    /// Makes the error of a refresh that may succeed later.
    pub(super) fn refresh_failed(&self, error: impl Into<RefreshError>) -> AuthorizationError {
        let url = crate::endpoint_url::redacted(&self.tokens.context.token_endpoint);
        AuthorizationError::Refresh { url, source: Arc::new(error.into()) }
    }
}
