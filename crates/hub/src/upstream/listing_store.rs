//! The listings of one upstream, by era and declared capabilities: many servers list more for clients with more
//! capabilities, and some list different items in each era.

mod fitting;

use std::sync::Arc;

use trunkline_protocol::Era;

use super::listing_key::ListingKey;
use super::listing_memory::ListingShare;
use crate::registry::UpstreamListing;

/// A listing with its key.
pub(crate) type CapabilityListing = (ListingKey, Arc<UpstreamListing>);

/// The most listings of one upstream; beyond it the least recently used is dropped.
pub(crate) const MAX_LISTINGS: usize = 16;

/// Why the items of a listing are not used.
pub(super) const NO_MEMORY: &str =
    "the memory for the lists of all servers is used up; its lists are left out";

/// The listings of one upstream.
#[derive(Debug, Default)]
pub(super) struct UpstreamListings {
    /// Listings by the upstream itself, oldest first.
    current: Vec<CapabilityListing>,
    /// The keys of current listings that callers have used, the last one last.
    used: Vec<ListingKey>,
    /// The share of the memory for listings.
    share: ListingShare,
    /// The keys of current listings that may be outdated, and are fetched again over a connection of no caller.
    outdated: Vec<ListingKey>,
    /// Whether there was no memory for the listing that was stored last, even alone.
    is_refused: bool,
    /// Listings of the predecessor or of the previous run. They are used until the upstream has listed its own items
    /// in the same era, or could not be connected.
    provisional: Vec<CapabilityListing>,
    /// The callers for which lists of a stateless upstream are fetched, oldest first.
    requested: Vec<ListingKey>,
    /// The callers for which a listing is being fetched.
    learning: Vec<ListingKey>,
    /// The callers that got lists without this upstream, so that their list requests do not wait for it again.
    late: Vec<ListingKey>,
    /// The same for all callers.
    is_late: bool,
}

/// The state of an upstream's listing for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingState {
    /// The upstream has listed with exactly the caller's key.
    Current,
    /// A list request is answered with the items known so far; the listing is completed in the background.
    Provisional,
    /// A list request waits for it.
    Missing,
}

impl UpstreamListings {
    /// Creates the listings within a share of the memory.
    pub(super) fn within(share: ListingShare) -> Self {
        Self { share, ..Self::default() }
    }

    /// Uses the listings of a predecessor until there are others, with its share of the memory. The predecessor, which is
    /// about to be removed, is not counted any more.
    pub(super) fn inherit(&mut self, before: &mut Self) {
        self.provisional = before.all().cloned().collect();
        self.share = std::mem::take(&mut before.share);
    }

    /// Uses the listings of the previous run until there are others.
    pub(super) fn restore(&mut self, stored: Vec<CapabilityListing>) {
        self.provisional = stored;
    }

    /// Stores a listing; reports whether anything differs from before.
    pub(super) fn store(&mut self, shown: ListingKey, listed: UpstreamListing) -> bool {
        let before = self.visible_to(shown).cloned();
        let provisional = self.provisional.len();
        self.provisional.retain(|(known, _)| known.era != shown.era);
        self.forget_late();
        // Equal listings are stored once, so that views of equal listings can share one registry.
        let known = self.current.iter().map(|(_, known)| known).find(|known| ***known == listed).cloned();
        self.current.retain(|(known, _)| *known != shown);
        self.outdated.retain(|known| *known != shown);
        if self.current.len() >= MAX_LISTINGS {
            self.drop_least_recently_used(shown);
        }
        self.current.push((shown, known.unwrap_or_else(|| Arc::new(listed))));
        self.record_use(shown);
        self.fit_memory(shown);
        before.as_deref() != self.visible_to(shown).map(|listed| &**listed)
            || self.provisional.len() < provisional
    }

    /// Reports whether there was no memory for the listing that was stored last.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Records that a caller uses a listing.
    pub(super) fn record_use(&mut self, shown: ListingKey) {
        let Self { used, current, .. } = self;
        used.retain(|key| *key != shown && current.iter().any(|(known, _)| known == key));
        used.push(shown);
    }

    /// Returns all listings in use, oldest first. Those of one era are either provisional or current.
    fn all(&self) -> impl DoubleEndedIterator<Item = &CapabilityListing> {
        self.provisional.iter().chain(&self.current)
    }

    /// Drops the listings of an era that the upstream does not support any more; reports whether there were any.
    pub(super) fn drop_era(&mut self, era: Era) -> bool {
        let before = self.all().count();
        self.provisional.retain(|(known, _)| known.era != era);
        self.current.retain(|(known, _)| known.era != era);
        self.release_memory();
        self.all().count() < before
    }

