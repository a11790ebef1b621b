use trunkline_session::StateKeysError;

use crate::AddressError;

/// Why a store in Redis cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Redis cannot be reached, or does not answer as Redis does.
    #[error("the store {address} cannot be opened: {cause}")]
    Unreachable {
        /// The address, without its password.
        address: String,
        /// Why not.
        cause: String,
    },
    /// The store is sealed with a key that was not given.
    #[error(
        "the store {0} is sealed with another state key; give all processes the same keys, or use another `prefix` or \
         database to begin with an empty store"
    )]
    WrongKey(String),
    /// A newer build wrote the store.
    #[error(
        "the store {address} has format {format}, and this version reads {supported}; use a newer version, or another \
         `prefix` or database"
    )]
    Newer {
        /// The address, without its password.
        address: String,
        /// What was found.
        format: u32,
        /// What this build reads.
        supported: u32,
    },
    /// The operating system gives no random bytes.
    #[error(transparent)]
    Randomness(#[from] StateKeysError),
}
