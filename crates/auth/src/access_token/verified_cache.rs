use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use trunkline_session::Timestamp;

use super::{AccessTokenClaims, TokenError};

/// The SHA-256 digest of a token, under which it is cached; the token itself is not stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Takes the digest of a token.
    pub fn of(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }

    fn shard(self) -> usize {
        self.shard_of(SHARDS)
    }

    /// Returns one of `count` shards, at most 256, among which tokens are spread evenly.
    pub fn shard_of(self, count: usize) -> usize {
        let [first, ..] = self.0;
        usize::from(first).checked_rem(count).unwrap_or(0)
    }
}

/// Prints the first eight bytes, which identify a token in an audit record.
impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenDigest({self})")
    }
}

/// How a token was checked, which bounds the time for which the result is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenSource {
    /// By its signature.
    Jwt,
    /// By introspection, where revocation should soon have an effect.
    Introspection,
}

/// The bounds of a cache of verified tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedTokenLimits {
    /// The most accepted tokens, and the most refused ones; 8,192.
    pub entries: usize,
    /// The most bytes of accepted tokens; 16 MiB.
    pub bytes: usize,
    /// The longest time for which a JWT is cached; 5 min.
    pub jwt_age: Duration,
    /// The longest time for which the result of an introspection is cached; 1 min.
    pub introspected_age: Duration,
    /// The time for which a token that is not active is refused without a further introspection; 5 s.
    pub refused_age: Duration,
}

impl Default for VerifiedTokenLimits {
    fn default() -> Self {
        Self {
            entries: 8192,
            bytes: 16 * 1024 * 1024,
            jwt_age: Duration::from_secs(300),
            introspected_age: Duration::from_secs(60),
            refused_age: Duration::from_secs(5),
        }
    }
}

/// The locks among which tokens are spread, so that connections rarely wait for each other.
const SHARDS: usize = 16;

/// A bounded cache of checked tokens, with the result of each check: by default its claims.
///
/// A lookup costs one SHA-256 and one short lock. Refused tokens have space of their own, since a client can make up any
/// number of them and must not evict the valid ones.
pub struct VerifiedTokens<T = Arc<AccessTokenClaims>> {
    limits: VerifiedTokenLimits,
    generation: AtomicU64,
    accepted: [Mutex<TokenShard<T>>; SHARDS],
    refused: [Mutex<TokenShard<TokenError>>; SHARDS],
}

/// A valid token, as it is cached.
#[derive(Clone, Copy, Debug)]
pub struct CacheableToken<T> {
    /// The result of the check.
    pub value: T,
    /// The length of the token.
    pub size: usize,
    /// How it was checked.
    pub source: TokenSource,
    /// When it expires.
    pub expires: Option<Timestamp>,
}

/// The generation of the cache at the time when a check began. No two caches of a process have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeneration(u64);