    /// Drops listings that no connection keeps up to date.
    pub(super) fn retain(&mut self, is_kept: impl Fn(ListingKey) -> bool) {
        self.current.retain(|(shown, _)| is_kept(*shown));
        self.release_memory();
    }

    /// Returns the listing for a key: exactly that listing, or else the nearest one.
    pub(super) fn visible_to(&self, shown: ListingKey) -> Option<&Arc<UpstreamListing>> {
        nearest(self.all(), shown)
    }

    /// Returns the union of all listings, for operations that do not depend on a caller.
    pub(super) fn union(&self) -> Option<Arc<UpstreamListing>> {
        let mut newest_first = self.all().rev().map(|(_, listing)| listing);
        let newest = newest_first.next()?.clone();
        Some(newest_first.fold(newest, |union, older| match Arc::ptr_eq(&union, older) {
            true => union,
            false => Arc::new(union.merge(older)),
        }))
    }

    /// Returns the listing to keep using if a list fails.
    pub(super) fn fallback_for(&self, shown: ListingKey) -> Option<Arc<UpstreamListing>> {
        let exact = self.current.iter().find(|(known, _)| *known == shown).map(|(_, listing)| listing);
        let in_era = self.provisional.iter().filter(|(known, _)| known.era == shown.era);
        exact.or_else(|| nearest(in_era, shown)).cloned()
    }

    /// Reports whether the upstream has listed with exactly this key.
    pub(super) fn contains(&self, shown: ListingKey) -> bool {
        self.current.iter().any(|(known, _)| *known == shown)
    }

    /// Reports whether the upstream has listed with exactly this key, and as far as is known the same as now.
    pub(super) fn is_up_to_date(&self, shown: ListingKey) -> bool {
        self.contains(shown) && !self.outdated.contains(&shown)
    }

    /// Records that a listing may be outdated; reports whether that is new.
    pub(super) fn set_outdated(&mut self, shown: ListingKey) -> bool {
        let is_new = !self.outdated.contains(&shown);
        if is_new {
            self.outdated.push(shown);
        }
        is_new
    }

    /// Records that a listing that may be outdated could not be fetched again.
    pub(super) fn keep_outdated(&mut self, shown: ListingKey) {
        self.outdated.retain(|known| *known != shown);
    }

    /// Reports whether the upstream has listed nothing itself.
    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty()
    }

    /// Reports whether listings of the predecessor or of the previous run are in use.
    pub(super) fn is_provisional(&self) -> bool {
        !self.provisional.is_empty()
    }

    /// Returns the state of the listing for a caller. `shown` is the key of the listing that it sees.
    pub(super) fn state(&self, caller: ListingKey, shown: ListingKey) -> ListingState {
        if self.contains(shown) {
            return ListingState::Current;
        }
        let is_provisional = self.provisional.iter().any(|(known, _)| *known == shown);
        match is_provisional || self.is_late || self.late.contains(&caller) {
            true => ListingState::Provisional,
            false => ListingState::Missing,
        }
    }

    /// Adds a caller for which the lists of a stateless upstream are fetched from now on.
    pub(super) fn request(&mut self, caller: ListingKey) {
        if !self.requested.contains(&caller) {
            if self.requested.len() >= MAX_LISTINGS {
                self.requested.remove(0);
            }
            self.requested.push(caller);
        }
    }

    /// Returns the callers for which lists of a stateless upstream are fetched.
    pub(super) fn requested(&self) -> &[ListingKey] {
        &self.requested
    }

    /// Marks the listing for a caller as being fetched; reports whether it was not already.
    pub(super) fn begin_learning(&mut self, caller: ListingKey) -> bool {
        let is_first = !self.learning.contains(&caller);
        if is_first {
            self.learning.push(caller);
        }
        is_first
    }

    pub(super) fn end_learning(&mut self, caller: ListingKey) {
        self.learning.retain(|known| *known != caller);
    }

    pub(super) fn is_learning(&self, caller: ListingKey) -> bool {
        self.learning.contains(&caller)
    }

    /// Records that a caller got a list without this upstream.
    pub(super) fn set_late(&mut self, caller: ListingKey) {
        if !self.late.contains(&caller) {
            self.late.push(caller);
        }
    }

    /// Lets no list request wait until the upstream has listed something.
    pub(super) fn set_late_for_all(&mut self) {
        self.is_late = true;
    }

    /// Lets the next list request of every caller wait again.
    pub(super) fn forget_late(&mut self) {
        self.late.clear();
        self.is_late = false;
    }

    /// Drops the provisional listings, since the upstream cannot be connected; reports whether there were any.
    pub(super) fn drop_provisional(&mut self) -> bool {
        let dropped = std::mem::take(&mut self.provisional);
        self.release_memory();
        !dropped.is_empty()
    }

    /// Returns the upstream's own listings, to save for the next run.
    pub(super) fn current(&self) -> &[CapabilityListing] {
        &self.current
    }
}

