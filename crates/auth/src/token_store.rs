//! Where tokens and client registrations are kept.
//!
//! Several tasks or processes may share a store. A write names the [`TokenGeneration`] that it replaces, so that of two
//! concurrent refreshes the later one fails instead of overwriting the rotated token of the other.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use parking_lot::Mutex;

use crate::registration::ClientRegistration;
use crate::token_set::TokenSet;

/// The number of token sets, and of registrations, that a [`MemoryTokenStore`] holds.
pub const MAX_STORED_ENTRIES: usize = 10_000;

/// The principal of credentials that all principals share.
pub const SHARED_PRINCIPAL: &str = "*";

/// What a set of tokens is stored by.
///
/// Two principals never share an entry; [`SHARED_PRINCIPAL`] is for credentials that belong to none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenKey {
    /// The principal that the tokens act for.
    pub principal: String,
    /// The URL of the MCP server as it is dialled.
    pub server_url: String,
    /// The issuer of the tokens.
    pub issuer: String,
    /// The client that they were issued to.
    pub client_id: String,
    /// A label, if a principal has several accounts at one server.
    pub account: Option<String>,
}

/// The version of a stored entry. It changes with every write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenGeneration(u64);

impl TokenGeneration {
    /// The generation of an entry that does not exist.
    pub const ABSENT: Self = Self(0);

    /// Returns a generation with the given number, for stores that persist it.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns its number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the generation of the next write.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }
}

/// A set of tokens with its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTokens {
    /// The tokens.
    pub tokens: TokenSet,
    /// The version, to be named when they are replaced.
    pub generation: TokenGeneration,
}

/// The reason why a store did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenStoreError {
    /// The entry was written since it was read. Load it again.
    #[error("the stored tokens were changed in the meantime")]
    Conflict,
    /// The store holds as much as it may.
    #[error("the token store is full")]
    Full,
    /// The store cannot be read or written.
    #[error("the token store failed: {0}")]
    Unavailable(String),
}

/// The result of a store, later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TokenStoreError>> + Send + 'a>>;

/// Holds the tokens of a key for one process until it is dropped.
pub type TokenLock = Box<dyn std::any::Any + Send>;

/// A store of tokens and client registrations.
pub trait TokenStore: Send + Sync {
    /// Waits until no other process refreshes the tokens of a key. A store that one process uses alone needs no lock.
    fn lock<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, TokenLock> {
        let _ = key;
        Box::pin(async { Ok(Box::new(()) as TokenLock) })
    }

    /// Loads a set of tokens.
    fn load<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, Option<StoredTokens>>;

    /// Saves a set of tokens in the place of a generation, [`TokenGeneration::ABSENT`] for a new entry, and returns the
    /// new generation. What was saved survives a crash if the store is persistent.
    fn save<'a>(
        &'a self,
        key: &'a TokenKey,
        tokens: &'a TokenSet,
        replaced: TokenGeneration,
    ) -> StoreFuture<'a, TokenGeneration>;

    /// Removes a set of tokens, if it is still of a generation.
    fn remove<'a>(&'a self, key: &'a TokenKey, generation: TokenGeneration) -> StoreFuture<'a, ()>;

    /// Lists the keys of a principal, in order.
    fn list<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, Vec<TokenKey>>;

    /// Loads the registrations at all issuers.
    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>>;

    /// Saves a registration by its issuer and redirect URI.
    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()>;

    /// Removes the registrations of a client at an issuer.
    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()>;
}

/// A store that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryTokenStore {
    entries: Mutex<MemoryEntries>,
}

#[derive(Debug, Default)]
struct MemoryEntries {
    tokens: HashMap<TokenKey, StoredTokens>,
    clients: Vec<ClientRegistration>,
    /// Counts all writes, so that an entry that was removed and made again has another generation.
    last: TokenGeneration,
}

impl MemoryEntries {
    fn check(&self, key: &TokenKey, expected: TokenGeneration) -> Result<(), TokenStoreError> {
        let current = self.tokens.get(key).map_or(TokenGeneration::ABSENT, |stored| stored.generation);
        if current == expected { Ok(()) } else { Err(TokenStoreError::Conflict) }
    }

    fn save(&mut self, key: &TokenKey, tokens: &TokenSet) -> Result<TokenGeneration, TokenStoreError> {
        if self.tokens.len() >= MAX_STORED_ENTRIES && !self.tokens.contains_key(key) {
            return Err(TokenStoreError::Full);
        }
        self.last = self.last.next();
        let stored = StoredTokens { tokens: tokens.clone(), generation: self.last };
        self.tokens.insert(key.clone(), stored);
        Ok(self.last)
    }

    fn save_client(&mut self, client: &ClientRegistration) -> Result<(), TokenStoreError> {
        let is_same = |other: &ClientRegistration| {
            other.issuer == client.issuer && other.redirect_uri == client.redirect_uri
        };
        self.clients.retain(|other| !is_same(other));
        if self.clients.len() >= MAX_STORED_ENTRIES {
            return Err(TokenStoreError::Full);
        }
        self.clients.push(client.clone());
        Ok(())
    }
}

impl TokenStore for MemoryTokenStore {
    fn load<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, Option<StoredTokens>> {
        Box::pin(async move { Ok(self.entries.lock().tokens.get(key).cloned()) })
    }

