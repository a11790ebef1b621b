//! Ending a login: its tokens are revoked, and removed from the store.

use super::Authorizer;
use super::active_tokens::ActiveTokens;
use super::client_auth::client_authentication;
use super::error::AuthorizationError;
use crate::revocation::{RevokedToken, read_revocation, revocation_request};
use crate::token_response::TokenResponseError;
use crate::token_store::{TokenKey, TokenStoreError};

/// A login that was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedLogin {
    /// The storage key.
    pub key: TokenKey,
    /// The outcome of the revocation.
    pub revocation: RevocationOutcome,
}

/// The outcome of revoking tokens. They are removed from the store in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevocationOutcome {
    /// The authorization server accepts them no more.
    Revoked,
    /// The refresh token is revoked; the authorization server revokes no access tokens, and this one is valid until it
    /// expires.
    RefreshTokenOnly,
    /// The authorization server has no revocation: they are valid until they expire.
    Unsupported,
    /// The authorization server could not be reached, or refused.
    Failed {
        /// The revocation endpoint, without its query.
        url: String,
        /// What happened.
        reason: String,
    },
}

impl Authorizer {
    /// Ends all logins at this server: their tokens are revoked
    /// ([RFC 7009](https://www.rfc-editor.org/rfc/rfc7009)) as far as the authorization server can be reached, and removed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn log_out(&self) -> Result<Vec<EndedLogin>, AuthorizationError> {
        let store = &self.options.store;
        let mut ended = Vec::new();
        for key in store.list(&self.options.principal).await? {
            if key.server_url != self.server_url {
                continue;
            }
            // A refresh under way would store tokens that are not revoked.
            let _lock = store.lock(&key).await?;
            let Some(stored) = store.load(&key).await? else { continue };
            let active = ActiveTokens::new(key.clone(), stored.tokens, stored.generation, None)?;
            let revocation = self.revoke(&active).await?;
            match store.remove(&key, active.stored).await {
                // A new login in between stays.
                Ok(()) | Err(TokenStoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
            self.forget_unused_client(&key).await?;
            ended.push(EndedLogin { key, revocation });
        }
        *self.current.write() = None;
        Ok(ended)
    }

    /// Revokes the refresh token, with which most servers end the access tokens too, and then the access token.
    async fn revoke(&self, active: &ActiveTokens) -> Result<RevocationOutcome, AuthorizationError> {
        let Some(endpoint) = &active.tokens.context.revocation_endpoint else {
            return Ok(RevocationOutcome::Unsupported);
        };
        let fetcher = self.fetcher().await;
        let failed = |reason: String| {
            let url = crate::endpoint_url::redacted(endpoint);
            Ok(RevocationOutcome::Failed { url, reason })
        };
        for token in [RevokedToken::Refresh, RevokedToken::Access] {
            let client = match client_authentication(&self.options, active).await {
                Ok(client) => client,
                Err(error @ AuthorizationError::Store(_)) => return Err(error),
                Err(error) => return failed(error.to_string()),
            };
            let Some(request) = revocation_request(endpoint, &active.tokens, token, &client) else {
                continue;
            };
            let response = match request {
                Ok(request) => fetcher.fetch(request).await,
                Err(error) => return failed(error.to_string()),
            };
            match response.map(|response| read_revocation(&response)) {
                Ok(Ok(())) => {}
                // Servers cannot revoke access tokens that others validate (RFC 7009 §2.2.1).
                Ok(Err(TokenResponseError::Refused(error)))
                    if token == RevokedToken::Access
                        && active.tokens.refresh_token.is_some()
                        && error.code() == "unsupported_token_type" =>
                {
                    return Ok(RevocationOutcome::RefreshTokenOnly);
                }
                Ok(Err(error)) => return failed(error.to_string()),
                Err(error) => return failed(error.to_string()),
            }
        }
        Ok(RevocationOutcome::Revoked)
    }
}
