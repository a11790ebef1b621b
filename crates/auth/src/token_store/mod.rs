//! Where tokens and client registrations are kept.
//!
//! Several tasks or processes may share a store. A write names the [`TokenGeneration`] that it replaces, so that of two
//! concurrent refreshes the later one fails instead of overwriting the rotated token of the other.
//!
//! [`MemoryTokenStore`] lasts as long as the process; [`FileTokenStore`] is a file that several processes share.

#[cfg(test)]
mod contract;
mod entries;
mod file;
mod memory;
mod refresh_locks;

use std::future::Future;
use std::pin::Pin;

pub use self::file::{
    FileTokenStore, MAX_STORE_BYTES, StoreKey, StoreKeyError, StoreProtection, TokenFileError,
};
pub use self::memory::MemoryTokenStore;
use crate::error_source::ErrorSource;
use crate::registration::ClientRegistration;
use crate::token_set::TokenSet;

/// The number of token sets, and of registrations, that a store holds.
pub const MAX_STORED_ENTRIES: usize = 10_000;

/// The principal of credentials that all principals share.
pub const SHARED_PRINCIPAL: &str = "*";

/// The key of a token set.
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
    Unavailable(#[source] ErrorSource),
}

/// The result of a store, later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TokenStoreError>> + Send + 'a>>;

/// Reserves the refresh of a key until it is dropped.
pub type TokenLock = Box<dyn std::any::Any + Send>;

/// A store of tokens and client registrations.
pub trait TokenStore: Send + Sync {
    /// Waits until the tokens of a key are refreshed by no other task, nor by another process that shares the store.
    fn lock<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, TokenLock>;

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

    /// Lists the keys of all principals, in order. For operators: a program that acts for one principal never needs it.
    fn list_all(&self) -> StoreFuture<'_, Vec<TokenKey>>;

    /// Loads the registrations at all issuers.
    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>>;

    /// Saves a registration by its issuer and redirect URI; one that the operator made also by its identifier.
    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()>;

    /// Removes the registrations of a client at an issuer.
    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()>;
}
