//! Rate limits of callers and of servers: token buckets, in the form of the time at which each is full again (GCRA).

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use trunkline_config::{CallRate, ServerName};
use trunkline_protocol::Refusal;
use trunkline_session::Principal;

/// The callers, and the servers, with a bucket that is not full. Beyond it the bucket that is full soonest is dropped.
pub(crate) const MAX_BUCKETS: usize = 16_384;

/// Counts the calls of callers and to servers against their rates.
#[derive(Debug, Default)]
pub(crate) struct CallRates {
    per_caller: RwLock<Option<CallRate>>,
    callers: RateBuckets<Principal>,
    servers: RateBuckets<ServerName>,
}

impl CallRates {
    /// Creates the counters, with the rate of each caller.
    pub(crate) fn new(per_caller: Option<CallRate>) -> Self {
        Self { per_caller: RwLock::new(per_caller), ..Self::default() }
    }

    /// Replaces the rate of each caller.
    pub(crate) fn set_per_caller(&self, rate: Option<CallRate>) {
        *self.per_caller.write() = rate;
    }

    /// Counts a call of a caller, and one to a server if that has a rate.
    ///
    /// # Errors
    /// [`Refusal::RATE_LIMITED`], with the time until a retry.
    pub(crate) fn admit(
        &self,
        caller: &Principal,
        server: &ServerName,
        server_rate: Option<CallRate>,
    ) -> Result<(), Refusal> {
        let now = Instant::now();
        let per_caller = *self.per_caller.read();
        if let Some(rate) = per_caller {
            let wait = self.callers.take(caller, rate, now);
            wait.map_err(|free_at| Refusal::rate_limited(free_at - now, None))?;
        }
        if let Some(rate) = server_rate {
            let wait = self.servers.take(server, rate, now);
            wait.map_err(|free_at| Refusal::rate_limited(free_at - now, Some(server.as_str())))?;
        }
        Ok(())
    }
}

/// The buckets of callers or servers; those that are full are not kept.
#[derive(Debug)]
struct RateBuckets<K> {
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K> Default for RateBuckets<K> {
    fn default() -> Self {
        Self { full_at: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash> RateBuckets<K> {
    /// Takes one call out of a bucket; returns when there will be one if it is empty.
    fn take(&self, key: &K, rate: CallRate, now: Instant) -> Result<(), Instant> {
        let mut buckets = self.full_at.lock();
        let full_at = buckets.get(key).copied().filter(|full_at| *full_at > now).unwrap_or(now);
        // With a lower rate than before the bucket is empty at most.
        let next = (full_at + rate.interval()).min(now + rate.period + rate.interval());
        if next > now + rate.period {
            return Err(now + (next - now - rate.period));
        }
        match buckets.get_mut(key) {
            Some(known) => *known = next,
            None => {
                make_room(&mut buckets, now);
                buckets.insert(key.clone(), next);
            }
        }
        Ok(())
    }
}

/// Drops the buckets that are full, and one more if there is no other.
fn make_room<K: Clone + Eq + Hash>(buckets: &mut HashMap<K, Instant>, now: Instant) {
    if buckets.len() < MAX_BUCKETS {
        return;
    }
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() >= MAX_BUCKETS {
        let soonest = buckets.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| key.clone());
        soonest.and_then(|key| buckets.remove(&key));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rate(text: &str) -> CallRate {
        CallRate::parse(text).unwrap()
    }

    #[test]
    fn bucket_allows_its_burst_and_then_the_average_rate() {
        let (buckets, start) = (RateBuckets::default(), Instant::now());
        let at = |millis: u64| start + Duration::from_millis(millis);
        let rate = rate("4/1s");
        // When a call comes, and when the next one would be allowed if it is refused.
        for (now, free_at) in [
            (0, None),
            (0, None),
            (0, None),
            (0, None),
            (0, Some(250)),
            (100, Some(250)),
            (250, None),
            (250, Some(500)),
            (600, None),
            (600, Some(750)),
            (60_000, None),
            (60_000, None),
            (60_000, None),
            (60_000, None),
            (60_000, Some(60_250)),
        ] {
            assert_eq!(buckets.take(&"a", rate, at(now)).err(), free_at.map(at), "at {now} ms");
        }
        assert_eq!(buckets.take(&"b", rate, at(60_000)), Ok(()), "another caller has another bucket");
    }

    #[test]
    fn lower_rate_counts_at_once() {
        let (buckets, now) = (RateBuckets::default(), Instant::now());
        for _ in 0..60 {
            buckets.take(&"a", rate("60/1m"), now).unwrap();
        }
        let free_at = buckets.take(&"a", rate("2/1s"), now).unwrap_err();
        assert_eq!(free_at - now, Duration::from_millis(500));
    }

    #[test]
    fn number_of_buckets_is_bounded() {
        let (buckets, now) = (RateBuckets::default(), Instant::now());
        let rate = rate("2/1h");
        buckets.take(&usize::MAX, rate, now).unwrap();
        for _ in 0..2 {
            (0..MAX_BUCKETS + 10).for_each(|key| buckets.take(&key, rate, now).unwrap_or_default());
        }
        assert_eq!(buckets.full_at.lock().len(), MAX_BUCKETS);
        let later = now + Duration::from_secs(2 * 3600);
        buckets.take(&(usize::MAX - 1), rate, later).unwrap();
        assert_eq!(buckets.full_at.lock().len(), 1, "full buckets are not kept");
    }
}
