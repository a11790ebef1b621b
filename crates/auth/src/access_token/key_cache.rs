use std::sync::Arc;
use std::time::Duration;

use trunkline_session::Timestamp;

use crate::jose::JwkSet;

/// When the keys of an issuer are fetched, and for how long they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyCachePolicy {
    /// The shortest time between regular fetches, whatever `Cache-Control` states; 1 min.
    pub shortest_age: Duration,
    /// The time until a regular fetch if `Cache-Control` states none; 10 min.
    pub default_age: Duration,
    /// The longest time until a regular fetch, whatever `Cache-Control` states; 1 h. A withdrawn key is accepted no
    /// longer than this.
    pub longest_age: Duration,
    /// The time for which keys are used after their age while fetches fail; 4 h.
    pub stale_for: Duration,
    /// The shortest time between a fetch and a further one because of an unknown key; 1 min. Otherwise a client could
    /// cause one fetch for each token that it makes up.
    pub unknown_key_interval: Duration,
    /// The time after a failed fetch until the next; 10 s. A fetch without a result counts as failed after this time.
    pub retry_interval: Duration,
}

impl Default for KeyCachePolicy {
    fn default() -> Self {
        Self {
            shortest_age: Duration::from_secs(60),
            default_age: Duration::from_secs(600),
            longest_age: Duration::from_secs(3600),
            stale_for: Duration::from_secs(4 * 3600),
            unknown_key_interval: Duration::from_secs(60),
            retry_interval: Duration::from_secs(10),
        }
    }
}

/// The keys of one issuer, and the state of their fetches.
///
/// It fetches nothing itself: a caller checks [`KeyCache::begin_fetch`], fetches the JWKS if it is due, and stores it with
/// [`KeyCache::fetched`].
#[derive(Debug)]
pub struct KeyCache {
    policy: KeyCachePolicy,
    keys: Option<CachedKeys>,
    last_attempt: Option<FetchAttempt>,
}

#[derive(Debug)]
struct CachedKeys {
    set: Arc<JwkSet>,
    fresh_until: Timestamp,
}

#[derive(Debug)]
struct FetchAttempt {
    began: Timestamp,
    succeeded: bool,
}

/// Why keys would be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchReason {
    /// There are no keys yet, or they have reached their age.
    Age,
    /// A token is signed with a key that is not in the set.
    UnknownKey,
}

/// Whether a fetch has removed keys, so that tokens which they verified must be checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyWithdrawal {
    /// All earlier keys are still in the set.
    None,
    /// Some are not.
    Withdrawn,
}

impl KeyCache {
    /// Creates a cache without keys.
    pub fn new(policy: KeyCachePolicy) -> Self {
        Self { policy, keys: None, last_attempt: None }
    }

    /// Returns the keys to verify with: fresh ones, or stale ones for a bounded time.
    pub fn keys(&self, now: Timestamp) -> Option<Arc<JwkSet>> {
        let keys = self.keys.as_ref()?;
        (now < keys.fresh_until.plus(self.policy.stale_for)).then(|| keys.set.clone())
    }

    /// Reports whether a fetch is due, and if so counts it as begun. A fetch that succeeds ends with
    /// [`KeyCache::fetched`]; one that fails needs no report.
    #[must_use]
    pub fn begin_fetch(&mut self, reason: FetchReason, now: Timestamp) -> bool {
        let due = match reason {
            FetchReason::Age => {
                self.keys.as_ref().is_none_or(|keys| keys.fresh_until <= now)
                    && self.attempts_older_than(self.policy.retry_interval, now)
            }
            FetchReason::UnknownKey => self.attempts_older_than(self.policy.unknown_key_interval, now),
        };
        if due {
            self.last_attempt = Some(FetchAttempt { began: now, succeeded: false });
        }
        due
    }

    /// A clock that stepped back does not stop fetches until it has caught up.
    fn attempts_older_than(&self, interval: Duration, now: Timestamp) -> bool {
        self.last_attempt.as_ref().is_none_or(|last| now < last.began || now.since(last.began) >= interval)
    }

    /// Stores keys with the `Cache-Control` of their response.
    pub fn fetched(&mut self, set: JwkSet, cache_control: Option<&str>, now: Timestamp) -> KeyWithdrawal {
        let age = cache_control.and_then(max_age).unwrap_or(self.policy.default_age);
        let age = age.min(self.policy.longest_age).max(self.policy.shortest_age);
        let withdrawn = self.keys.as_ref().is_some_and(|old| !old.set.is_subset(&set));
        self.keys = Some(CachedKeys { set: Arc::new(set), fresh_until: now.plus(age) });
        if let Some(attempt) = &mut self.last_attempt {
            attempt.succeeded = true;
        }
        if withdrawn { KeyWithdrawal::Withdrawn } else { KeyWithdrawal::None }
    }

