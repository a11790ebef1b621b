use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_session::Principal;

/// Counts what each principal holds, so that nobody takes more than their share.
///
/// The anonymous principal and the process are many callers in one, so that only the total holds for them.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    held: Arc<Mutex<Held>>,
    most: usize,
    most_per_principal: usize,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    named: HashMap<Principal, usize>,
}

impl Tally {
    pub(crate) fn new(most: usize, most_per_principal: usize) -> Self {
        Self { held: Arc::default(), most, most_per_principal }
    }

    /// Counts one more until the share is dropped; `None` if that would be too many.
    pub(crate) fn take(&self, principal: &Principal) -> Option<Share> {
        let mut held = self.lock();
        if held.total >= self.most {
            return None;
        }
        let named = matches!(principal, Principal::Named(_)).then(|| principal.clone());
        if let Some(name) = &named {
            let count = held.named.entry(name.clone()).or_default();
            if *count >= self.most_per_principal {
                return None;
            }
            *count += 1;
        }
        held.total += 1;
        Some(Share { tally: self.clone(), named })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

/// One thing that is counted.
#[derive(Debug)]
pub(crate) struct Share {
    tally: Tally,
    named: Option<Principal>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.tally.lock();
        held.total -= 1;
        if let Some(name) = &self.named
            && let Some(count) = held.named.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                held.named.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_held_to_its_share_and_everybody_to_the_total() {
        let tally = Tally::new(3, 2);
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        let first = tally.take(&ann).unwrap();
        let _second = tally.take(&ann).unwrap();
        assert!(tally.take(&ann).is_none(), "ann has her share");
        let _third = tally.take(&bob).unwrap();
        assert!(tally.take(&Principal::Anonymous).is_none(), "the total is reached");
        drop(first);
        assert!(tally.take(&Principal::Anonymous).is_some());
        assert!(tally.take(&ann).is_some());
        assert_eq!(tally.lock().total, 2);
    }
}
