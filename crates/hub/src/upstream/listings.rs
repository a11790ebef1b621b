//! What one upstream lists, by the capabilities that it was shown: many servers list more to clients that can do more.

use std::sync::Arc;

use super::input::InputSet;
use crate::registry::Catalogue;

/// What was listed for a set of capabilities.
pub(crate) type Listing = (InputSet, Arc<Catalogue>);

/// Sets of capabilities for which listings are kept; beyond it the oldest listing goes.
pub(crate) const MOST_LISTINGS: usize = 8;

/// The listings of one upstream.
#[derive(Clone, Debug, Default)]
pub(super) struct Listings {
    /// What the upstream itself has listed, oldest first.
    current: Vec<Listing>,
    /// What the predecessor or the previous run has listed. It counts until the upstream has listed anything itself, or
    /// could not be connected to.
    provisional: Vec<Listing>,
    /// The capabilities for which an upstream without sessions is asked for its lists, oldest first.
    requested: Vec<InputSet>,
    /// Callers' capabilities for which a listing is being fetched.
    learning: Vec<InputSet>,
    /// Callers' capabilities for which lists were answered without this upstream, so that they do not wait for it again.
    late: Vec<InputSet>,
    /// The same for all callers.
    is_late: bool,
}

/// How far it is known what an upstream lists for a set of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingState {
    /// The upstream has listed for exactly these.
    Current,
    /// A list can be answered with what is there, and is completed in the background.
    Provisional,
    /// A list waits for it.
    Missing,
}

impl Listings {
    /// Makes the listings of a predecessor count until there are others.
    pub(super) fn inherit(&mut self, before: &Self) {
        let before = if before.current.is_empty() { &before.provisional } else { &before.current };
        self.provisional.clone_from(before);
    }

    /// Makes the listings of the previous run count until there are others.
    pub(super) fn restore(&mut self, stored: Vec<Listing>) {
        self.provisional = stored;
    }

    /// Takes over a listing for a set of capabilities; reports whether anything is different from before.
    pub(super) fn store(&mut self, shown: InputSet, listed: Catalogue) -> bool {
        let before = self.visible_to(shown).cloned();
        let is_different = before.as_deref() != Some(&listed) || !self.provisional.is_empty();
        self.provisional.clear();
        self.forget_late();
        // Equal listings are held once, so that views of equal listings can share one registry.
        let known = self.current.iter().map(|(_, known)| known).find(|known| ***known == listed).cloned();
        self.current.retain(|(known, _)| *known != shown);
        if self.current.len() >= MOST_LISTINGS {
            self.current.remove(0);
        }
        self.current.push((shown, known.unwrap_or_else(|| Arc::new(listed))));
        is_different
    }

    /// Forgets listings that nothing keeps up to date.
    pub(super) fn retain(&mut self, is_kept: impl Fn(InputSet) -> bool) {
        self.current.retain(|(shown, _)| is_kept(*shown));
    }

    /// Returns what callers see whose capabilities the upstream was, or would be, shown: its listing for these, or else the
    /// one for the most of them.
    pub(super) fn visible_to(&self, shown: InputSet) -> Option<&Arc<Catalogue>> {
        nearest(&self.current, shown).or_else(|| nearest(&self.provisional, shown))
    }

    /// Returns everything that the upstream lists to anyone, for whatever does not depend on a caller.
    pub(super) fn union(&self) -> Option<Arc<Catalogue>> {
        let listings = if self.current.is_empty() { &self.provisional } else { &self.current };
        let mut newest_first = listings.iter().rev().map(|(_, catalogue)| catalogue);
        let newest = newest_first.next()?.clone();
        Some(newest_first.fold(newest, |union, older| match Arc::ptr_eq(&union, older) {
            true => union,
            false => Arc::new(union.and(older)),
        }))
    }