fn next_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T: Clone> VerifiedTokens<T> {
    /// Creates an empty cache.
    pub fn new(limits: VerifiedTokenLimits) -> Self {
        Self {
            limits,
            generation: AtomicU64::new(next_generation()),
            accepted: std::array::from_fn(|_| Mutex::default()),
            refused: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Returns the result of an earlier check of the token.
    pub fn get(&self, token: TokenDigest, now: Timestamp) -> Option<Result<T, TokenError>> {
        self.get_until(token, self.generation(), now).map(|(result, _)| result)
    }

    /// Returns the result of an earlier check of the token, and the end of its validity.
    pub(super) fn get_until(
        &self,
        token: TokenDigest,
        generation: CacheGeneration,
        now: Timestamp,
    ) -> Option<(Result<T, TokenError>, Timestamp)> {
        if let Some((value, until)) = self.accepted.get(token.shard())?.lock().get(token, generation, now) {
            return Some((Ok(value), until));
        }
        let refused = self.refused.get(token.shard())?.lock().get(token, generation, now);
        refused.map(|(error, until)| (Err(error), until))
    }

    /// Returns the current generation. It is read before a check begins, so that the result of a check with old rules or
    /// keys is not cached after [`VerifiedTokens::clear`].
    pub fn generation(&self) -> CacheGeneration {
        CacheGeneration(self.generation.load(Ordering::Acquire))
    }

    /// Stores a valid token until its expiry, and at most for the time that its source allows.
    pub fn insert(
        &self,
        token: TokenDigest,
        checked: CacheableToken<T>,
        generation: CacheGeneration,
        now: Timestamp,
    ) {
        let CacheableToken { value, size, source, expires } = checked;
        let age = match source {
            TokenSource::Jwt => self.limits.jwt_age,
            TokenSource::Introspection => self.limits.introspected_age,
        };
        let until = now.plus(age);
        let until = expires.map_or(until, |expires| expires.min(until));
        let bounds = ShardBounds::of(self.limits.entries, self.limits.bytes);
        if let Some(shard) = self.accepted.get(token.shard()) {
            shard.lock().insert(token, ShardEntry { value, generation, until, size }, bounds);
        }
    }

    /// Stores that introspection has refused a token. JWTs are not stored: a wrong one costs no request.
    pub fn insert_refused(
        &self,
        token: TokenDigest,
        error: TokenError,
        generation: CacheGeneration,
        now: Timestamp,
    ) {
        let until = now.plus(self.limits.refused_age);
        let bounds = ShardBounds::of(self.limits.entries, usize::MAX);
        if let Some(shard) = self.refused.get(token.shard()) {
            shard.lock().insert(token, ShardEntry { value: error, generation, until, size: 0 }, bounds);
        }
    }

    /// Invalidates all entries, after new rules were loaded or a key was withdrawn.
    pub fn clear(&self) {
        self.generation.store(next_generation(), Ordering::Release);
    }
}

impl<T> fmt::Debug for VerifiedTokens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokens").field("limits", &self.limits).finish_non_exhaustive()
    }
}

struct ShardEntry<T> {
    value: T,
    generation: CacheGeneration,
    until: Timestamp,
    size: usize,
}

#[derive(Clone, Copy)]
struct ShardBounds {
    entries: usize,
    bytes: usize,
}

impl ShardBounds {
    fn of(entries: usize, bytes: usize) -> Self {
        Self { entries: entries.div_ceil(SHARDS), bytes: bytes / SHARDS }
    }
}

/// A part of the tokens. The queue has each key of the map once, in the order of insertion.
struct TokenShard<T> {
    entries: HashMap<TokenDigest, ShardEntry<T>>,
    order: VecDeque<TokenDigest>,
    bytes: usize,
}

impl<T> Default for TokenShard<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Clone> TokenShard<T> {
    fn get(&self, token: TokenDigest, generation: CacheGeneration, now: Timestamp) -> Option<(T, Timestamp)> {
        let entry = self.entries.get(&token)?;
        (entry.generation == generation && now < entry.until).then(|| (entry.value.clone(), entry.until))
    }

