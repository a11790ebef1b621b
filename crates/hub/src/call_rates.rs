//! Rate limits of callers and of servers: token buckets, in the form of the time at which each is full again (GCRA).

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::time::Instant;
use trunkline_config::{CallRate, ServerName};
use trunkline_protocol::Refusal;
use trunkline_server::{Caller, IncomingCall};
use trunkline_session::Principal;

/// The callers, and the servers, with a bucket that is not full. Beyond it the bucket that is full soonest is dropped.
pub(crate) const MAX_BUCKETS: usize = 16_384;

/// Counts the calls of callers and to servers against their rates.
#[derive(Debug, Default)]
pub(crate) struct CallRates {
    per_caller: RwLock<Option<CallRate>>,
    callers: RateBuckets<(CallerParty, CallStage)>,
    servers: RateBuckets<(ServerName, CallStage)>,
}

/// The callers that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallerParty {
    Principal(Principal),
    /// All clients without credentials of another host.
    Host(IpAddr),
}

impl CallerParty {
    /// Clients without credentials of this host are counted together, since a proxy may stand before the hub.
    fn of(caller: &Caller) -> Self {
        let host = caller.remote_host().filter(|host| !host.is_loopback());
        match (&caller.principal, host) {
            (Principal::Anonymous, Some(host)) => Self::Host(host),
            (principal, _) => Self::Principal(principal.clone()),
        }
    }
}

/// What a request does to a call. The two are counted separately at the same rate: a call that has begun does not fail
/// because others begin, and a client that repeats a continuation over and over is limited all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CallStage {
    Begin,
    /// It brings answers to input requests, or asks whether the call is done.
    Continue,
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

    /// Counts the request of a call for its caller, and for its server if that has a rate.
    ///
    /// # Errors
    /// [`Refusal::RATE_LIMITED`], with the time until a retry.
    pub(crate) fn admit(
        &self,
        call: &IncomingCall,
        server: &ServerName,
        server_rate: Option<CallRate>,
    ) -> Result<(), Refusal> {
        let now = Instant::now();
        let stage = if call.continuation.is_some() { CallStage::Continue } else { CallStage::Begin };
        let party = || call.context.with_caller(CallerParty::of);
        let per_caller = self.per_caller.read().map(|rate| ((party(), stage), rate));
        let per_server = server_rate.map(|rate| ((server.clone(), stage), rate));
        self.take(per_caller, per_server, now)
    }

    /// Takes one call out of both buckets, or out of neither: a server that has no calls left costs its callers none.
    fn take(
        &self,
        caller: Option<((CallerParty, CallStage), CallRate)>,
        server: Option<((ServerName, CallStage), CallRate)>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let caller = caller.map(|(key, rate)| self.callers.reserve(key, rate, now)).transpose();
        let caller = caller.map_err(|free_at| Refusal::rate_limited(free_at - now, None))?;
        if let Some((key, rate)) = server {
            let name = key.0.clone();
            let reserved = self.servers.reserve(key, rate, now);
            let refused = |free_at: Instant| Refusal::rate_limited(free_at - now, Some(name.as_str()));
            reserved.map_err(refused)?.take();
        }
        if let Some(caller) = caller {
            caller.take();
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
    /// Reserves one call of a bucket; returns when there will be one if it is empty. The buckets are locked until the call
    /// is taken.
    fn reserve(&self, key: K, rate: CallRate, now: Instant) -> Result<ReservedCall<'_, K>, Instant> {
        let buckets = self.full_at.lock();
        let full_at = buckets.get(&key).copied().filter(|full_at| *full_at > now).unwrap_or(now);
        // With a lower rate than before the bucket is empty at most.
        let next = (full_at + rate.interval()).min(now + rate.period + rate.interval());
        if next > now + rate.period {
            return Err(now + (next - now - rate.period));
        }
        Ok(ReservedCall { buckets, key, next, now })
    }
}

/// A call that a bucket has; it is not counted unless it is taken.
struct ReservedCall<'a, K> {
    buckets: MutexGuard<'a, HashMap<K, Instant>>,
    key: K,
    /// When the bucket is full again without it.
    next: Instant,
    now: Instant,
}

impl<K: Clone + Eq + Hash> ReservedCall<'_, K> {
    fn take(mut self) {
        match self.buckets.get_mut(&self.key) {
            Some(known) => *known = self.next,
            None => {
                make_room(&mut self.buckets, self.now);
                self.buckets.insert(self.key, self.next);
            }
        }
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

    /// Takes one call out of a bucket.
    fn take<K: Clone + Eq + Hash>(
        buckets: &RateBuckets<K>,
        key: K,
        rate: CallRate,
        now: Instant,
    ) -> Result<(), Instant> {
        buckets.reserve(key, rate, now).map(ReservedCall::take)
    }

    #[test]
    fn calls_that_a_server_has_no_room_for_cost_their_caller_none() {
        let (rates, now) = (CallRates::new(None), Instant::now());
        let caller = || ((CallerParty::Host([192, 0, 2, 1].into()), CallStage::Begin), rate("3/1m"));
        let server = |name: &str| ((ServerName::parse(name).unwrap(), CallStage::Begin), rate("1/1m"));
        rates.take(Some(caller()), Some(server("slow")), now).unwrap();
        for _ in 0..10 {
            let refused = rates.take(Some(caller()), Some(server("slow")), now).unwrap_err();
            assert!(refused.to_string().contains("slow"), "{refused}");
        }
        rates.take(Some(caller()), Some(server("other")), now).unwrap();
        rates.take(Some(caller()), None, now).unwrap();
        // Nor does a caller without calls cost the server any.
        rates.take(Some(caller()), Some(server("third")), now).unwrap_err();
        rates.take(None, Some(server("third")), now).unwrap();
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
            assert_eq!(take(&buckets, "a", rate, at(now)).err(), free_at.map(at), "at {now} ms");
        }
        assert_eq!(take(&buckets, "b", rate, at(60_000)), Ok(()), "another caller has another bucket");
    }

    #[test]
    fn lower_rate_counts_at_once() {
        let (buckets, now) = (RateBuckets::default(), Instant::now());
        for _ in 0..60 {
            take(&buckets, "a", rate("60/1m"), now).unwrap();
        }
        let free_at = take(&buckets, "a", rate("2/1s"), now).unwrap_err();
        assert_eq!(free_at - now, Duration::from_millis(500));
    }

    #[test]
    fn number_of_buckets_is_bounded() {
        let (buckets, now) = (RateBuckets::default(), Instant::now());
        let rate = rate("2/1h");
        take(&buckets, usize::MAX, rate, now).unwrap();
        for _ in 0..2 {
            (0..MAX_BUCKETS + 10).for_each(|key| take(&buckets, key, rate, now).unwrap_or_default());
        }
        assert_eq!(buckets.full_at.lock().len(), MAX_BUCKETS);
        let later = now + Duration::from_secs(2 * 3600);
        take(&buckets, usize::MAX - 1, rate, later).unwrap();
        assert_eq!(buckets.full_at.lock().len(), 1, "full buckets are not kept");
    }
}
