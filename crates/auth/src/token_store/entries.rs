use std::collections::HashMap;

use super::{MAX_STORED_ENTRIES, StoredTokens, TokenGeneration, TokenKey, TokenStoreError};
use crate::registration::{ClientRegistration, RegistrationSource};
use crate::token_set::TokenSet;

/// The content of a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TokenEntries {
    pub(super) tokens: HashMap<TokenKey, StoredTokens>,
    pub(super) clients: Vec<ClientRegistration>,
    /// Counts all writes, so that an entry that was removed and made again has another generation.
    pub(super) last: TokenGeneration,
}

impl TokenEntries {
    /// Saves tokens over those of a generation.
    pub(super) fn save(
        &mut self,
        key: &TokenKey,
        tokens: &TokenSet,
        replaced: TokenGeneration,
    ) -> Result<TokenGeneration, TokenStoreError> {
        self.check(key, replaced)?;
        if self.tokens.len() >= MAX_STORED_ENTRIES && !self.tokens.contains_key(key) {
            return Err(TokenStoreError::Full);
        }
        self.last = self.last.next();
        let stored = StoredTokens { tokens: tokens.clone(), generation: self.last };
        self.tokens.insert(key.clone(), stored);
        Ok(self.last)
    }

    /// Removes tokens of a generation.
    pub(super) fn remove(
        &mut self,
        key: &TokenKey,
        generation: TokenGeneration,
    ) -> Result<(), TokenStoreError> {
        self.check(key, generation)?;
        self.tokens.remove(key);
        Ok(())
    }

    fn check(&self, key: &TokenKey, expected: TokenGeneration) -> Result<(), TokenStoreError> {
        let current = self.tokens.get(key).map_or(TokenGeneration::ABSENT, |stored| stored.generation);
        if current == expected { Ok(()) } else { Err(TokenStoreError::Conflict) }
    }

    /// Returns the keys that belong to a principal, or all, in order.
    pub(super) fn keys(&self, principal: Option<&str>) -> Vec<TokenKey> {
        let is_listed = |key: &&TokenKey| principal.is_none_or(|principal| key.principal == principal);
        let mut keys: Vec<_> = self.tokens.keys().filter(is_listed).cloned().collect();
        keys.sort();
        keys
    }

    pub(super) fn save_client(&mut self, client: &ClientRegistration) -> Result<(), TokenStoreError> {
        let is_configured = client.source == RegistrationSource::Preregistered;
        let is_same = |other: &ClientRegistration| {
            other.issuer == client.issuer
                && other.redirect_uri == client.redirect_uri
                && (!is_configured || other.client_id == client.client_id)
        };
        self.clients.retain(|other| !is_same(other));
        if self.clients.len() >= MAX_STORED_ENTRIES {
            return Err(TokenStoreError::Full);
        }
        self.clients.push(client.clone());
        Ok(())
    }

    pub(super) fn remove_client(&mut self, issuer: &str, client_id: &str) {
        self.clients.retain(|client| client.issuer != issuer || client.client_id != client_id);
    }
}
