//! Proof of possession of a key, DPoP ([RFC 9449]): a client makes a proof for each request, and a resource server
//! checks it.
//!
//! # Invariants
//! - A token that is bound to a key is not accepted as a bearer token: `bound_tokens_need_the_dpop_scheme`.
//! - A proof is accepted once: `replayed_proofs_are_refused`, `evicted_proofs_can_never_be_replayed`.
//! - A proof counts only for its method, URI, token and key: `dpop_proofs_are_refused_with_their_reason`.
//!
//! [RFC 9449]: https://www.rfc-editor.org/rfc/rfc9449

mod binding;
mod error;
mod nonce;
mod proof;
mod replay;
mod target_uri;
mod verify;

pub use self::binding::{AuthorizationScheme, TokenBinding, require_binding};
pub use self::error::ProofError;
pub use self::nonce::{NonceKeys, NonceLifetime};
pub use self::proof::DpopProof;
pub use self::replay::{ReplayError, ReplayWindow};
pub use self::target_uri::TargetUri;
pub use self::verify::{NonceStatus, ProofRules, ProofVerifier, VerifiedProof, single_proof};

use crate::jose::encode_base64url;
use ring::digest::{SHA256, digest};

/// The media type of a proof.
const PROOF_TYPE: &str = "dpop+jwt";

/// Returns the value of `ath`: the digest of an access token
/// ([RFC 9449 §4.2](https://www.rfc-editor.org/rfc/rfc9449#section-4.2)).
fn token_hash(access_token: &str) -> String {
    encode_base64url(digest(&SHA256, access_token.as_bytes()))
}
