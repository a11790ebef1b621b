use std::fmt;
use std::sync::Arc;

use trunkline_session::Timestamp;
use zeroize::Zeroizing;

use super::verified_cache::CacheGeneration;
use super::{AccessTokenClaims, TokenDigest, TokenError, VerifiedTokens};

/// The token of the last request on one connection.
///
/// A client sends the same token with every request, and the digest of a token of 1 KiB takes 1 to 2 µs. To compare it
/// with the last one takes a twentieth of that, and no lock.
#[derive(Default)]
pub struct RecentToken(Option<RecentEntry>);

struct RecentEntry {
    token: Zeroizing<Box<[u8]>>,
    claims: Arc<AccessTokenClaims>,
    generation: CacheGeneration,
    until: Timestamp,
}

impl RecentToken {
    /// The longest token that is stored, so that connections which idle take little memory.
    pub const MAX_BYTES: usize = 4096;

    /// Returns the result of an earlier check of the token: on this connection, or else as [`VerifiedTokens::get`].
    pub fn get(
        &mut self,
        cache: &VerifiedTokens,
        token: &str,
        now: Timestamp,
    ) -> Option<Result<Arc<AccessTokenClaims>, TokenError>> {
        let generation = cache.generation();
        if let Some(entry) = &self.0
            && entry.generation == generation
            && now < entry.until
            && equal_in_constant_time(&entry.token, token.as_bytes())
        {
            return Some(Ok(entry.claims.clone()));
        }
        let (result, until) = cache.get_until(TokenDigest::of(token), generation, now)?;
        if let Ok(claims) = &result
            && token.len() <= Self::MAX_BYTES
        {
            let token = Zeroizing::new(Box::from(token.as_bytes()));
            self.0 = Some(RecentEntry { token, claims: claims.clone(), generation, until });
        }
        Some(result)
    }
}

impl fmt::Debug for RecentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecentToken").field(&self.0.as_ref().map(|_| "…")).finish()
    }
}

/// Compares all bytes, whichever differ: behind a proxy one connection may have requests of several clients. The words
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
    use crate::access_token::{TokenSource, VerifiedTokenLimits};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn claims(subject: &'static str) -> Arc<AccessTokenClaims> {
        let claims = AccessTokenClaims::read(JsonObject::new(), "i".into(), Some(subject.into()), None);
        Arc::new(claims.unwrap())
    }

    fn store(cache: &VerifiedTokens, token: &str, subject: &'static str) {
        let digest = TokenDigest::of(token);
        cache.insert(digest, token.len(), claims(subject), TokenSource::Jwt, cache.generation(), NOW);
    }

    #[test]
    fn recent_token_is_returned_only_for_itself() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        store(&cache, "token-of-ann", "ann");
        store(&cache, "token-of-bob", "bob");
        let mut recent = RecentToken::default();
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
    fn recent_token_ends_with_its_cache_entry() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        store(&cache, "t", "ann");
        let mut recent = RecentToken::default();
        assert!(recent.get(&cache, "t", NOW).is_some());
        let end = NOW.plus(Duration::from_secs(300));
        assert!(recent.get(&cache, "t", Timestamp(end.0 - 1)).is_some());
        assert!(recent.get(&cache, "t", end).is_none());
        assert!(recent.get(&cache, "t", NOW).is_some());
        cache.clear();
        assert!(recent.get(&cache, "t", NOW).is_none());
    }

    #[test]
    fn long_and_refused_tokens_are_not_stored_per_connection() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        let long = "x".repeat(RecentToken::MAX_BYTES + 1);
        store(&cache, &long, "ann");
        cache.insert_refused(TokenDigest::of("bad"), TokenError::Inactive, cache.generation(), NOW);
        let mut recent = RecentToken::default();
        assert!(recent.get(&cache, &long, NOW).is_some_and(|result| result.is_ok()));
        assert_eq!(recent.get(&cache, "bad", NOW), Some(Err(TokenError::Inactive)));
        assert!(recent.0.is_none());
    }
}
