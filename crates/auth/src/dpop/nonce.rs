use std::fmt;
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use trunkline_session::Timestamp;

use crate::jose::{decode_base64url, encode_base64url};

const KEY_BYTES: usize = 32;
const AEAD_NONCE_BYTES: usize = 12;
/// Separates these texts from others that the same key may encrypt.
const CONTEXT: &[u8] = b"trunkline dpop nonce";

/// The keys of DPoP nonces: the first makes them, all can read them.
///
/// A nonce is its own encrypted time, so that servers which share keys need no storage
/// ([RFC 9449 §8](https://www.rfc-editor.org/rfc/rfc9449#section-8)).
pub struct NonceKeys(Vec<LessSafeKey>);

/// For how long a nonce is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NonceLifetime {
    /// The age up to which a nonce is accepted; 5 min. A new one is sent at half of it.
    pub accepted: Duration,
    /// The tolerated difference to the clocks of other servers with the same keys; 1 min.
    pub skew: Duration,
}

impl Default for NonceLifetime {
    fn default() -> Self {
        Self { accepted: Duration::from_secs(300), skew: Duration::from_secs(60) }
    }
}

impl NonceKeys {
    /// Takes keys of 32 random bytes each; `None` if there are none.
    pub fn new(keys: &[[u8; KEY_BYTES]]) -> Option<Self> {
        let keys = keys.iter().map(|key| UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new));
        let keys: Vec<_> = keys.collect::<Option<_>>()?;
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Makes a nonce for the header `DPoP-Nonce`. `random` must not repeat under one key. `None` only if encryption
    /// fails, which it does not for a text of this length.
    pub fn issue(&self, random: [u8; AEAD_NONCE_BYTES], now: Timestamp) -> Option<String> {
        let mut sealed = now.0.to_le_bytes().to_vec();
        let nonce = Nonce::assume_unique_for_key(random);
        self.0.first()?.seal_in_place_append_tag(nonce, Aad::from(CONTEXT), &mut sealed).ok()?;
        Some(encode_base64url([&random[..], &sealed].concat()))
    }

    /// Returns when a nonce was made; `None` if it is not of these keys, too old, or from the future.
    pub fn check(&self, nonce: &str, lifetime: NonceLifetime, now: Timestamp) -> Option<Timestamp> {
        const WHOLE_BYTES: usize = AEAD_NONCE_BYTES + 8 + 16;
        // The length of the text is checked first: a longer one is not worth decoding.
        if nonce.len() != WHOLE_BYTES.div_ceil(3) * 4 {
            return None;
        }
        let whole = decode_base64url(nonce).ok()?;
        let (random, sealed) = whole.split_first_chunk::<AEAD_NONCE_BYTES>()?;
        let issued = self.0.iter().find_map(|key| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*random);
            let plain = key.open_in_place(nonce, Aad::from(CONTEXT), &mut sealed).ok()?;
            Some(Timestamp(u64::from_le_bytes(<[u8; 8]>::try_from(&*plain).ok()?)))
        })?;
        let is_current = now.since(issued) <= lifetime.accepted && issued.since(now) <= lifetime.skew;
        is_current.then_some(issued)
    }
}

impl fmt::Debug for NonceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NonceKeys({} keys)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    #[test]
    fn nonce_is_accepted_only_within_its_lifetime() {
        let keys = NonceKeys::new(&[[1; 32]]).unwrap();
        let nonce = keys.issue([2; 12], NOW).unwrap();
        let lifetime = NonceLifetime::default();
        for (now, accepted) in [
            (NOW.0, true),
            (NOW.0 + 300_000, true),
            (NOW.0 + 300_001, false),
            (NOW.0 - 60_000, true),
            (NOW.0 - 60_001, false),
            (0, false),
            (u64::MAX, false),
        ] {
            let expected = accepted.then_some(NOW);
            assert_eq!(keys.check(&nonce, lifetime, Timestamp(now)), expected, "{now}");
        }
    }

    #[test]
    fn first_nonce_key_issues_and_all_keys_check() {
        assert!(NonceKeys::new(&[]).is_none());
        let old = NonceKeys::new(&[[1; 32]]).unwrap();
        let both = NonceKeys::new(&[[2; 32], [1; 32]]).unwrap();
        let (before, after) = (old.issue([0; 12], NOW).unwrap(), both.issue([0; 12], NOW).unwrap());
        let lifetime = NonceLifetime::default();
        assert!(both.check(&before, lifetime, NOW).is_some());
        assert!(both.check(&after, lifetime, NOW).is_some());
        assert!(old.check(&after, lifetime, NOW).is_none());
        assert_eq!(format!("{both:?}"), "NonceKeys(2 keys)");
    }

    #[test]
    fn altered_nonce_is_refused() {
        let keys = NonceKeys::new(&[[1; 32]]).unwrap();
        let nonce = keys.issue([2; 12], NOW).unwrap();
        let whole = decode_base64url(&nonce).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                keys.check(&encode_base64url(changed), NonceLifetime::default(), NOW),
                None,
                "bit {bit}"
            );
        }
        for text in ["", "x", &nonce.repeat(2), &format!("{nonce}A"), &"=".repeat(48), &"A".repeat(48)] {
            assert_eq!(keys.check(text, NonceLifetime::default(), NOW), None, "{text}");
        }
    }
}