    /// Returns what still counts where a list for these capabilities fails.
    pub(super) fn before(&self, shown: InputSet) -> Option<Arc<Catalogue>> {
        let exact = |listings: &[Listing]| {
            listings.iter().find(|(known, _)| *known == shown).map(|(_, catalogue)| catalogue.clone())
        };
        exact(&self.current).or_else(|| nearest(&self.provisional, shown).cloned())
    }

    /// Reports whether the upstream has listed for exactly these capabilities.
    pub(super) fn has(&self, shown: InputSet) -> bool {
        self.current.iter().any(|(known, _)| *known == shown)
    }

    /// Reports whether the upstream has listed anything itself.
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Reports whether what counts was listed by the predecessor or in the previous run.
    pub(super) fn is_provisional(&self) -> bool {
        !self.provisional.is_empty()
    }

    /// Returns how far it is known what there is for a caller. `shown` is what the upstream is shown of its capabilities.
    pub(super) fn state(&self, caller: InputSet, shown: InputSet) -> ListingState {
        if self.has(shown) {
            return ListingState::Current;
        }
        let is_provisional = self.provisional.iter().any(|(known, _)| *known == shown);
        match is_provisional || self.is_late || self.late.contains(&caller) {
            true => ListingState::Provisional,
            false => ListingState::Missing,
        }
    }

    /// Has an upstream without sessions asked for its lists with these capabilities too, from now on.
    pub(super) fn request(&mut self, shown: InputSet) {
        if !self.requested.contains(&shown) {
            if self.requested.len() >= MOST_LISTINGS {
                self.requested.remove(0);
            }
            self.requested.push(shown);
        }
    }

    /// Returns the capabilities with which an upstream without sessions is asked for its lists: none at all, until there is a
    /// caller.
    pub(super) fn requested(&self) -> Vec<InputSet> {
        if self.requested.is_empty() { vec![InputSet::default()] } else { self.requested.clone() }
    }

    /// Begins to learn what there is for a caller; reports whether nothing else does already.
    pub(super) fn begin_learning(&mut self, caller: InputSet) -> bool {
        let is_first = !self.learning.contains(&caller);
        if is_first {
            self.learning.push(caller);
        }
        is_first
    }

    pub(super) fn end_learning(&mut self, caller: InputSet) {
        self.learning.retain(|known| *known != caller);
    }

    pub(super) fn is_learning(&self, caller: InputSet) -> bool {
        self.learning.contains(&caller)
    }

    /// Notes that a list for a caller went out without what may be there for it.
    pub(super) fn set_late(&mut self, caller: InputSet) {
        if !self.late.contains(&caller) {
            self.late.push(caller);
        }
    }

    /// Has no list wait until the upstream has listed something.
    pub(super) fn set_late_for_all(&mut self) {
        self.is_late = true;
    }

    /// Has the next list for every caller wait again.
    pub(super) fn forget_late(&mut self) {
        self.late.clear();
        self.is_late = false;
    }

    /// Drops what the upstream has not listed itself, since it does not come up; reports whether there was anything.
    pub(super) fn drop_provisional(&mut self) -> bool {
        !std::mem::take(&mut self.provisional).is_empty()
    }

    /// Returns what is worth keeping for the next run.
    pub(super) fn current(&self) -> &[Listing] {
        &self.current
    }
}

