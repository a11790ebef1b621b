//! JSON Web Signatures and keys: the parts of [RFC 7515], [RFC 7517], [RFC 7518] and [RFC 8037] that OAuth needs.
//!
//! Only asymmetric algorithms exist here, so that a public key can never be taken for a shared secret
//! ([RFC 8725 §3.1]), and a key verifies only with algorithms of its own type.
//!
//! # Invariants
//! - No bytes of a peer cause a panic: `compact_jws_parser_never_panics`, `jwk_parser_never_panics`.
//! - `none`, HMAC and unknown algorithms never verify: `forged_signatures_are_refused`.
//!
//! [RFC 7515]: https://www.rfc-editor.org/rfc/rfc7515
//! [RFC 7517]: https://www.rfc-editor.org/rfc/rfc7517
//! [RFC 7518]: https://www.rfc-editor.org/rfc/rfc7518
//! [RFC 8037]: https://www.rfc-editor.org/rfc/rfc8037
//! [RFC 8725 §3.1]: https://www.rfc-editor.org/rfc/rfc8725#section-3.1

mod algorithm;
mod compact;
mod jwk;
mod jwk_set;
mod sign;
mod verify;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod forgeries;

pub use self::algorithm::{AlgorithmSet, KeyType, SignatureAlgorithm};
pub use self::compact::{CompactJws, JwsError};
pub use self::jwk::{JwkError, PublicJwk, VerificationKey};
pub use self::jwk_set::{JwkSet, JwkSetError};
pub use self::sign::{SigningError, SigningKey, SigningKeyError};
pub use self::verify::VerifyError;

pub(crate) use self::compact::{decode_base64url, encode_base64url};
