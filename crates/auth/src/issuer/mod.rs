//! The issuers that a resource server trusts: their metadata, keys and introspection endpoints.
//!
//! [`IssuerClient`] checks tokens of one issuer. It fetches what it needs, one request at a time, and keeps it.
//!
//! # Invariants
//! - Keys are fetched once for all requests that wait for them, and an unknown key causes at most one fetch a minute:
//!   `concurrent_tokens_cause_one_fetch_of_the_keys`.
//! - A fetch that no client waits for any more still ends: `fetch_survives_the_request_that_began_it`.
//! - URLs that an issuer chooses are limited to its own kind of network:
//!   `discovered_urls_are_limited_to_the_network_of_the_issuer`.

mod client;
mod discovery_cache;
mod error;
mod key_source;
mod metadata;
mod trusted_issuer;

pub use self::client::IssuerClient;
pub use self::discovery_cache::{METADATA_AGE, METADATA_RETRY_INTERVAL};
pub use self::error::IssuerError;
pub use self::metadata::IssuerMetadata;
pub use self::trusted_issuer::{TokenCheck, TrustedIssuer, TrustedIssuerError};