/// Returns the listing for a set of capabilities: the exact one, else that for the most of them, else any.
fn nearest(listings: &[Listing], shown: InputSet) -> Option<&Arc<Catalogue>> {
    let closeness = |known: InputSet| (known == shown, shown.covers(known), known.shared_with(shown));
    listings.iter().max_by_key(|(known, _)| closeness(*known)).map(|(_, catalogue)| catalogue)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trunkline_protocol::Raw;
    use trunkline_protocol::model::{ClientCapabilities, Tool};

    use super::*;

    fn catalogue(tools: &[&str]) -> Catalogue {
        let tool = |name: &&str| {
            Tool::read(&Raw::from(&json!({ "name": name, "inputSchema": { "type": "object" } }))).unwrap()
        };
        Catalogue { tools: Arc::new(tools.iter().map(tool).collect()), ..Catalogue::default() }
    }

    fn names(catalogue: Option<&Arc<Catalogue>>) -> Vec<&str> {
        catalogue
            .map(|catalogue| catalogue.tools.iter().map(|tool| &*tool.name).collect())
            .unwrap_or_default()
    }

    fn sets() -> [InputSet; 3] {
        let none = ClientCapabilities::default();
        [InputSet::of(&none), InputSet::of(&none.with_form()), InputSet::of(&none.with_form().with_roots())]
    }

    #[test]
    fn each_set_of_capabilities_sees_its_own_listing_in_any_order() {
        let [none, form, both] = sets();
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut listings = Listings::default();
            let all =
                [(none, catalogue(&["a"])), (form, catalogue(&["a", "ask"])), (both, catalogue(&["r"]))];
            for at in order {
                let (shown, listed) = all[at].clone();
                assert!(listings.store(shown, listed.clone()));
                assert!(!listings.store(shown, listed), "the same again is no change");
            }
            assert_eq!(names(listings.visible_to(none)), ["a"]);
            assert_eq!(names(listings.visible_to(form)), ["a", "ask"]);
            assert_eq!(names(listings.visible_to(both)), ["r"]);
            assert_eq!(names(listings.union().as_ref()).len(), 3);
        }
    }

    #[test]
    fn until_a_listing_is_there_the_nearest_smaller_one_is_visible() {
        let [none, form, both] = sets();
        let mut listings = Listings::default();
        assert!(listings.visible_to(none).is_none());
        listings.store(both, catalogue(&["all"]));
        assert_eq!(names(listings.visible_to(none)), ["all"], "better than nothing");
        listings.store(none, catalogue(&["few"]));
        assert_eq!(names(listings.visible_to(form)), ["few"], "a client never sees what it cannot use");
        assert_eq!(listings.state(form, form), ListingState::Missing);
        listings.set_late(form);
        assert_eq!(listings.state(form, form), ListingState::Provisional);
        listings.store(form, catalogue(&["form"]));
        assert_eq!(listings.state(form, form), ListingState::Current);
    }

    #[test]
    fn equal_listings_share_one_catalogue() {
        let [none, form, _] = sets();
        let mut listings = Listings::default();
        listings.store(none, catalogue(&["a"]));
        listings.store(form, catalogue(&["a"]));
        assert!(Arc::ptr_eq(listings.visible_to(none).unwrap(), listings.visible_to(form).unwrap()));
        assert!(Arc::ptr_eq(listings.visible_to(none).unwrap(), &listings.union().unwrap()));
    }

    #[test]
    fn inherited_listings_count_until_the_first_own_one_or_a_failure() {
        let [none, form, _] = sets();
        let mut before = Listings::default();
        before.store(none, catalogue(&["old"]));
        let mut listings = Listings::default();
        listings.inherit(&before);
        assert_eq!(listings.state(none, none), ListingState::Provisional);
        assert_eq!(listings.state(form, form), ListingState::Missing);
        assert_eq!(names(listings.visible_to(form)), ["old"]);
        assert!(listings.store(form, catalogue(&["new"])));
        assert_eq!(names(listings.visible_to(none)), ["new"]);
        let mut failed = Listings::default();
        failed.inherit(&before);
        assert!(failed.drop_provisional() && !failed.drop_provisional());
        assert!(failed.visible_to(none).is_none());
    }

    #[test]
    fn at_most_eight_listings_are_kept() {
        let mut listings = Listings::default();
        let all = InputSet::of(
            &ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots(),
        );
        for (number, shown) in all.subsets().into_iter().enumerate() {
            listings.store(shown, catalogue(&[&number.to_string()]));
        }
        assert_eq!(listings.current.len(), MOST_LISTINGS);
    }
}