/// Returns the nearest listing: preferably of the same era, then with exactly these capabilities, then with the most
/// of them, then any.
fn nearest<'l>(
    listings: impl Iterator<Item = &'l CapabilityListing>,
    shown: ListingKey,
) -> Option<&'l Arc<UpstreamListing>> {
    let closeness = |ListingKey { era, input }: ListingKey| {
        (era == shown.era, input == shown.input, shown.input.covers(input), input.shared_with(shown.input))
    };
    listings.max_by_key(|(known, _)| closeness(*known)).map(|(_, listing)| listing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trunkline_config::ServerName;
    use trunkline_protocol::model::{ClientCapabilities, Tool};
    use trunkline_protocol::{RawJson, Revision};

    use super::super::input::InputSet;
    use super::super::listing_memory::{ListingBounds, ListingMemory};
    use super::*;
    use crate::registry::ListingBytes;

    fn listing(tools: &[&str]) -> UpstreamListing {
        let tool = |name: &&str| {
            Tool::read(&RawJson::from(&json!({ "name": name, "inputSchema": { "type": "object" } }))).unwrap()
        };
        UpstreamListing { tools: Arc::new(tools.iter().map(tool).collect()), ..UpstreamListing::default() }
    }

    fn names(listing: Option<&Arc<UpstreamListing>>) -> Vec<&str> {
        listing.map(|listing| listing.tools.iter().map(|tool| &*tool.name).collect()).unwrap_or_default()
    }

    fn sets() -> [ListingKey; 3] {
        let none = ClientCapabilities::default();
        [none.clone(), none.with_form(), none.with_form().with_roots()]
            .map(|declared| ListingKey::of_caller(Revision::NEWEST, &declared))
    }

    fn in_legacy(key: ListingKey) -> ListingKey {
        ListingKey { era: Era::Legacy, ..key }
    }

    #[test]
    fn each_set_of_capabilities_sees_its_own_listing_in_any_order() {
        let [none, form, both] = sets();
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut listings = UpstreamListings::default();
            let all = [(none, listing(&["a"])), (form, listing(&["a", "ask"])), (both, listing(&["r"]))];
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
    fn nearest_smaller_listing_is_visible_until_the_exact_one_exists() {
        let [none, form, both] = sets();
        let mut listings = UpstreamListings::default();
        assert!(listings.visible_to(none).is_none());
        listings.store(both, listing(&["all"]));
        assert_eq!(names(listings.visible_to(none)), ["all"], "better than nothing");
        listings.store(none, listing(&["few"]));
        assert_eq!(names(listings.visible_to(form)), ["few"], "a client never sees what it cannot use");
        assert_eq!(listings.state(form, form), ListingState::Missing);
        listings.set_late(form);
        assert_eq!(listings.state(form, form), ListingState::Provisional);
        listings.store(form, listing(&["form"]));
        assert_eq!(listings.state(form, form), ListingState::Current);
    }

    #[test]
    fn each_era_falls_back_to_the_other_listing_until_it_has_its_own() {
        let [none, form, _] = sets();
        let mut listings = UpstreamListings::default();
        listings.store(form, listing(&["modern"]));
        assert_eq!(names(listings.visible_to(in_legacy(form))), ["modern"], "better than nothing");
        assert_eq!(listings.state(in_legacy(form), in_legacy(form)), ListingState::Missing);
        assert!(listings.fallback_for(in_legacy(form)).is_none());
        assert!(listings.store(in_legacy(none), listing(&["legacy"])));
        assert_eq!(names(listings.visible_to(in_legacy(form))), ["legacy"]);
        assert_eq!(names(listings.visible_to(none)), ["modern"]);
        assert!(listings.drop_era(Era::Legacy) && !listings.drop_era(Era::Legacy));
        assert_eq!(names(listings.visible_to(in_legacy(none))), ["modern"]);
    }

    #[test]
    fn inherited_listings_are_used_until_the_first_own_one_of_that_era() {
        let [none, form, _] = sets();
        let mut before = UpstreamListings::default();
        before.store(none, listing(&["modern"]));
        before.store(in_legacy(none), listing(&["legacy"]));
        let mut listings = UpstreamListings::default();
        listings.inherit(&mut before);
        assert!(listings.store(none, listing(&["new"])));
        assert_eq!(names(listings.visible_to(form)), ["new"]);
        assert_eq!(names(listings.visible_to(in_legacy(none))), ["legacy"]);
        assert_eq!(listings.state(in_legacy(none), in_legacy(none)), ListingState::Provisional);
        assert!(!listings.store(none, listing(&["new"])), "what counts in the other era is no change");
        assert!(listings.drop_provisional());
        assert_eq!(names(listings.visible_to(in_legacy(none))), ["new"]);
    }

    #[test]
    fn equal_listings_are_stored_once() {
        let [none, form, _] = sets();
        let mut listings = UpstreamListings::default();
        listings.store(none, listing(&["a"]));
        listings.store(form, listing(&["a"]));
        assert!(Arc::ptr_eq(listings.visible_to(none).unwrap(), listings.visible_to(form).unwrap()));
        assert!(Arc::ptr_eq(listings.visible_to(none).unwrap(), &listings.union().unwrap()));
    }

    #[test]
    fn inherited_listings_are_used_until_the_first_own_one_or_a_failure() {
        let [none, form, _] = sets();
        let mut before = UpstreamListings::default();
        before.store(none, listing(&["old"]));
        let mut listings = UpstreamListings::default();
        listings.inherit(&mut before);
        assert_eq!(listings.state(none, none), ListingState::Provisional);
        assert_eq!(listings.state(form, form), ListingState::Missing);
        assert_eq!(names(listings.visible_to(form)), ["old"]);
        assert!(listings.store(form, listing(&["new"])));
        assert_eq!(names(listings.visible_to(none)), ["new"]);
        let mut failed = UpstreamListings::default();
        failed.inherit(&mut before);
        assert!(failed.drop_provisional() && !failed.drop_provisional());
        assert!(failed.visible_to(none).is_none());
    }

    #[test]
    fn listings_beyond_the_memory_evict_the_least_recently_used_or_are_refused() {
        const LARGE: usize = 1 << 20;
        let [none, form, both] = sets();
        let large = |name: &str, bytes: usize| UpstreamListing {
            bytes: ListingBytes::default().with("tools", bytes),
            ..listing(&[name])
        };
        let memory = ListingMemory::default();
        let bounds = ListingBounds { server: 2 * LARGE, all: 3 * LARGE };
        let bounded = |server: &str| {
            let server = ServerName::parse(server).unwrap();
            UpstreamListings::within(ListingShare::new(memory.clone(), server, bounds))
        };
        let mut listings = bounded("first");
        listings.store(none, large("a", LARGE));
        listings.store(form, large("b", LARGE));
        listings.record_use(none);
        listings.store(both, large("c", LARGE));
        assert!(listings.contains(none) && !listings.contains(form) && listings.contains(both));
        // Equal listings take the memory of one.
        listings.store(both, large("a", LARGE));
        listings.store(form, large("b", LARGE));
        assert!([none, form, both].iter().all(|shown| listings.contains(*shown)));

        let mut other = bounded("other");
        assert!(other.store(none, large("x", 2 * LARGE)));
        assert!(other.is_refused() && names(other.visible_to(none)).is_empty());
        assert!(other.visible_to(none).unwrap().skipped[0].contains(NO_MEMORY));
        assert!(!other.store(none, large("x", 2 * LARGE)), "the same again is no change");
        assert!(other.store(none, large("small", 1000)), "a small listing always fits");
        assert!(!other.is_refused());
        drop(listings);
        assert!(other.store(none, large("x", 2 * LARGE)) && !other.is_refused());
    }

    #[test]
    fn successor_takes_over_the_share_of_its_predecessor() {
        const LARGE: usize = 1 << 20;
        let [none, form, _] = sets();
        let large = |name: &str| UpstreamListing {
            bytes: ListingBytes::default().with("tools", LARGE),
            ..listing(&[name])
        };
        let memory = ListingMemory::default();
        let bounds = ListingBounds { server: 2 * LARGE, all: 2 * LARGE };
        let bounded = || {
            let server = ServerName::parse("one").unwrap();
            UpstreamListings::within(ListingShare::new(memory.clone(), server, bounds))
        };
        let mut before = bounded();
        before.store(none, large("a"));
        before.store(form, large("b"));
        let mut listings = bounded();
        listings.inherit(&mut before);
        listings.store(none, large("c"));
        listings.store(form, large("d"));
        assert!(!listings.is_refused() && listings.contains(none) && listings.contains(form));
        // Listings of another era, which nothing lists any more, make room.
        let mut last = bounded();
        last.inherit(&mut listings);
        last.store(in_legacy(none), large("e"));
        assert!(!last.is_refused() && names(last.visible_to(in_legacy(none))) == ["e"]);
        drop(before);
        drop(listings);
        assert_eq!(names(last.visible_to(in_legacy(none))), ["e"]);
    }

    #[test]
    fn listings_beyond_sixteen_evict_the_oldest() {
        let mut listings = UpstreamListings::default();
        let all = InputSet::from_capabilities(
            &ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots(),
        );
        for (number, input) in all.subsets().into_iter().enumerate() {
            listings.store(ListingKey { era: Era::Legacy, input }, listing(&[&number.to_string()]));
        }
        assert_eq!(listings.current.len(), MAX_LISTINGS);
    }
}
