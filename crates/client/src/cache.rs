//! Caches results for as long as the server allows.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use trunkline_protocol::ByteString;
use trunkline_protocol::model::CacheHint;

/// The upper bound for the server's `ttlMs`.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// The cached results of one client. The server's cache scope (public or private) makes no difference, since only
/// this client reads the cache, with its own credentials.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    max_entries: usize,
    max_bytes: usize,
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    entries: HashMap<CacheKey, CacheEntry>,
    bytes: usize,
    /// Generation counter: bumped by every change notification, so that a result requested before it is not cached
    /// after it.
    generation: u64,
}

#[derive(Debug)]
struct CacheEntry {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    expires_at: Instant,
    stored_at: Instant,
}

/// The request that a cached result answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheKey {
    /// A whole list, by its method.
    List(&'static str),
    /// A resource, by its URI.
    Read(ByteString),
}

/// A reservation for a cache entry, made before the request is sent.
#[derive(Clone, Debug)]
pub(crate) struct CacheReservation {
    pub(crate) key: CacheKey,
    generation: u64,
}

impl ResponseCache {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { max_entries, max_bytes, state: Mutex::default() }
    }

    pub(crate) fn reserve(&self, key: CacheKey) -> CacheReservation {
        CacheReservation { key, generation: self.lock().generation }
    }

    /// Returns a result that has not expired.
    pub(crate) fn get<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        let state = self.lock();
        let entry = state.entries.get(key).filter(|entry| Instant::now() < entry.expires_at)?;
        entry.value.clone().downcast().ok()
    }

    /// Caches a result of about `bytes` bytes, if the hint and the limits allow it; `value` is only called then.
    pub(crate) fn put<T: Any + Send + Sync>(
        &self,
        reservation: CacheReservation,
        hint: CacheHint,
        bytes: usize,
        value: impl FnOnce() -> Arc<T>,
    ) {
        if hint.ttl_ms == 0 || bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        let now = Instant::now();
        let until = now + Duration::from_millis(hint.ttl_ms).min(MAX_TTL);
        let mut state = self.lock();
        if state.generation != reservation.generation {
            return;
        }
        state.remove(&reservation.key);
        state.evict(now, self.max_entries - 1, self.max_bytes - bytes);
        state.bytes += bytes;
        state
            .entries
            .insert(reservation.key, CacheEntry { value: value(), bytes, expires_at: until, stored_at: now });
    }

    /// Removes entries that a change has made stale.
    pub(crate) fn invalidate(&self, is_old: impl Fn(&CacheKey) -> bool) {
        let mut state = self.lock();
        state.generation += 1;
        let old: Vec<CacheKey> = state.entries.keys().filter(|key| is_old(key)).cloned().collect();
        for key in old {
            state.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock()
    }
}

impl CacheState {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Evicts expired entries first, then the oldest.
    fn evict(&mut self, now: Instant, max_entries: usize, max_bytes: usize) {
        if self.entries.len() <= max_entries && self.bytes <= max_bytes {
            return;
        }
        let over: Vec<CacheKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.expires_at <= now)
            .map(|(key, _)| key.clone())
            .collect();
        over.iter().for_each(|key| self.remove(key));
        while self.entries.len() > max_entries || self.bytes > max_bytes {
            let oldest =
                self.entries.iter().min_by_key(|(_, entry)| entry.stored_at).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::model::CacheScope;

    use super::*;

    fn for_ms(ttl_ms: u64) -> CacheHint {
        CacheHint { ttl_ms, scope: CacheScope::Private }
    }

    fn read(uri: &str) -> CacheKey {
        CacheKey::Read(uri.into())
    }

    fn put(cache: &ResponseCache, uri: &str, ttl_ms: u64, bytes: usize) {
        cache.put(cache.reserve(read(uri)), for_ms(ttl_ms), bytes, || Arc::new(uri.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn cached_result_expires_after_the_servers_ttl() {
        let cache = ResponseCache::new(8, 1000);
        put(&cache, "a", 100, 1);
        put(&cache, "b", 0, 1);
        assert_eq!(cache.get::<String>(&read("a")).as_deref().map(String::as_str), Some("a"));
        assert!(cache.get::<String>(&read("b")).is_none());
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(cache.get::<String>(&read("a")).is_none());
        put(&cache, "c", u64::MAX, 1);
        tokio::time::advance(MAX_TTL).await;
        assert!(cache.get::<String>(&read("c")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn result_requested_before_a_change_is_not_cached_after_it() {
        let cache = ResponseCache::new(8, 1000);
        let reservation = cache.reserve(read("a"));
        cache.invalidate(|_| false);
        cache.put(reservation, for_ms(100), 1, || Arc::new(String::new()));
        assert!(cache.get::<String>(&read("a")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_results_are_evicted_when_the_cache_is_full() {
        let cache = ResponseCache::new(3, 100);
        for (uri, bytes) in [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("e", 90), ("f", 101)] {
            put(&cache, uri, 1000, bytes);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let cached: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .into_iter()
            .filter(|uri| cache.get::<String>(&read(uri)).is_some())
            .collect();
        assert_eq!(cached, ["d", "e"]);
        assert_eq!(cache.lock().bytes, 100);
        cache.invalidate(|key| *key == read("d"));
        assert_eq!(cache.lock().bytes, 90);
    }
}