    fn insert(&mut self, token: TokenDigest, entry: ShardEntry<T>, bounds: ShardBounds) {
        if entry.size > bounds.bytes || bounds.entries == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_add(entry.size);
        match self.entries.insert(token, entry) {
            Some(old) => self.bytes = self.bytes.saturating_sub(old.size),
            None => self.order.push_back(token),
        }
        while self.entries.len() > bounds.entries || self.bytes > bounds.bytes {
            let Some(oldest) = self.order.pop_front() else { break };
            let removed = self.entries.remove(&oldest).map_or(0, |entry| entry.size);
            self.bytes = self.bytes.saturating_sub(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::JsonObject;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn after(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    fn claims(expires: Option<u64>) -> Arc<AccessTokenClaims> {
        let (claims, expires) = (JsonObject::new(), expires.map(after));
        Arc::new(AccessTokenClaims::read(claims, "i".into(), Some("ann".into()), expires).unwrap())
    }

    fn cacheable(
        value: Arc<AccessTokenClaims>,
        size: usize,
        source: TokenSource,
    ) -> CacheableToken<Arc<AccessTokenClaims>> {
        CacheableToken { expires: value.expires, value, size, source }
    }

    #[test]
    fn cached_token_ends_with_its_expiry_or_the_bound_of_its_source() {
        for (source, expires, last) in [
            (TokenSource::Jwt, Some(100), 99),
            (TokenSource::Jwt, Some(100_000), 299),
            (TokenSource::Introspection, Some(30), 29),
            (TokenSource::Introspection, Some(100_000), 59),
            (TokenSource::Introspection, None, 59),
        ] {
            let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
            let token = TokenDigest::of("t");
            assert_eq!(cache.get(token, NOW), None);
            cache.insert(token, cacheable(claims(expires), 1, source), cache.generation(), NOW);
            assert_eq!(cache.get(token, after(last)), Some(Ok(claims(expires))), "{source:?} {expires:?}");
            assert_eq!(cache.get(token, after(last + 1)), None, "{source:?} {expires:?}");
            assert_eq!(cache.get(TokenDigest::of("u"), NOW), None);
        }
    }

    #[test]
    fn refused_token_is_cached_briefly_and_never_evicts_a_valid_one() {
        let cache =
            VerifiedTokens::new(VerifiedTokenLimits { entries: 16, ..VerifiedTokenLimits::default() });
        let (valid, refused) = (TokenDigest::of("valid"), TokenDigest::of("refused"));
        cache.insert(valid, cacheable(claims(None), 1, TokenSource::Jwt), cache.generation(), NOW);
        cache.insert_refused(refused, TokenError::Inactive, cache.generation(), NOW);
        assert_eq!(cache.get(refused, after(4)), Some(Err(TokenError::Inactive)));
        assert_eq!(cache.get(refused, after(5)), None);
        for number in 0..10_000 {
            let token = TokenDigest::of(&number.to_string());
            cache.insert_refused(token, TokenError::Inactive, cache.generation(), NOW);
        }
        assert!(cache.get(valid, NOW).is_some());
        let stored: usize = cache.refused.iter().map(|shard| shard.lock().entries.len()).sum();
        assert!(stored <= 16, "{stored}");
    }

    #[test]
    fn cache_is_bounded_in_entries_and_bytes() {
        let limits = VerifiedTokenLimits { entries: 160, bytes: 16_000, ..VerifiedTokenLimits::default() };
        for (size, most) in [(1, 160), (500, 32), (1001, 0)] {
            let cache = VerifiedTokens::new(limits);
            for number in 0..2000 {
                let token = TokenDigest::of(&(number % 1500).to_string());
                cache.insert(token, cacheable(claims(None), size, TokenSource::Jwt), cache.generation(), NOW);
            }
            let mut stored = 0;
            for shard in &cache.accepted {
                let shard = shard.lock();
                stored += shard.entries.len();
                assert_eq!(shard.order.len(), shard.entries.len());
                assert_eq!(shard.bytes, shard.entries.len() * size);
            }
            assert_eq!(stored, most, "{size}");
        }
    }

    #[test]
    fn clearing_invalidates_old_results_and_those_of_running_checks() {
        let cache = VerifiedTokens::new(VerifiedTokenLimits::default());
        let token = TokenDigest::of("t");
        let before = cache.generation();
        cache.insert(token, cacheable(claims(None), 1, TokenSource::Jwt), before, NOW);
        cache.clear();
        assert_eq!(cache.get(token, NOW), None);
        cache.insert(token, cacheable(claims(None), 1, TokenSource::Jwt), before, NOW);
        assert_eq!(cache.get(token, NOW), None, "a check that began before");
        cache.insert(token, cacheable(claims(None), 1, TokenSource::Jwt), cache.generation(), NOW);
        assert!(cache.get(token, NOW).is_some());
    }

    #[test]
    fn token_digest_prints_eight_bytes() {
        assert_eq!(TokenDigest::of("abc").to_string(), "ba7816bf8f01cfea");
    }
}
