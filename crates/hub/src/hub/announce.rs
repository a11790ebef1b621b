//! Notifying clients that lists have changed: once for what happens within a short time, and only of what they were shown.

use std::sync::Weak;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;
use trunkline_server::Change;

use super::views::ListVersions;
use super::{Inner, SpeaksFor};
use crate::registry::Differs;
use crate::upstream::Lists;

/// Changes that clients are to be notified of.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    pending: Mutex<PendingChanges>,
    added: Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    /// Lists that are different from before.
    different: Differs,
    /// Lists that the only server of a bridge says have changed, which is passed on whether it is so or not.
    announced: Lists,
}

impl Announcements {
    pub(super) fn add(&self, different: Differs, announced: Lists) {
        {
            let mut pending = self.pending.lock();
            pending.different = pending.different.or(different);
            pending.announced = pending.announced.and(announced);
        }
        self.added.notify_one();
    }

    fn take(&self) -> PendingChanges {
        std::mem::take(&mut *self.pending.lock())
    }
}

/// Publishes changes, each time what has gathered within [`HubLimits::announce_after`](crate::HubLimits::announce_after).
pub(super) async fn publish_changes(inner: Weak<Inner>) {
    loop {
        let Some((announcements, pause)) =
            inner.upgrade().map(|inner| (inner.announcements.clone(), inner.options.limits.announce_after))
        else {
            return;
        };
        announcements.added.notified().await;
        sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        inner.publish(&announcements.take());
    }
}

impl Inner {
    fn publish(&self, pending: &PendingChanges) {
        let PendingChanges { different, announced } = pending;
        let announced = match self.speaks_for {
            SpeaksFor::ItsServer => *announced,
            SpeaksFor::Itself => Lists::NONE,
        };
        type Version = fn(ListVersions) -> u64;
        let lists: [(Change, bool, bool, Version); 3] = [
            (Change::Tools, different.tools, announced.tools, |versions| versions.tools),
            (Change::Prompts, different.prompts, announced.prompts, |versions| versions.prompts),
            (Change::Resources, different.resources, announced.resources, |versions| versions.resources),
        ];
        let views = self.views.load();
        for (change, is_different, is_announced, version) in lists {
            if is_announced {
                self.changes.publish(&change);
            } else if is_different {
                self.changes.publish_outdated(&change, |shown| views.is_outdated(shown, version));
            }
        }
    }
}
