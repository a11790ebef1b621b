use parking_lot::Mutex;

use super::entries::TokenEntries;
use super::refresh_locks::RefreshLocks;
use super::{StoreFuture, StoredTokens, TokenGeneration, TokenKey, TokenLock, TokenStore};
use crate::registration::ClientRegistration;
use crate::token_set::TokenSet;

/// A store that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryTokenStore {
    entries: Mutex<TokenEntries>,
    refreshes: RefreshLocks,
}

impl TokenStore for MemoryTokenStore {
    fn lock<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, TokenLock> {
        Box::pin(async move { Ok(Box::new(self.refreshes.lock(key).await) as TokenLock) })
    }

    fn load<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, Option<StoredTokens>> {
        Box::pin(async move { Ok(self.entries.lock().tokens.get(key).cloned()) })
    }

    fn save<'a>(
        &'a self,
        key: &'a TokenKey,
        tokens: &'a TokenSet,
        replaced: TokenGeneration,
    ) -> StoreFuture<'a, TokenGeneration> {
        Box::pin(async move { self.entries.lock().save(key, tokens, replaced) })
    }

    fn remove<'a>(&'a self, key: &'a TokenKey, generation: TokenGeneration) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.entries.lock().remove(key, generation) })
    }

    fn list<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, Vec<TokenKey>> {
        Box::pin(async move { Ok(self.entries.lock().keys(Some(principal))) })
    }

    fn list_all(&self) -> StoreFuture<'_, Vec<TokenKey>> {
        Box::pin(async move { Ok(self.entries.lock().keys(None)) })
    }

    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>> {
        Box::pin(async move { Ok(self.entries.lock().clients.clone()) })
    }

    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.entries.lock().save_client(client) })
    }

    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.entries.lock().remove_client(issuer, client_id);
            Ok(())
        })
    }
}
