//! Compares the stored tokens with those in use.

use std::sync::Arc;

use super::active_tokens::ActiveTokens;
use super::error::AuthorizationError;
use super::{AuthorizationHistory, Authorizer};
use crate::token_store::{TokenKey, TokenStore};

/// How the stored tokens changed.
#[derive(Debug)]
pub(super) enum StoredTokenState {
    /// Nothing.
    Same,
    /// Another process replaced them.
    Newer(Box<ActiveTokens>),
    /// Another process removed them.
    Removed,
}

impl StoredTokenState {
    pub(super) async fn read(
        store: &dyn TokenStore,
        active: &ActiveTokens,
    ) -> Result<Self, AuthorizationError> {
        Ok(match store.load(&active.key).await? {
            Some(stored) if stored.generation == active.stored => Self::Same,
            Some(stored) => {
                let newer = ActiveTokens::new(active.key.clone(), stored.tokens, stored.generation, None)?;
                Self::Newer(Box::new(newer))
            }
            None => Self::Removed,
        })
    }
}

impl Authorizer {
    /// Adopts the stored tokens; reports whether they differ.
    pub(super) async fn adopt_stored(
        &self,
        history: &mut AuthorizationHistory,
    ) -> Result<bool, AuthorizationError> {
        let active = self.current.read().clone();
        let state = match active {
            Some(active) => StoredTokenState::read(&*self.options.store, &active).await?,
            None => self.find_stored().await?,
        };
        match state {
            StoredTokenState::Same => Ok(false),
            StoredTokenState::Newer(newer) => {
                history.requested = history.requested.union(&newer.tokens.context.requested);
                *self.current.write() = Some(Arc::from(newer));
                Ok(true)
            }
            StoredTokenState::Removed => {
                *self.current.write() = None;
                Ok(false)
            }
        }
    }

    /// Finds tokens for this server in the store.
    async fn find_stored(&self) -> Result<StoredTokenState, AuthorizationError> {
        let store = &self.options.store;
        let keys = store.list(&self.options.principal).await?;
        let is_ours = |key: &&TokenKey| {
            key.server_url == self.server_url
                && self.options.issuer.as_ref().is_none_or(|issuer| *issuer == key.issuer)
        };
        let Some(key) = keys.iter().find(is_ours) else { return Ok(StoredTokenState::Same) };
        let Some(stored) = store.load(key).await? else { return Ok(StoredTokenState::Same) };
        let found = ActiveTokens::new(key.clone(), stored.tokens, stored.generation, None)?;
        Ok(StoredTokenState::Newer(Box::new(found)))
    }
}
