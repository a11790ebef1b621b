use std::fmt;
use std::sync::Arc;

use trunkline_session::Timestamp;
use zeroize::Zeroizing;

use super::verified_cache::CacheGeneration;
use super::{AccessTokenClaims, TokenDigest, TokenError, VerifiedTokens};

/// The tokens of the last requests, for one thread.
///
/// A client sends the same token with every request, and the digest of a token of 1 KiB takes 1 to 2 µs. To compare it
/// with a recent one takes a twentieth of that, and no lock. Several caches may share one table.
pub struct RecentTokens<T = Arc<AccessTokenClaims>> {
    entries: [Option<RecentEntry<T>>; SLOTS],
}

struct RecentEntry<T> {
    token: Zeroizing<Box<[u8]>>,
    value: T,
    generation: CacheGeneration,
    until: Timestamp,
}

/// The tokens that one table stores.
const SLOTS: usize = 32;

impl<T: Clone> RecentTokens<T> {
    /// The longest token that is stored, so that a table takes little memory.
    pub const MAX_BYTES: usize = 4096;

    /// Creates an empty table.
    pub const fn new() -> Self {
        Self { entries: [const { None }; SLOTS] }
    }

    /// Returns the result of an earlier check of the token: of this table, or else as [`VerifiedTokens::get`].
    pub fn get(
        &mut self,
        cache: &VerifiedTokens<T>,
        token: &str,
        now: Timestamp,
    ) -> Option<Result<T, TokenError>> {
        let generation = cache.generation();
        let entry = self.entries.get_mut(slot(token.as_bytes()))?;
        if let Some(entry) = entry
            && entry.generation == generation
            && now < entry.until
            && equal_in_constant_time(&entry.token, token.as_bytes())
        {
            return Some(Ok(entry.value.clone()));
        }
        let (result, until) = cache.get_until(TokenDigest::of(token), generation, now)?;
        if let Ok(value) = &result
            && token.len() <= Self::MAX_BYTES
        {
            let token = Zeroizing::new(Box::from(token.as_bytes()));
            *entry = Some(RecentEntry { token, value: value.clone(), generation, until });
        }
        Some(result)
    }
}

impl<T: Clone> Default for RecentTokens<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for RecentTokens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.entries.iter().flatten().count();
        write!(f, "RecentTokens({count} tokens)")
    }
}

/// Chooses the entry of a token by its last bytes, which are those of its signature or of a random text.
fn slot(token: &[u8]) -> usize {
    let last = token.last_chunk::<8>().map_or(0, |last| u64::from_le_bytes(*last));
    // The high bits of the product depend on all bytes.
    (last.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.ilog2())) as usize
}

/// Compares all bytes, whichever differ: one thread serves many clients. The words
/// are combined without a branch, which the compiler turns into vector instructions.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let words = a_words
        .iter()
        .zip(b_words)
        .fold(0, |difference, (a, b)| difference | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)));
    let rest = a_rest.iter().zip(b_rest).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(words | u64::from(rest)) == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use trunkline_protocol::JsonObject;

    use super::*;
    use crate::access_token::{CacheableToken, TokenSource, VerifiedTokenLimits};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn claims(subject: &'static str) -> Arc<AccessTokenClaims> {
        let claims = AccessTokenClaims::read(JsonObject::new(), "i".into(), Some(subject.into()), None);
        Arc::new(claims.unwrap())
    }

    fn store(cache: &VerifiedTokens, token: &str, subject: &'static str) {
        let digest = TokenDigest::of(token);
        let (value, size, source) = (claims(subject), token.len(), TokenSource::Jwt);
        cache.insert(digest, CacheableToken { value, size, source, expires: None }, cache.generation(), NOW);
    }

    #[test]
    fn recent_token_is_returned_only_for_itself() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        store(&cache, "token-of-ann", "ann");
        store(&cache, "token-of-bob", "bob");
        let mut recent = RecentTokens::default();
        for (token, subject) in [
            ("token-of-ann", Some("ann")),
            ("token-of-ann", Some("ann")),
            ("token-of-bob", Some("bob")),
            ("token-of-ann", Some("ann")),
            ("token-of-anm", None),
            ("token-of-an", None),
            ("token-of-annn", None),
            ("uoken-of-ann", None),
            ("", None),
            ("token-of-ann", Some("ann")),
        ] {
            let result = recent.get(&cache, token, NOW).map(Result::unwrap);
            assert_eq!(result.as_ref().map(|claims| &*claims.subject), subject, "{token}");
        }
        assert!(!format!("{recent:?}").contains("token-of"));
    }

    #[test]
    fn tables_of_several_caches_keep_their_tokens_apart() {
        let [first, second] = [(); 2].map(|()| VerifiedTokens::new(VerifiedTokenLimits::default()));
        store(&first, "token-of-ann", "ann");
        store(&second, "token-of-ann", "eve");
        let mut recent = RecentTokens::default();
        for (cache, subject) in [(&first, "ann"), (&second, "eve"), (&first, "ann")] {
            let claims = recent.get(cache, "token-of-ann", NOW).unwrap().unwrap();
            assert_eq!(&*claims.subject, subject);
        }
    }

    #[test]
    fn recent_token_ends_with_its_cache_entry() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        store(&cache, "t", "ann");
        let mut recent = RecentTokens::default();
        assert!(recent.get(&cache, "t", NOW).is_some());
        let end = NOW.plus(Duration::from_secs(300));
        assert!(recent.get(&cache, "t", Timestamp(end.0 - 1)).is_some());
        assert!(recent.get(&cache, "t", end).is_none());
        assert!(recent.get(&cache, "t", NOW).is_some());
        cache.clear();
        assert!(recent.get(&cache, "t", NOW).is_none());
    }

    #[test]
    fn long_and_refused_tokens_are_not_stored_per_thread() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        let long = "x".repeat(RecentTokens::<Arc<AccessTokenClaims>>::MAX_BYTES + 1);
        store(&cache, &long, "ann");
        cache.insert_refused(TokenDigest::of("bad"), TokenError::Inactive, cache.generation(), NOW);
        let mut recent = RecentTokens::default();
        assert!(recent.get(&cache, &long, NOW).is_some_and(|result| result.is_ok()));
        assert_eq!(recent.get(&cache, "bad", NOW), Some(Err(TokenError::Inactive)));
        assert_eq!(format!("{recent:?}"), "RecentTokens(0 tokens)");
    }
}
