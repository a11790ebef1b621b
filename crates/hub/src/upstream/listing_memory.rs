//! The memory for listings, of which each server has a share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_config::ServerName;

/// The listings of a server up to this size are not counted, so that no other server can take their place.
const FREE_BYTES: usize = 256 << 10;

/// The memory for the listings of all servers of a hub. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListingMemory(Arc<Mutex<MemoryUse>>);

/// The bytes of listings that are held.
#[derive(Debug, Default)]
struct MemoryUse {
    /// Those of all servers that count.
    counted: usize,
    /// Those of each server, for all users that have upstreams of their own for it.
    servers: HashMap<Option<ServerName>, usize>,
}

impl MemoryUse {
    /// Replaces a part of the bytes of a server. If there is no memory for more, it returns false and changes nothing.
    fn replace(&mut self, share: &ListingShare, bytes: usize) -> bool {
        let counted = |held: usize| if held > FREE_BYTES { held } else { 0 };
        let held = self.servers.get(&share.server).copied().unwrap_or(0);
        let next = held.saturating_sub(share.held).saturating_add(bytes);
        let all = self.counted.saturating_sub(counted(held)).saturating_add(counted(next));
        let exceeds = next > share.bounds.server || (all > self.counted && all > share.bounds.all);
        if next > held && exceeds {
            return false;
        }
        self.counted = all;
        match next {
            0 => self.servers.remove(&share.server),
            _ => self.servers.insert(share.server.clone(), next),
        };
        true
    }
}

/// The most bytes that listings may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListingBounds {
    /// Those of one server, of all its users.
    pub(super) server: usize,
    /// Those of all servers together.
    pub(super) all: usize,
}

impl Default for ListingBounds {
    fn default() -> Self {
        Self { server: usize::MAX, all: usize::MAX }
    }
}

/// What one upstream has of the share of its server; released when it is dropped.
#[derive(Debug, Default)]
pub(super) struct ListingShare {
    memory: ListingMemory,
    /// The server; `None` for a share of memory of its own.
    server: Option<ServerName>,
    held: usize,
    bounds: ListingBounds,
}

impl ListingShare {
    pub(super) fn new(memory: ListingMemory, server: ServerName, bounds: ListingBounds) -> Self {
        Self { memory, server: Some(server), held: 0, bounds }
    }

    /// Sets the bytes of the upstream's listings. If there is no memory for them, it returns false and changes nothing.
    #[must_use]
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let is_set = self.memory.0.lock().replace(self, bytes);
        if is_set {
            self.held = bytes;
        }
        is_set
    }
}

impl Drop for ListingShare {
    fn drop(&mut self) {
        // Fewer bytes always fit.
        let _ = self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: ListingBounds = ListingBounds { server: 2 << 20, all: 3 << 20 };

    fn share(memory: &ListingMemory, server: &str) -> ListingShare {
        ListingShare::new(memory.clone(), ServerName::parse(server).unwrap(), BOUNDS)
    }

    #[test]
    fn shares_stay_within_both_bounds_and_small_ones_always_fit() {
        let memory = ListingMemory::default();
        let share = |server: &str| share(&memory, server);
        let (mut first, mut second, mut small) = (share("first"), share("second"), share("small"));
        assert!(!first.set(BOUNDS.server + 1));
        assert!(first.set(BOUNDS.server));
        assert!(!second.set(BOUNDS.server), "together they exceed the bound");
        assert!(second.set(1 << 20));
        assert!(small.set(FREE_BYTES) && !small.set(FREE_BYTES + 1));
        assert!(first.set(1 << 20) && second.set(2 << 20), "what one gives back another can have");
        drop((first, second, small));
        let left = memory.0.lock();
        assert!(left.counted == 0 && left.servers.is_empty(), "{left:?}");
    }

    #[test]
    fn upstreams_of_one_server_have_one_share_together() {
        let memory = ListingMemory::default();
        let mut users: Vec<_> = (0..4).map(|_| share(&memory, "shared")).collect();
        assert!(users[0].set(BOUNDS.server / 2) && users[1].set(BOUNDS.server / 2));
        assert!(!users[2].set(1), "the share of the server is used up");
        let mut other = share(&memory, "other");
        assert!(other.set(1 << 20), "another server has the rest");
        users.truncate(1);
        // What is not counted is so once for the server, and not for each of its users.
        let mut small: Vec<_> = (0..8).map(|_| share(&memory, "small")).collect();
        assert!(small[0].set(FREE_BYTES));
        users.truncate(0);
        assert!(small[1].set(1));
        assert_eq!(memory.0.lock().counted, (1 << 20) + FREE_BYTES + 1);
        assert!(other.set(0) && small[0].set(0));
        assert_eq!(memory.0.lock().counted, 0);
    }
}
