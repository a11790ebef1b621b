use dashmap::{DashMap, Entry};
use trunkline_session::Principal;

/// How many calls each caller that is known by name has running.
///
/// The anonymous principal and the process are many callers in one, and are not counted: for them only the total holds.
#[derive(Debug)]
pub(crate) struct Callers {
    most: usize,
    /// Only those who have calls running.
    running: DashMap<Principal, usize>,
}

/// A caller has as many calls running as it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Callers {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, running: DashMap::new() }
    }

    /// Counts one more call; returns whom it counts for, who is to leave when it is over.
    ///
    /// # Errors
    /// [`Busy`].
    pub(crate) fn enter(&self, principal: &Principal) -> Result<Option<Principal>, Busy> {
        if !matches!(principal, Principal::Named(_)) {
            return Ok(None);
        }
        match self.running.entry(principal.clone()) {
            Entry::Occupied(mut running) if *running.get() < self.most => *running.get_mut() += 1,
            Entry::Vacant(none) if self.most > 0 => drop(none.insert(1)),
            Entry::Occupied(_) | Entry::Vacant(_) => return Err(Busy),
        }
        Ok(Some(principal.clone()))
    }

    /// Counts one call less.
    pub(crate) fn leave(&self, principal: &Principal) {
        self.running.remove_if_mut(principal, |_, running| {
            *running = running.saturating_sub(1);
            *running == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_named_caller_is_held_to_its_own_number_and_leaves_nothing() {
        let callers = Callers::new(2);
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        for _ in 0..2 {
            assert_eq!(callers.enter(&ann), Ok(Some(ann.clone())));
        }
        assert_eq!(callers.enter(&ann), Err(Busy));
        assert_eq!(callers.enter(&bob), Ok(Some(bob.clone())));
        for anybody in [Principal::Anonymous, Principal::Process] {
            for _ in 0..10 {
                assert_eq!(callers.enter(&anybody), Ok(None));
            }
        }
        callers.leave(&ann);
        assert_eq!(callers.enter(&ann), Ok(Some(ann.clone())));
        for leaving in [&ann, &ann, &bob] {
            callers.leave(leaving);
        }
        assert!(callers.running.is_empty());
    }

    #[test]
    fn a_caller_that_may_run_nothing_leaves_nothing_either() {
        let callers = Callers::new(0);
        assert_eq!(callers.enter(&Principal::Named("ann".into())), Err(Busy));
        assert!(callers.running.is_empty());
    }
}
