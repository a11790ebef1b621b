//! Notifies clients of changed lists: batched over a short delay, and only for lists that they were shown.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;
use trunkline_server::ServerChange;

use super::views::{CallerViews, ListVersions};
use super::{HubInner, IdentitySource};
use crate::registry::ListDifferences;
use crate::upstream::ListSet;

/// Changes that clients are to be notified of.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    pending: Mutex<PendingChanges>,
    added: Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    /// Lists that are different from before.
    changed: ListDifferences,
    /// Lists for which the only upstream of a bridge has sent `list_changed`, which is forwarded even if the list is
    /// the same.
    announced: ListSet,
}

impl Announcements {
    pub(super) fn add(&self, different: ListDifferences, announced: ListSet) {
        {
            let mut pending = self.pending.lock();
            pending.changed = pending.changed.union(different);
            pending.announced = pending.announced.union(announced);
        }
        self.added.notify_one();
    }

    fn take(&self) -> PendingChanges {
        std::mem::take(&mut *self.pending.lock())
    }
}

/// Publishes changes, batched over [`HubLimits::announce_delay`](crate::HubLimits::announce_delay).
pub(super) async fn publish_changes(inner: Weak<HubInner>) {
    loop {
        let Some((announcements, pause)) =
            inner.upgrade().map(|inner| (inner.announcements.clone(), inner.options.limits.announce_delay))
        else {
            return;
        };
        announcements.added.notified().await;
        sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        inner.publish(&announcements.take());
    }
}

impl HubInner {
    fn publish(self: &Arc<Self>, pending: &PendingChanges) {
        let PendingChanges { changed: different, announced } = pending;
        let announced = match self.identity_source {
            IdentitySource::Upstream => *announced,
            IdentitySource::Hub => ListSet::NONE,
        };
        type VersionFn = fn(ListVersions) -> u64;
        let lists: [(ServerChange, bool, bool, VersionFn); 3] = [
            (ServerChange::Tools, different.tools, announced.tools, |versions| versions.tools),
            (ServerChange::Prompts, different.prompts, announced.prompts, |versions| versions.prompts),
            (ServerChange::Resources, different.resources, announced.resources, |versions| {
                versions.resources
            }),
        ];
        let views = self.views.load();
        for (change, is_different, is_announced, version) in lists {
            if is_announced {
                // Every process that shares the hub's sessions has connections of its own, and learns of it by itself.
                self.changes.publish_here(&change);
            } else if is_different {
                self.changes.publish_outdated(&change, |subscriber, shown| match subscriber {
                    Some(subscriber) if subscriber.session.is_none() => {
                        // It counts as having seen each version that it was notified of; what has no version yet has
                        // not changed.
                        let current = version(self.current_versions(Some(subscriber)));
                        (current != shown && current != 0).then_some(current)
                    }
                    _ => self.is_outdated(&views, shown, version).then_some(shown),
                });
            }
        }
    }

    /// Reports whether a list version that a client was shown is that of no view of any user any more.
    fn is_outdated(&self, views: &CallerViews, shown: u64, version: fn(ListVersions) -> u64) -> bool {
        let spaces = self.users.all();
        views.is_outdated(shown, version)
            && spaces.iter().all(|space| space.views.load().is_outdated(shown, version))
    }
}
