//! What a server lists over the connection of one of several callers, which may depend on the state that it keeps for that
//! caller.
//!
//! All callers with the same capabilities see the same listing, so it is fetched over connections that no caller has used.
//! Where all clients are one user there is no difference: connections of that user list for all of them.
//!
//! # Invariants
//!
//! - What a server lists in the session of one of several callers is shown to no other:
//!   `what_a_server_lists_in_the_session_of_one_caller_is_shown_to_no_other`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use trunkline_session::Principal;

use super::Upstream;
use super::caller_profile::{CallerProfile, ClientKey, PoolKey};
use super::connection::UpstreamConnection;
use super::listing_key::ListingKey;
use crate::options::{AnonymousClients, HubOptions, ProcessCaller};

/// How long a listing is not fetched again because connections of single callers announce changes.
const RELIST_INTERVAL: Duration = Duration::from_secs(10);

/// After how long a listing is fetched again when a caller opens a connection of its own, since the server may list other
/// items by now.
const RELIST_AGE: Duration = Duration::from_secs(60);

impl ClientKey {
    /// Reports whether there may be other callers that are not to see what the server lists for this party. There are none
    /// where all clients are one user.
    pub(super) fn is_one_of_several(&self, options: &HubOptions) -> bool {
        match self {
            Self::Principal(Principal::Process) => options.process == ProcessCaller::Operator,
            Self::Principal(Principal::Anonymous) => options.anonymous == AnonymousClients::Isolated,
            Self::Principal(Principal::Named(_)) | Self::Session(_) | Self::Connection(_) | Self::Host(_) => {
                true
            }
        }
    }
}

impl UpstreamConnection {
    /// Reports whether a caller may claim it: one of several only once the lists for all were fetched, which the state of
    /// that caller could change.
    pub(super) fn may_be_claimed(&self, key: &PoolKey, options: &HubOptions) -> bool {
        let owner = key.owner.as_ref();
        !owner.is_some_and(|owner| owner.party.is_one_of_several(options)) || self.has_listed()
    }
}

impl Upstream {
    /// Reports whether a connection is that of one of several callers: what the server lists over it is for no other.
    pub(super) fn is_private(&self, connection: &UpstreamConnection) -> bool {
        connection.owner().is_some_and(|owner| owner.party.is_one_of_several(&self.options))
    }

    /// Fetches a listing again, over a connection that is no caller's own, unless that is about to happen.
    ///
    /// What a server lists over the connection of one of several callers may depend on that caller's state, and other
    /// callers see the listing too. So a change there only means that the listing for all may have changed.
    pub(super) fn relist(self: &Arc<Self>, shown: ListingKey) {
        if !self.lock().listings.set_outdated(shown) {
            return;
        }
        let upstream = self.clone();
        self.spawn_task(async move {
            let due = upstream.lock().relist_due;
            if let Some(due) = due {
                sleep_until(due).await;
            }
            upstream.update_state(|state| state.relist_due = Some(Instant::now() + RELIST_INTERVAL));
            let _ = timeout(upstream.options.limits.listing_timeout, upstream.list_again(shown)).await;
            upstream.lock().listings.keep_outdated(shown);
        });
    }

    /// Fetches a listing for the first time, or again if that was not done for a while.
    pub(super) fn relist_if_old(self: &Arc<Self>, shown: ListingKey) {
        let is_recent = {
            let state = self.lock();
            let is_recent = state.listed_at.is_some_and(|at| at.elapsed() < RELIST_AGE);
            state.listings.contains(shown) && is_recent
        };
        if !is_recent {
            self.relist(shown);
        }
    }

    async fn list_again(self: &Arc<Self>, shown: ListingKey) {
        let mut state_changes = self.change_counter.subscribe();
        let Ok(lease) = self.lease(&CallerProfile::of_lists(shown)).await else { return };
        lease.connection().wake_supervisor();
        let listed = state_changes.wait_for(|_| self.lock().listings.is_up_to_date(shown));
        tokio::select! {
            // The sender is `self`, so that this waits and never fails.
            _ = listed => {}
            _ = lease.client().closed() => {}
            () = lease.connection().close_requested() => {}
        }
    }
}
