//! Refreshing a token, with one refresh at a time for all that share the store.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::Response;

use super::active_tokens::ActiveTokens;
use super::dpop_key::DPOP;
use super::error::AuthorizationError;
use super::{AuthorizationHistory, Authorizer, now, random_bytes};
use crate::client_assertion::ClientAssertion;
use crate::dpop_nonce::NonceState;
use crate::refresh::{RefreshOutcome, read_refresh, refresh_request};
use crate::registration::{ClientCredential, ClientRegistration};
use crate::token_request::{ClientAuthentication, TokenAuthMethod, choose_auth_method};
use crate::token_set::TokenSet;
use crate::token_store::TokenStoreError;
use trunkline_session::Timestamp;

impl Authorizer {
    /// Refreshes the tokens in use, and reports whether there are new ones now; if not, the user has to authorize again.
    ///
    /// # Errors
    /// The authorization server could not be reached, or failed: the tokens are kept.
    pub(super) async fn refresh(&self, _: &mut AuthorizationHistory) -> Result<bool, AuthorizationError> {
        let Some(active) = self.current.read().clone() else { return Ok(false) };
        let store = &self.options.store;
        // Another process may be refreshing: its tokens are there when it is done.
        let _lock = store.lock(&active.key).await?;
        if self.adopt_newer(&active).await? {
            return Ok(true);
        }
        if active.tokens.refresh_token.is_none() {
            return Ok(false);
        }
        match self.request_refresh(&active).await? {
            RefreshOutcome::Refreshed(tokens) => self.adopt_refreshed(&active, *tokens).await.map(|()| true),
            RefreshOutcome::Reauthorize(error) => {
                tracing::debug!(%error, "the refresh token is not valid any more");
                self.drop_refresh_token(&active).await?;
                Ok(false)
            }
            RefreshOutcome::Reregister(error) => {
                tracing::debug!(%error, "the authorization server does not know the client any more");
                store.remove_client(&active.key.issuer, &active.key.client_id).await?;
                self.drop_refresh_token(&active).await?;
                Ok(false)
            }
            RefreshOutcome::Keep(error) => Err(refresh_failed(&active, error.to_string())),
            RefreshOutcome::RepeatWithNonce => {
                Err(refresh_failed(&active, "the server demands one DPoP nonce after the other".to_owned()))
            }
        }
    }

    /// Uses what another process has stored since, if anything.
    async fn adopt_newer(&self, active: &Arc<ActiveTokens>) -> Result<bool, AuthorizationError> {
        match self.options.store.load(&active.key).await? {
            Some(stored) if stored.generation != active.stored => {
                let newer = ActiveTokens::new(active.key.clone(), stored.tokens, stored.generation, None)?;
                *self.current.write() = Some(Arc::new(newer));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn request_refresh(&self, active: &ActiveTokens) -> Result<RefreshOutcome, AuthorizationError> {
        let fetcher = self.fetcher().await;
        let client = self.client_of(active).await?;
        let mut nonce = NonceState::default();
        loop {
            let authentication = self.authentication(&client, active)?;
            let Some(request) = refresh_request(&active.tokens, &authentication) else {
                return Err(refresh_failed(active, "there is no refresh token".to_owned()));
            };
            let mut request = request.map_err(|error| refresh_failed(active, error.to_string()))?;
            if let Some(key) = &active.dpop {
                let proof = key.proof(request.method(), request.uri(), None, nonce.current())?;
                request.headers_mut().insert(DPOP, proof);
            }
            let response: Response<Bytes> =
                fetcher.fetch(request).await.map_err(|error| refresh_failed(active, error.to_string()))?;
            match read_refresh(&active.tokens, &response, &mut nonce, now()) {
                RefreshOutcome::RepeatWithNonce => {}
                outcome => return Ok(outcome),
            }
        }
    }

    /// Stores refreshed tokens, and uses them then.
    async fn adopt_refreshed(
        &self,
        active: &Arc<ActiveTokens>,
        tokens: TokenSet,
    ) -> Result<(), AuthorizationError> {
        let tokens = TokenSet { dpop_key: active.tokens.dpop_key.clone(), ..tokens };
        let mut newer = ActiveTokens::new(active.key.clone(), tokens, active.stored, None)?;
        newer.client.clone_from(&active.client);
        newer.stored = match self.options.store.save(&newer.key, &newer.tokens, active.stored).await {
            // Somebody logged in meanwhile: those tokens are as good.
            Err(TokenStoreError::Conflict) => return self.adopt_newer(active).await.map(drop),
            saved => saved?,
        };
        *self.current.write() = Some(Arc::new(newer));
        Ok(())
    }

    /// Removes a refresh token that the server rejects, so that it is never sent again.
    async fn drop_refresh_token(&self, active: &Arc<ActiveTokens>) -> Result<(), AuthorizationError> {
        let tokens = TokenSet { refresh_token: None, ..active.tokens.clone() };
        let mut without = ActiveTokens::new(active.key.clone(), tokens, active.stored, None)?;
        without.stored = match self.options.store.save(&without.key, &without.tokens, active.stored).await {
            Err(TokenStoreError::Conflict) => return self.adopt_newer(active).await.map(drop),
            saved => saved?,
        };
        *self.current.write() = Some(Arc::new(without));
        Ok(())
    }

    /// Finds the client that tokens were issued to.
    async fn client_of(
        &self,
        active: &ActiveTokens,
    ) -> Result<Option<ClientRegistration>, AuthorizationError> {
        if active.client.is_some() {
            return Ok(active.client.clone());
        }
        let clients = self.options.store.load_clients().await?;
        let is_it = |client: &ClientRegistration| {
            client.issuer == active.key.issuer && client.client_id == active.key.client_id
        };
        Ok(clients.into_iter().find(is_it))
    }

    /// Authenticates the client for one request.
    fn authentication(
        &self,
        client: &Option<ClientRegistration>,
        active: &ActiveTokens,
    ) -> Result<ClientAuthentication, AuthorizationError> {
        let client_id = &active.key.client_id;
        let configured = self.options.preregistered.iter().find(|known| known.client_id == *client_id);
        let (credential, method) = match (client, configured) {
            (Some(client), _) => (client.credential.clone(), client.auth_method),
            (None, Some(known)) => (known.credential.clone(), choose_auth_method(&known.credential, None)),
            (None, None) => (ClientCredential::Public, TokenAuthMethod::None),
        };
        if credential != ClientCredential::PrivateKey {
            return Ok(ClientAuthentication::new(client_id, &credential, method));
        }
        let key = self.options.client_key.as_deref().ok_or(AuthorizationError::NoClientKey)?;
        let assertion = ClientAssertion { client_id, issuer: &active.key.issuer, key_id: None };
        let now = Timestamp::from_system(SystemTime::now());
        let assertion =
            assertion.sign(key, &random_bytes()?, now).map_err(|_| AuthorizationError::Signing)?;
        Ok(ClientAuthentication::Assertion { client_id: client_id.clone(), assertion })
    }
}

fn refresh_failed(active: &ActiveTokens, reason: String) -> AuthorizationError {
    AuthorizationError::Refresh {
        url: crate::endpoint_url::redacted(&active.tokens.context.token_endpoint),
        reason,
    }
}
