use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trunkline_protocol::Era;

/// Cached targets; beyond it the oldest is evicted.
const MAX_TARGETS: usize = 1024;

/// Caches the eras of servers, so that a known server is not probed with every connection.
///
/// Clones share their entries. An entry expires after a day: a legacy server may be replaced by a modern one that
/// still accepts the legacy handshake.
#[derive(Clone, Default)]
pub struct EraCache {
    entries: Arc<Mutex<HashMap<String, (Era, Instant)>>>,
}

const ENTRY_TTL: Duration = Duration::from_secs(24 * 3600);

impl EraCache {
    /// Returns the era of a target, if it is cached and has not expired.
    pub(crate) fn get(&self, target: &str) -> Option<Era> {
        let known = self.entries.lock();
        let (era, when) = known.get(target)?;
        (when.elapsed() < ENTRY_TTL).then_some(*era)
    }

    /// Caches the era of a target.
    pub(crate) fn put(&self, target: &str, era: Era) {
        let mut known = self.entries.lock();
        if known.len() >= MAX_TARGETS && !known.contains_key(target) {
            let oldest = known.iter().min_by_key(|(_, (_, when))| *when).map(|(target, _)| target.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(target.to_owned(), (era, Instant::now()));
    }

    /// Removes all targets, so that each is probed again.
    pub fn clear(&self) {
        self.entries.lock().clear();
    }

    /// Removes a target with a wrong era.
    pub(crate) fn remove(&self, target: &str) {
        self.entries.lock().remove(target);
    }
}

/// Targets are redacted: the query of a URL may be a secret.
impl fmt::Debug for EraCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.entries.lock().len();
        f.debug_struct("EraCache").field("known", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn era_cache_entry_expires_after_a_day_and_the_oldest_is_evicted() {
        let era_cache = EraCache::default();
        era_cache.put("a", Era::Legacy);
        assert_eq!(era_cache.clone().get("a"), Some(Era::Legacy));
        tokio::time::advance(ENTRY_TTL).await;
        assert_eq!(era_cache.get("a"), None);
        for number in 0..MAX_TARGETS {
            era_cache.put(&number.to_string(), Era::Modern);
        }
        assert!(!era_cache.entries.lock().contains_key("a"));
        assert_eq!(era_cache.entries.lock().len(), MAX_TARGETS);
    }
}