    fn save<'a>(
        &'a self,
        key: &'a TokenKey,
        tokens: &'a TokenSet,
        replaced: TokenGeneration,
    ) -> StoreFuture<'a, TokenGeneration> {
        Box::pin(async move {
            let mut entries = self.entries.lock();
            entries.check(key, replaced)?;
            entries.save(key, tokens)
        })
    }

    fn remove<'a>(&'a self, key: &'a TokenKey, generation: TokenGeneration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut entries = self.entries.lock();
            entries.check(key, generation)?;
            entries.tokens.remove(key);
            Ok(())
        })
    }

    fn list<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, Vec<TokenKey>> {
        Box::pin(async move {
            let entries = self.entries.lock();
            let own = entries.tokens.keys().filter(|key| key.principal == principal);
            let mut keys: Vec<_> = own.cloned().collect();
            keys.sort();
            Ok(keys)
        })
    }

    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>> {
        Box::pin(async move { Ok(self.entries.lock().clients.clone()) })
    }

    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.entries.lock().save_client(client) })
    }

    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let is_other =
                |client: &ClientRegistration| client.issuer != issuer || client.client_id != client_id;
            self.entries.lock().clients.retain(is_other);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::{ClientCredential, RegistrationSource};
    use crate::token_request::TokenAuthMethod;
    use crate::token_set::tests::tokens;

    fn key(principal: &str, server: &str) -> TokenKey {
        TokenKey {
            principal: principal.to_owned(),
            server_url: server.to_owned(),
            issuer: "https://a".to_owned(),
            client_id: "client".to_owned(),
            account: None,
        }
    }

    fn client(issuer: &str, id: &str, redirect: &str) -> ClientRegistration {
        ClientRegistration {
            issuer: issuer.to_owned(),
            client_id: id.to_owned(),
            credential: ClientCredential::Public,
            auth_method: TokenAuthMethod::None,
            source: RegistrationSource::Dynamic,
            redirect_uri: Some(redirect.to_owned()),
            secret_expires_at: None,
        }
    }

    #[tokio::test]
    async fn a_write_over_a_newer_generation_is_a_conflict() {
        let store = MemoryTokenStore::default();
        let key = key("u", "https://h");
        assert_eq!(store.load(&key).await, Ok(None));
        let first = store.save(&key, &tokens("t1", None, 1), TokenGeneration::ABSENT).await.unwrap();
        let second = store.save(&key, &tokens("t2", None, 1), first).await.unwrap();
        let conflict = Err(TokenStoreError::Conflict);
        assert_eq!(store.save(&key, &tokens("t3", None, 1), first).await, conflict);
        assert_eq!(store.save(&key, &tokens("t3", None, 1), TokenGeneration::ABSENT).await, conflict);
        assert_eq!(store.remove(&key, first).await, Err(TokenStoreError::Conflict));
        assert_eq!(store.load(&key).await.unwrap().unwrap().tokens.access_token.expose(), "t2");
        store.remove(&key, second).await.unwrap();
        let again = store.save(&key, &tokens("t4", None, 1), TokenGeneration::ABSENT).await.unwrap();
        assert!(again > second, "a new entry never has the generation of an old one");
    }

    #[tokio::test]
    async fn keys_are_listed_by_principal() {
        let store = MemoryTokenStore::default();
        for (principal, server) in [("u", "https://b"), ("u", "https://a"), ("v", "https://a")] {
            let saved =
                store.save(&key(principal, server), &tokens("t", None, 1), TokenGeneration::ABSENT).await;
            assert!(saved.is_ok());
        }
        assert_eq!(store.list("u").await.unwrap(), [key("u", "https://a"), key("u", "https://b")]);
        assert_eq!(store.list("w").await.unwrap(), []);
        assert_eq!(store.load(&key("w", "https://a")).await, Ok(None));
    }

    #[tokio::test]
    async fn client_registrations_are_kept_by_issuer() {
        let store = MemoryTokenStore::default();
        for (issuer, id, redirect) in [("a", "1", "r"), ("a", "2", "r"), ("a", "3", "s"), ("b", "4", "r")] {
            store.save_client(&client(issuer, id, redirect)).await.unwrap();
        }
        let clients = async |issuer: &str| {
            let clients = store.load_clients().await.unwrap();
            clients
                .into_iter()
                .filter(|client| client.issuer == issuer)
                .map(|client| client.client_id)
                .collect::<Vec<_>>()
        };
        assert_eq!(clients("a").await, ["2", "3"]);
        store.remove_client("a", "3").await.unwrap();
        store.remove_client("a", "4").await.unwrap();
        assert_eq!((clients("a").await, clients("b").await), (vec!["2".to_owned()], vec!["4".to_owned()]));
    }

    #[tokio::test]
    async fn a_memory_store_is_bounded() {
        let store = MemoryTokenStore::default();
        let set = tokens("t", None, 1);
        for n in 0..MAX_STORED_ENTRIES {
            let key = key("u", &n.to_string());
            store.save(&key, &set, TokenGeneration::ABSENT).await.unwrap();
        }
        let result = store.save(&key("u", "more"), &set, TokenGeneration::ABSENT).await;
        assert_eq!(result, Err(TokenStoreError::Full));
        assert!(!format!("{store:?}").contains("\"t\""));
    }
}
