use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use trunkline_session::Timestamp;

/// The proofs that were accepted, so that none is accepted twice
/// ([RFC 9449 §11.1](https://www.rfc-editor.org/rfc/rfc9449#section-11.1)).
///
/// It is bounded without forgetting: what leaves it raises a floor, and a proof that is not newer than the floor is
/// refused. Under load the window in which proofs are accepted becomes shorter, and a replay is never accepted.
pub struct ReplayWindow {
    capacity: usize,
    window: Duration,
    proofs: Mutex<SeenProofs>,
}

#[derive(Default)]
struct SeenProofs {
    seen: HashSet<u128>,
    by_time: BTreeSet<(Timestamp, u128)>,
    floor: Option<Timestamp>,
}

/// The reason why a proof is not counted as new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The proof was used before.
    Replayed,
    /// The proof is too old to know.
    TooOld,
}

impl ReplayWindow {
    /// The default number of proofs: 218 a second for five minutes, in about 6 MiB.
    pub const DEFAULT_CAPACITY: usize = 65_536;

    /// Creates an empty window for proofs that are valid for `window` after the time that they name.
    pub fn new(capacity: usize, window: Duration) -> Self {
        Self { capacity, window, proofs: Mutex::default() }
    }

    /// Counts a proof as used, by the thumbprint of its key and its `jti`. `issued` is the time of its nonce, or else
    /// its `iat`.
    ///
    /// # Errors
    /// The proof was used before, or is too old to know.
    pub fn insert(
        &self,
        key_thumbprint: &str,
        jti: &str,
        issued: Timestamp,
        now: Timestamp,
    ) -> Result<(), ReplayError> {
        let id = proof_id(key_thumbprint, jti);
        let mut proofs = self.proofs.lock();
        while let Some((oldest, _)) = proofs.by_time.first()
            && now.since(*oldest) > self.window
        {
            proofs.remove_oldest();
        }
        if proofs.floor.is_some_and(|floor| issued <= floor) || self.capacity == 0 {
            return Err(ReplayError::TooOld);
        }
        if !proofs.seen.insert(id) {
            return Err(ReplayError::Replayed);
        }
        proofs.by_time.insert((issued, id));
        if proofs.seen.len() > self.capacity {
            proofs.remove_oldest();
        }
        Ok(())
    }
}

impl SeenProofs {
    fn remove_oldest(&mut self) {
        if let Some((issued, id)) = self.by_time.pop_first() {
            self.seen.remove(&id);
            self.floor = self.floor.max(Some(issued));
        }
    }
}

/// Identifies a proof by half of a SHA-256. The key is part of it, so that a client cannot use up the identifiers of
/// another.
fn proof_id(key_thumbprint: &str, jti: &str) -> u128 {
    let mut context = Context::new(&SHA256);
    context.update(&(key_thumbprint.len() as u64).to_le_bytes());
    context.update(key_thumbprint.as_bytes());
    context.update(jti.as_bytes());
    let digest = context.finish();
    let half = digest.as_ref().first_chunk::<16>();
    half.map_or(0, |half| u128::from_le_bytes(*half))
}

impl fmt::Debug for ReplayWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWindow").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Timestamp {
        Timestamp(1_800_000_000_000 + seconds * 1000)
    }

    #[test]
    fn replayed_proofs_are_refused() {
        let window = ReplayWindow::new(100, WINDOW);
        assert_eq!(window.insert("k", "a", at(0), at(0)), Ok(()));
        assert_eq!(window.insert("k", "a", at(0), at(0)), Err(ReplayError::Replayed));
        assert_eq!(window.insert("k", "a", at(7), at(7)), Err(ReplayError::Replayed), "other iat");
        assert_eq!(window.insert("l", "a", at(7), at(7)), Ok(()), "other key");
        assert_eq!(window.insert("ka", "", at(7), at(7)), Ok(()), "other split of the same text");
        assert_eq!(window.insert("k", "a", at(0), at(300)), Err(ReplayError::Replayed));
        assert_eq!(window.insert("k", "a", at(0), at(301)), Err(ReplayError::TooOld));
        assert_eq!(window.insert("k", "a", at(0), at(0)), Err(ReplayError::TooOld), "the clock stepped back");
        assert_eq!(window.insert("k", "a", at(301), at(301)), Ok(()), "the identifier has expired");
    }

    #[test]
    fn full_window_refuses_old_proofs_and_accepts_new_ones() {
        let window = ReplayWindow::new(10, WINDOW);
        for second in 0..50 {
            let jti = second.to_string();
            assert_eq!(window.insert("k", &jti, at(second), at(second)), Ok(()));
            let proofs = window.proofs.lock();
            assert!(proofs.seen.len() <= 10);
            assert_eq!(proofs.seen.len(), proofs.by_time.len());
        }
        assert_eq!(window.insert("k", "39", at(39), at(50)), Err(ReplayError::TooOld));
        assert_eq!(window.insert("k", "40", at(40), at(50)), Err(ReplayError::Replayed));
        assert_eq!(ReplayWindow::new(0, WINDOW).insert("k", "a", at(0), at(0)), Err(ReplayError::TooOld));
    }

    proptest! {
        #[test]
        fn evicted_proofs_can_never_be_replayed(
            proofs in proptest::collection::vec((0_u64..40, 0_u64..40, 0_u64..600), 1..200),
        ) {
            let window = ReplayWindow::new(8, Duration::from_secs(20));
            let mut accepted = HashSet::new();
            for (jti, issued, now) in proofs {
                // A proof is a fixed text, so that its identifier comes with its time.
                let name = format!("{jti} {issued}");
                if window.insert("k", &name, at(issued), at(now)).is_ok() {
                    prop_assert!(accepted.insert(name));
                }
                prop_assert!(window.proofs.lock().seen.len() <= 8);
            }
        }
    }
}
