//! Validation of access tokens by a resource server: JWTs after [RFC 9068] and [RFC 8725], and opaque tokens by
//! introspection after [RFC 7662].
//!
//! ```text
//! RecentTokens::get ── hit ───────────────────────────────────────────────► AccessTokenClaims
//!        │ miss
//!        ├─ JWT:    UnverifiedToken::parse → rules → KeyCache::keys → verify ──► VerifiedTokens::insert
//!        └─ opaque: introspection_request → fetch → read_introspection ────────► VerifiedTokens::insert
//! ```
//!
//! # Invariants
//! - A token is accepted only with the exact issuer and one of the audiences of its rules, an allowed algorithm, the
//!   type of an access token, and before its expiry: `access_tokens_are_refused_with_their_reason`.
//! - No claim is used before the signature has been verified, except `iss`, which chooses the rules.
//! - Error texts can be sent as `error_description`: `token_errors_are_valid_error_descriptions`.
//!
//! [RFC 9068]: https://www.rfc-editor.org/rfc/rfc9068
//! [RFC 8725]: https://www.rfc-editor.org/rfc/rfc8725
//! [RFC 7662]: https://www.rfc-editor.org/rfc/rfc7662

mod claims;
mod error;
mod introspection;
mod jwt;
mod key_cache;
mod recent_tokens;
mod rules;
mod verified_cache;

pub use self::claims::AccessTokenClaims;
pub use self::error::TokenError;
pub use self::introspection::{IntrospectionCredentials, introspection_request, read_introspection};
pub use self::jwt::UnverifiedToken;
pub use self::key_cache::{FetchReason, KeyCache, KeyCachePolicy, KeyWithdrawal};
pub use self::recent_tokens::RecentTokens;
pub(crate) use self::rules::numeric_date;
pub use self::rules::{TokenRules, TokenTyping};
pub use self::verified_cache::{
    CacheGeneration, CacheableToken, TokenDigest, TokenSource, VerifiedTokenLimits, VerifiedTokens,
};
