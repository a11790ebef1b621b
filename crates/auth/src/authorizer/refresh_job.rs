use std::sync::Arc;

use super::active_tokens::ActiveTokens;
use super::client_auth::{client_authentication, is_registered_by_hand};
use super::dpop_key::DPOP;
use super::error::{AuthorizationError, RefreshError};
use super::now;
use super::options::AuthorizationOptions;
use super::stored_tokens::StoredTokenState;
use crate::dpop_nonce::NonceState;
use crate::fetch::Fetcher;
use crate::refresh::{RefreshOutcome, read_refresh, refresh_request};
use crate::token_set::TokenSet;
use crate::token_store::TokenStoreError;

/// One refresh, up to its stored outcome. It owns all that it needs.
pub(super) struct RefreshJob {
    pub(super) options: AuthorizationOptions,
    pub(super) fetcher: Fetcher,
    pub(super) active: Arc<ActiveTokens>,
}

/// What a refresh resulted in, as it is stored.
pub(super) enum RefreshedState {
    /// Tokens that can be used.
    Usable(Box<ActiveTokens>),
    /// The user has to authorize again. The tokens are without a refresh token, if they are not removed.
    Ended(Option<Box<ActiveTokens>>),
}

impl RefreshJob {
    /// Refreshes the tokens, and stores the outcome.
    pub(super) async fn run(self) -> Result<RefreshedState, AuthorizationError> {
        let active = &self.active;
        match self.request().await? {
            RefreshOutcome::Refreshed(tokens) => self.store(*tokens).await,
            RefreshOutcome::Reauthorize(error) => {
                tracing::debug!(%error, "the refresh token is not valid any more");
                self.end(false).await
            }
            // A secret that was replaced at the server and not here yet must not cost the users their logins.
            RefreshOutcome::Reregister(error) if is_registered_by_hand(&self.options, active).await? => {
                Err(active.refresh_failed(error))
            }
            RefreshOutcome::Reregister(error) => {
                tracing::debug!(%error, "the authorization server does not know the client any more");
                self.end(true).await
            }
            RefreshOutcome::Keep(error) => Err(active.refresh_failed(error)),
            RefreshOutcome::RepeatWithNonce => Err(active.refresh_failed(RefreshError::NonceLoop)),
        }
    }

    async fn request(&self) -> Result<RefreshOutcome, AuthorizationError> {
        let active = &self.active;
        let mut nonce = NonceState::default();
        loop {
            let authentication = client_authentication(&self.options, active).await?;
            let Some(request) = refresh_request(&active.tokens, &authentication) else {
                return Err(active.refresh_failed(RefreshError::NoRefreshToken));
            };
            let mut request = request.map_err(|error| active.refresh_failed(error))?;
            if let Some(key) = &active.dpop {
                let proof = key.proof(request.method(), request.uri(), None, nonce.current())?;
                request.headers_mut().insert(DPOP, proof);
            }
            let response = self.fetcher.fetch(request).await;
            let response = response.map_err(|error| active.refresh_failed(error))?;
            match read_refresh(&active.tokens, &response, &mut nonce, now()) {
                RefreshOutcome::RepeatWithNonce => {}
                outcome => return Ok(outcome),
            }
        }
    }

    /// Stores refreshed tokens, so that they can be used.
    async fn store(&self, tokens: TokenSet) -> Result<RefreshedState, AuthorizationError> {
        let active = &self.active;
        let tokens = TokenSet { dpop_key: active.tokens.dpop_key.clone(), ..tokens };
        let mut newer = ActiveTokens::new(active.key.clone(), tokens, active.stored, None)?;
        newer.client.clone_from(&active.client);
        self.replace(newer).await.map(|stored| match stored {
            Ok(newer) => RefreshedState::Usable(newer),
            Err(other) => other,
        })
    }

    /// Removes a refresh token that the server rejects, so that it is never sent again. Before that, the store is read
    /// again: a program that does not honour the lock may have used the token, and stored its successor.
    async fn end(&self, is_client_unknown: bool) -> Result<RefreshedState, AuthorizationError> {
        let active = &self.active;
        let store = &self.options.store;
        if let StoredTokenState::Newer(newer) = StoredTokenState::read(&**store, active).await? {
            return Ok(RefreshedState::Usable(newer));
        }
        if is_client_unknown {
            store.remove_client(&active.key.issuer, &active.key.client_id).await?;
        }
        let tokens = TokenSet { refresh_token: None, ..active.tokens.clone() };
        let without = ActiveTokens::new(active.key.clone(), tokens, active.stored, None)?;
        self.replace(without).await.map(|stored| match stored {
            Ok(without) => RefreshedState::Ended(Some(without)),
            Err(other) => other,
        })
    }

    /// Replaces the stored tokens. If they were changed meanwhile, returns what is stored instead: a login in between is
    /// newer than this refresh, and a logout ends it.
    async fn replace(
        &self,
        mut tokens: ActiveTokens,
    ) -> Result<Result<Box<ActiveTokens>, RefreshedState>, AuthorizationError> {
        let store = &self.options.store;
        match store.save(&tokens.key, &tokens.tokens, self.active.stored).await {
            Err(TokenStoreError::Conflict) => {}
            saved => {
                tokens.stored = saved?;
                return Ok(Ok(Box::new(tokens)));
            }
        }
        Ok(Err(match StoredTokenState::read(&**store, &self.active).await? {
            StoredTokenState::Newer(newer) => RefreshedState::Usable(newer),
            StoredTokenState::Same | StoredTokenState::Removed => RefreshedState::Ended(None),
        }))
    }
}
