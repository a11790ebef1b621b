//! Refreshing a token, with one refresh at a time for all that share the store.

use std::sync::Arc;

use super::active_tokens::ActiveTokens;
use super::error::AuthorizationError;
use super::refresh_job::{RefreshJob, RefreshedState};
use super::stored_tokens::StoredTokenState;
use super::{Authorizer, now};

impl Authorizer {
    /// Refreshes the tokens in use, and reports whether there are new ones now; if not, the user has to authorize again.
    /// The caller holds `flight`.
    ///
    /// # Errors
    /// The authorization server could not be reached, or failed: the tokens are kept.
    pub(super) async fn refresh(&self) -> Result<bool, AuthorizationError> {
        let Some(mut active) = self.current.read().clone() else { return Ok(false) };
        let store = &self.options.store;
        // Another process may be refreshing: its tokens are there when it is done.
        let lock = store.lock(&active.key).await?;
        match StoredTokenState::read(&**store, &active).await? {
            StoredTokenState::Same => {}
            StoredTokenState::Newer(newer) => {
                active = Arc::from(newer);
                self.set_current(Some(active.clone()));
                if !active.tokens.is_expired(now()) {
                    return Ok(true);
                }
            }
            StoredTokenState::Removed => {
                self.set_current(None);
                return Ok(false);
            }
        }
        if active.tokens.refresh_token.is_none() {
            return Ok(false);
        }
        let options = self.options.clone();
        let job = RefreshJob { options, fetcher: self.fetcher().await, active: active.clone() };
        // The task is completed even if this request is cancelled: with rotation, tokens that are issued and not stored
        // would end the login.
        let running = tokio::spawn(async move {
            let refreshed = job.run().await;
            drop(lock);
            refreshed
        });
        let done = running.await;
        let state = done.map_err(|error| active.refresh_failed(error))??;
        let (tokens, is_usable) = match state {
            RefreshedState::Usable(tokens) => (Some(tokens), true),
            RefreshedState::Ended(tokens) => (tokens, false),
        };
        self.set_current(tokens.map(Arc::from));
        Ok(is_usable)
    }

    fn set_current(&self, tokens: Option<Arc<ActiveTokens>>) {
        *self.current.write() = tokens;
    }
}