    /// Reports whether the last fetch has succeeded, for a health check; `None` before the first.
    pub fn last_fetch_succeeded(&self) -> Option<bool> {
        self.last_attempt.as_ref().map(|attempt| attempt.succeeded)
    }
}

/// Reads the age that a `Cache-Control` states ([RFC 9111 §5.2.2](https://www.rfc-editor.org/rfc/rfc9111#section-5.2.2)).
fn max_age(header: &str) -> Option<Duration> {
    let mut age = None;
    for directive in header.split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(Duration::ZERO),
            "max-age" => age = value.trim().trim_matches('"').parse().ok().map(Duration::from_secs),
            _ => {}
        }
    }
    age
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::fixtures::{es256_key, jwk};

    fn at(seconds: u64) -> Timestamp {
        Timestamp(1_800_000_000_000 + seconds * 1000)
    }

    fn set() -> JwkSet {
        [jwk(&es256_key(), "a")].into_iter().collect()
    }

    #[test]
    fn cache_control_bounds_the_age_of_keys() {
        for (header, seconds) in [
            (None, 600),
            (Some("max-age=300"), 300),
            (Some("public, max-age=300, must-revalidate"), 300),
            (Some("Max-Age=\"300\""), 300),
            (Some("max-age=5"), 60),
            (Some("max-age=86400"), 3600),
            (Some("max-age=99999999999999999999"), 600),
            (Some("max-age=-1"), 600),
            (Some("s-maxage=300"), 600),
            (Some("max-age=300, no-store"), 60),
            (Some("no-cache"), 60),
            (Some(""), 600),
        ] {
            let mut cache = KeyCache::new(KeyCachePolicy::default());
            assert!(cache.begin_fetch(FetchReason::Age, at(0)));
            cache.fetched(set(), header, at(0));
            assert!(!cache.begin_fetch(FetchReason::Age, at(seconds - 1)), "{header:?}");
            assert!(cache.begin_fetch(FetchReason::Age, at(seconds)), "{header:?}");
        }
    }

    #[test]
    fn unknown_keys_cause_at_most_one_fetch_a_minute() {
        let mut cache = KeyCache::new(KeyCachePolicy::default());
        assert!(cache.begin_fetch(FetchReason::Age, at(0)));
        cache.fetched(set(), None, at(0));
        for (second, expected) in
            [(1, false), (59, false), (60, true), (61, false), (119, false), (120, true)]
        {
            assert_eq!(cache.begin_fetch(FetchReason::UnknownKey, at(second)), expected, "{second}");
            if expected {
                cache.fetched(set(), None, at(second));
            }
        }
    }

    #[test]
    fn stale_keys_are_used_for_a_bounded_time_while_fetches_fail() {
        let mut cache = KeyCache::new(KeyCachePolicy::default());
        assert_eq!(cache.keys(at(0)), None);
        assert_eq!(cache.last_fetch_succeeded(), None);
        assert!(cache.begin_fetch(FetchReason::Age, at(0)));
        assert!(!cache.begin_fetch(FetchReason::Age, at(9)), "one fetch at a time");
        assert!(cache.begin_fetch(FetchReason::Age, at(10)), "without a result it has failed");
        cache.fetched(set(), Some("max-age=300"), at(10));
        assert_eq!(cache.last_fetch_succeeded(), Some(true));
        assert!(cache.begin_fetch(FetchReason::Age, at(310)));
        assert_eq!(cache.last_fetch_succeeded(), Some(false));
        assert!(!cache.begin_fetch(FetchReason::Age, at(319)));
        assert!(cache.begin_fetch(FetchReason::Age, at(320)));
        let end = 310 + 4 * 3600;
        assert!(cache.keys(at(end - 1)).is_some());
        assert_eq!(cache.keys(at(end)), None);
    }

    #[test]
    fn withdrawn_keys_are_reported() {
        let (old, new) = (jwk(&es256_key(), "a"), jwk(&es256_key(), "b"));
        let mut cache = KeyCache::new(KeyCachePolicy::default());
        let fetched =
            |keys: &[&crate::jose::PublicJwk]| keys.iter().map(|key| (*key).clone()).collect::<JwkSet>();
        assert_eq!(cache.fetched(fetched(&[&old]), None, at(0)), KeyWithdrawal::None);
        assert_eq!(cache.fetched(fetched(&[&old, &new]), None, at(1)), KeyWithdrawal::None);
        assert_eq!(cache.fetched(fetched(&[&new]), None, at(2)), KeyWithdrawal::Withdrawn);
        assert_eq!(cache.fetched(fetched(&[&new]), None, at(3)), KeyWithdrawal::None);
    }

    #[test]
    fn clock_that_steps_back_does_not_stop_fetches() {
        let mut cache = KeyCache::new(KeyCachePolicy::default());
        assert!(cache.begin_fetch(FetchReason::Age, at(10_000)));
        assert!(cache.begin_fetch(FetchReason::Age, at(0)));
    }
}
