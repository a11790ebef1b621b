//! Keeps the listings of one upstream within the memory.

use std::sync::Arc;

use trunkline_server::UpstreamItem;

use super::{NO_MEMORY, UpstreamListings};
use crate::registry::UpstreamListing;
use crate::upstream::listing_key::ListingKey;

impl UpstreamListings {
    /// Drops listings until the others fit into the memory, the least recently used first, and then
    /// those of the predecessor. If that of `shown` does not even fit alone, its items are dropped, and the reason is reported.
    pub(super) fn fit_memory(&mut self, shown: ListingKey) {
        self.is_refused = false;
        while !self.share.set(self.bytes()) {
            if self.drop_least_recently_used(shown) {
                continue;
            }
            // Those of another era are outdated.
            if !std::mem::take(&mut self.provisional).is_empty() {
                continue;
            }
            self.is_refused = true;
            UpstreamItem::ListRefused.count(1);
            for (_, listed) in self.current.iter_mut().filter(|(known, _)| *known == shown) {
                let reason = format!("tools: {NO_MEMORY}");
                *listed = Arc::new(UpstreamListing {
                    has_resources: listed.has_resources,
                    skipped: Arc::new(vec![reason]),
                    ..UpstreamListing::default()
                });
            }
            // Without items it takes no more than before.
            let _ = self.share.set(self.bytes());
            return;
        }
    }

    /// Drops the listing that was not used for the longest time, except one; reports whether there was any.
    pub(super) fn drop_least_recently_used(&mut self, except: ListingKey) -> bool {
        // Those that were never used come first, and among them the oldest.
        let last_use = |key: &ListingKey| self.used.iter().position(|used| used == key);
        let others = self.current.iter().enumerate().filter(|(_, (known, _))| *known != except);
        let Some((at, _)) = others.min_by_key(|(at, (known, _))| (last_use(known), *at)) else {
            return false;
        };
        self.current.remove(at);
        true
    }

    /// Returns the bytes of the listings; equal ones are stored once.
    fn bytes(&self) -> usize {
        let mut distinct: Vec<&Arc<UpstreamListing>> = self.all().map(|(_, listed)| listed).collect();
        distinct.sort_by_key(|listed| Arc::as_ptr(listed));
        distinct.dedup_by(|one, other| Arc::ptr_eq(one, other));
        distinct.into_iter().map(|listed| listed.bytes.total()).sum()
    }

    /// Gives back the memory of listings that were dropped.
    pub(super) fn release_memory(&mut self) {
        let bytes = self.bytes();
        // Fewer bytes than before always fit.
        let _ = self.share.set(bytes);
    }
}
