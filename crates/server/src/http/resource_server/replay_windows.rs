use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use trunkline_auth::dpop::ReplayWindow;
use trunkline_session::Principal;

/// How many replay windows there are; the principals are spread over them.
const REPLAY_WINDOWS: usize = 8;

/// The DPoP proofs that were used.
///
/// A full window refuses proofs that are not new enough, and a client can fill one with proofs of its own, even with some
/// from the near future. It does that only to the principals that share its window, which it cannot choose.
#[derive(Debug)]
pub(super) struct ReplayWindows {
    windows: [ReplayWindow; REPLAY_WINDOWS],
    hasher: RandomState,
}

impl ReplayWindows {
    pub(super) fn new(capacity: usize, window: Duration) -> Self {
        let windows = std::array::from_fn(|_| ReplayWindow::new(capacity, window));
        Self { windows, hasher: RandomState::new() }
    }

    /// Returns the window of a principal, which is always the same one.
    pub(super) fn of(&self, principal: &Principal) -> &ReplayWindow {
        let [first, ..] = &self.windows;
        let at = self.hasher.hash_one(principal) % REPLAY_WINDOWS as u64;
        usize::try_from(at).ok().and_then(|at| self.windows.get(at)).unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use trunkline_session::Timestamp;

    use super::*;

    #[test]
    fn proofs_of_one_principal_fill_no_window_of_most_others() {
        let (now, window) = (Timestamp(1_800_000_000_000), Duration::from_secs(300));
        let windows = ReplayWindows::new(4, window);
        let principal = |name: &str| Principal::Named(name.into());
        let flooder = principal("flooder");
        for number in 0..100 {
            let issued = now.plus(window);
            let _ = windows.of(&flooder).insert("key", &number.to_string(), issued, now);
        }
        let refused = (0..400).filter(|number| {
            let other = principal(&number.to_string());
            let own = windows.of(&other);
            assert!(std::ptr::eq(own, windows.of(&other)), "the window of a principal stays");
            // Each of these is the only proof at its time.
            let issued = now.plus(Duration::from_millis(*number));
            own.insert("other", &number.to_string(), issued, now).is_err()
        });
        let refused = refused.count();
        assert!((1..200).contains(&refused), "{refused} of 400");
    }

    #[test]
    fn number_of_replay_windows_is_in_the_document_of_limits() {
        let document = include_str!("../../../../../docs/limits.md");
        assert!(document.contains(&format!("known as used, in each of {REPLAY_WINDOWS} windows")));
    }
}
