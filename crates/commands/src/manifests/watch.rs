use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use trunkline_server::Notifier;

use super::provider::Shared;

/// How long is waited after a change for those that come with it.
const SETTLE: Duration = Duration::from_millis(50);

/// How often is looked where the system does not tell of changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A thread that looks for manifests again whenever files change. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    /// The thread goes on for as long as this end of the channel is there.
    alive: Option<SyncSender<()>>,
    /// What wakes the thread.
    changed: SyncSender<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.alive = None;
        // A change that waits already wakes the thread as well.
        let _ = self.changed.try_send(());
    }
}

impl Watch {
    pub(super) fn begin(shared: Arc<Shared>, notifier: Notifier) -> Self {
        // One change that waits is as good as many: the look after it sees them all.
        let (changed, changes) = sync_channel(1);
        let (alive, ended) = sync_channel::<()>(0);
        let wake = changed.clone();
        let spawned = std::thread::Builder::new().name("manifests".to_owned()).spawn(move || {
            let mut folders = Watched::new(changed);
            let looker = Looker { shared, notifier, changes, ended };
            looker.look(&mut folders);
            while looker.wait(folders.is_complete) {
                looker.look(&mut folders);
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "changes of manifests are not noticed");
        }
        Self { alive: Some(alive), changed: wake }
    }
}

struct Looker {
    shared: Arc<Shared>,
    notifier: Notifier,
    changes: Receiver<()>,
    ended: Receiver<()>,
}

impl Looker {
    fn look(&self, watched: &mut Watched) {
        let (news, folders) = self.shared.look();
        watched.follow(folders);
        if news.listed {
            self.notifier.list_changed();
        }
        for uri in news.updated {
            self.notifier.updated(uri);
        }
    }

    /// Waits until files have changed; returns false when nobody is interested any more.
    fn wait(&self, told: bool) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            match self.changes.recv_timeout(LOOK_EVERY) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if told => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        // What changes a file often changes it several times, and a look is not for free.
        std::thread::sleep(SETTLE);
        let _ = self.changes.try_recv();
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected)
    }
}

/// The folders that the system tells us of.
struct Watched {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    is_complete: bool,
}

impl Watched {
    fn new(changed: SyncSender<()>) -> Self {
        let tell = move |event: notify::Result<Event>| {
            if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
                // A change that waits already stands for this one too.
                let (Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(()))) =
                    changed.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(tell)
            .inspect_err(
                |error| tracing::warn!(%error, "the system does not tell of changes; looking for them"),
            )
            .ok();
        Self { is_complete: watcher.is_some(), watcher, folders: BTreeSet::new() }
    }

    /// Watches these folders and no others.
    fn follow(&mut self, folders: Vec<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        let wanted: BTreeSet<PathBuf> = folders.into_iter().collect();
        for gone in self.folders.difference(&wanted) {
            // It may be gone altogether, and its watch with it.
            let _ = watcher.unwatch(gone);
        }
        let mut watch = |folder: &Path| watcher.watch(folder, RecursiveMode::NonRecursive);
        let failed = wanted.difference(&self.folders).find_map(|folder| watch(folder).err());
        if let (Some(error), true) = (&failed, self.is_complete) {
            tracing::warn!(%error, "some folders cannot be watched; looking for changes");
            self.is_complete = false;
        }
        self.folders = wanted;
    }
}
