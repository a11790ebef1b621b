//! How much of the server its callers may hold at a time.
//!
//! - [`KeyQuota`]: items for each key, such as the calls of a principal or the connections of an address.
//! - [`ByteBudget`]: bytes of all callers together, such as the requests that are being answered; no party takes them all.
//! - [`WriteBudget`]: bytes that peers have not read; beyond the bound a slow reader is evicted.
//!
//! # Invariants
//! - A permit gives back what it took when it is dropped: `quota_limits_each_principal_and_the_total`,
//!   `budget_is_taken_and_given_back_by_its_permits`.
//! - A party that holds all it can get leaves a share to others: `party_leaves_as_many_bytes_to_others_as_it_holds`.

mod byte_budget;
mod key_quota;
mod write_budget;

pub(crate) use self::byte_budget::{ByteBudget, BytePermit};
pub(crate) use self::key_quota::{KeyPermit, KeyQuota};
pub(crate) use self::write_budget::{PeerBacklog, SlowReaderEvicted, WriteBudget};
