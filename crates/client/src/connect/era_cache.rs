use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trunkline_protocol::Era;

/// Targets that are remembered; beyond it the oldest is forgotten.
const MAX_TARGETS: usize = 1024;

/// The eras that servers turned out to be of, so that a server that was probed is not probed again each time.
///
/// Clones remember together. A verdict has a date and is forgotten after a day: a server that was legacy may be replaced by
/// one that is not, and would go on answering the old handshake.
#[derive(Clone, Default)]
pub struct EraCache {
    entries: Arc<Mutex<HashMap<String, (Era, Instant)>>>,
}

const ENTRY_TTL: Duration = Duration::from_secs(24 * 3600);

impl EraCache {
    /// Returns the era that a target turned out to be of, if that is known and not too long ago.
    pub(crate) fn get(&self, target: &str) -> Option<Era> {
        let known = self.entries.lock();
        let (era, when) = known.get(target)?;
        (when.elapsed() < ENTRY_TTL).then_some(*era)
    }

    /// Remembers an era.
    pub(crate) fn put(&self, target: &str, era: Era) {
        let mut known = self.entries.lock();
        if known.len() >= MAX_TARGETS && !known.contains_key(target) {
            let oldest = known.iter().min_by_key(|(_, (_, when))| *when).map(|(target, _)| target.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(target.to_owned(), (era, Instant::now()));
    }

    /// Forgets a target, since what was known of it was wrong.
    pub(crate) fn remove(&self, target: &str) {
        self.entries.lock().remove(target);
    }
}

/// Targets are not shown: the query of an address may be a secret.
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
    async fn a_verdict_is_forgotten_after_a_day_and_the_oldest_first_of_too_many() {
        let verdicts = EraCache::default();
        verdicts.put("a", Era::Legacy);
        assert_eq!(verdicts.clone().get("a"), Some(Era::Legacy));
        tokio::time::advance(ENTRY_TTL).await;
        assert_eq!(verdicts.get("a"), None);
        for number in 0..MAX_TARGETS {
            verdicts.put(&number.to_string(), Era::Modern);
        }
        assert!(!verdicts.entries.lock().contains_key("a"));
        assert_eq!(verdicts.entries.lock().len(), MAX_TARGETS);
    }
}
