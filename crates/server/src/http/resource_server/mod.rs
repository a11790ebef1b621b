//! A resource server: access tokens of authorization servers as credentials, beside static tokens.
//!
//! ```text
//! recognize ── the token was checked before ──────────────────────────► Authenticated
//! authenticate: static token? → cache → issuer by `iss`, or introspection → scopes → DPoP proof
//! ```
//!
//! # Invariants
//!
//! - A refusal before the signature is verified is the same for every token, whatever was tried:
//!   `unverified_tokens_are_refused_alike`.
//! - A token that is bound to a key needs a proof of that key: `dpop_proofs_are_checked_with_every_request`.
//! - Tokens of an issuer that is removed end with it, and so do their streams:
//!   `removed_issuer_revokes_its_tokens_and_streams`.
//! - Streams of an introspected token end when its issuer does not report it as active any more:
//!   `streams_of_a_revoked_opaque_token_end_after_one_introspection`.

mod authenticator;
mod dpop;
mod error;
mod options;
mod public_uri;
mod replay_windows;
mod state;
mod token_recheck;
mod verified_token;

pub use self::authenticator::{MAX_INTROSPECTIONS, ResourceServer};
pub use self::dpop::{DpopMode, DpopOptions};
pub use self::error::ResourceServerError;
pub use self::options::ResourceServerOptions;
pub use self::verified_token::issuer_of_principal;
pub use trunkline_auth::access_token::{IntrospectionCredentials, TokenRules, TokenTyping};
pub use trunkline_auth::issuer::{TokenCheck, TrustedIssuer, TrustedIssuerError};
pub use trunkline_auth::jose::{AlgorithmSet, SignatureAlgorithm};
