use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::change::ServerChange;

/// The version of a list that was shown to a client in an unknown version.
const UNKNOWN: u64 = u64::MAX;

/// Which version of each list a client was shown last, so that it is notified only of changes to what it has seen.
///
/// Clones share their state. Versions are the handler's own numbers, and begin with 1.
#[derive(Clone, Debug, Default)]
pub struct ShownLists(Arc<ShownVersions>);

#[derive(Debug, Default)]
struct ShownVersions {
    tools: AtomicU64,
    prompts: AtomicU64,
    resources: AtomicU64,
}

impl ShownLists {
    /// Assumes that lists were shown in these versions; 0 is one before the first.
    pub fn from_versions(tools: u64, prompts: u64, resources: u64) -> Self {
        let known = |version: u64| AtomicU64::new(if version == 0 { UNKNOWN } else { version });
        Self(Arc::new(ShownVersions {
            tools: known(tools),
            prompts: known(prompts),
            resources: known(resources),
        }))
    }

    /// Returns the version that was shown, if any was. What is not a list has none.
    pub(crate) fn version(&self, list: &ServerChange) -> Option<u64> {
        Some(self.slot(list)?.load(Ordering::Acquire)).filter(|version| *version != 0)
    }

    pub(crate) fn set(&self, list: &ServerChange, version: u64) {
        if let Some(slot) = self.slot(list) {
            slot.store(version, Ordering::Release);
        }
    }

    /// Assumes that every list was shown, in a version that nothing is known of.
    pub(crate) fn mark_all_shown(&self) {
        for list in [ServerChange::Tools, ServerChange::Prompts, ServerChange::Resources] {
            self.set(&list, UNKNOWN);
        }
    }

    fn slot(&self, list: &ServerChange) -> Option<&AtomicU64> {
        match list {
            ServerChange::Tools => Some(&self.0.tools),
            ServerChange::Prompts => Some(&self.0.prompts),
            ServerChange::Resources => Some(&self.0.resources),
            ServerChange::ResourceUpdated(_) => None,
        }
    }
}

/// Two are equal if they are of one session.
impl PartialEq for ShownLists {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ShownLists {}
