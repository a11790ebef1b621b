use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trunkline_protocol::Era;

/// Targets that are remembered; beyond it the oldest is forgotten.
const MOST: usize = 1024;

/// The eras that servers turned out to be of, so that a server that was probed is not probed again each time.
///
/// Clones remember together. A verdict has a date and is forgotten after a day: a server that was legacy may be replaced by
/// one that is not, and would go on answering the old handshake.
#[derive(Clone, Default)]
pub struct Verdicts {
    known: Arc<Mutex<HashMap<String, (Era, Instant)>>>,
}

const KEEP: Duration = Duration::from_secs(24 * 3600);

impl Verdicts {
    /// Returns the era that a target turned out to be of, if that is known and not too long ago.
    pub(crate) fn get(&self, target: &str) -> Option<Era> {
        let known = self.known.lock();
        let (era, when) = known.get(target)?;
        (when.elapsed() < KEEP).then_some(*era)
    }

    /// Remembers an era.
    pub(crate) fn put(&self, target: &str, era: Era) {
        let mut known = self.known.lock();
        if known.len() >= MOST && !known.contains_key(target) {
            let oldest = known.iter().min_by_key(|(_, (_, when))| *when).map(|(target, _)| target.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(target.to_owned(), (era, Instant::now()));
    }

    /// Forgets a target, since what was known of it was wrong.
    pub(crate) fn forget(&self, target: &str) {
        self.known.lock().remove(target);
    }
}

/// Targets are not shown: the query of an address may be a secret.
impl fmt::Debug for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.known.lock().len();
        f.debug_struct("Verdicts").field("known", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_verdict_is_forgotten_after_a_day_and_the_oldest_first_of_too_many() {
        let verdicts = Verdicts::default();
        verdicts.put("a", Era::Legacy);
        assert_eq!(verdicts.clone().get("a"), Some(Era::Legacy));
        tokio::time::advance(KEEP).await;
        assert_eq!(verdicts.get("a"), None);
        for number in 0..MOST {
            verdicts.put(&number.to_string(), Era::Modern);
        }
        assert!(!verdicts.known.lock().contains_key("a"));
        assert_eq!(verdicts.known.lock().len(), MOST);
    }
}
