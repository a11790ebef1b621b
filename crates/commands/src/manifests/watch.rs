use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use trunkline_server::ChangeNotifier;

use super::provider::ManifestState;
use super::scan::WatchScope;

/// How long is waited after a change for those that come with it.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// How often is looked where the system does not tell of changes, at the most.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How many times as long as a look takes is waited for the next, so that looking never keeps a machine busy.
const POLL_BACKOFF_FACTOR: u32 = 20;

/// A thread that looks for manifests again whenever files change. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct ManifestWatcher {
    /// The thread goes on for as long as this end of the channel is there.
    alive: Option<SyncSender<()>>,
    /// What wakes the thread.
    changed: SyncSender<()>,
}

impl Drop for ManifestWatcher {
    fn drop(&mut self) {
        self.alive = None;
        // A change that waits already wakes the thread as well.
        let _ = self.changed.try_send(());
    }
}

impl ManifestWatcher {
    pub(super) fn spawn(shared: Arc<ManifestState>, notifier: ChangeNotifier) -> Self {
        // One change that waits is as good as many: the look after it sees them all.
        let (changed, changes) = sync_channel(1);
        let (alive, ended) = sync_channel::<()>(0);
        let wake = changed.clone();
        let spawned = std::thread::Builder::new().name("manifests".to_owned()).spawn(move || {
            let mut folders = WatchedFolders::new(changed);
            let looker = ManifestScanner { shared, notifier, changes, ended };
            let mut took = looker.scan_and_notify(&mut folders);
            while looker.wait(folders.covers_all(), POLL_INTERVAL.max(took * POLL_BACKOFF_FACTOR)) {
                took = looker.scan_and_notify(&mut folders);
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot watch manifests for changes");
        }
        Self { alive: Some(alive), changed: wake }
    }
}

struct ManifestScanner {
    shared: Arc<ManifestState>,
    notifier: ChangeNotifier,
    changes: Receiver<()>,
    ended: Receiver<()>,
}

impl ManifestScanner {
    /// Looks for what has changed, tells of it, and returns how long that took.
    fn scan_and_notify(&self, watched: &mut WatchedFolders) -> Duration {
        let began = Instant::now();
        let (mut news, around) = self.shared.scan();
        if watched.update(around) {
            // What changed in a folder after we looked and before it was watched was told to nobody.
            let (missed, around) = self.shared.scan();
            watched.update(around);
            news.merge(missed);
        }
        if news.list_changed {
            self.notifier.list_changed();
        }
        for uri in news.updated {
            self.notifier.resource_updated(uri);
        }
        began.elapsed()
    }

    /// Waits until files have changed; returns false when nobody is interested any more.
    fn wait(&self, told: bool, within: Duration) -> bool {
        loop {
            if self.is_stopped() {
                return false;
            }
            match self.changes.recv_timeout(within) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if told => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        // What changes a file often changes it several times, and a look is not for free.
        std::thread::sleep(DEBOUNCE);
        let _ = self.changes.try_recv();
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected)
    }
}

/// The folders that the system tells us of.
struct WatchedFolders {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// Some folder could not be watched.
    failed: bool,
    /// There are more folders than may be watched.
    has_more: bool,
}

impl WatchedFolders {
    fn new(changed: SyncSender<()>) -> Self {
        let tell = move |event: notify::Result<Event>| {
            if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
                // A change that waits already stands for this one too.
                let (Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(()))) =
                    changed.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(tell)
            .inspect_err(|error| tracing::warn!(%error, "cannot watch for changes; polling"))
            .ok();
        Self { watcher, folders: BTreeSet::new(), failed: false, has_more: false }
    }

    /// Reports whether every change is told, so that nobody has to look for any.
    fn covers_all(&self) -> bool {
        self.watcher.is_some() && !self.failed && !self.has_more
    }

    /// Watches these folders and no others, and returns whether there are new ones among them.
    fn update(&mut self, around: WatchScope) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        if around.has_more && !self.has_more {
            tracing::warn!("too many folders to watch; polling");
        }
        self.has_more = around.has_more;
        let wanted = around.folders;
        for gone in self.folders.difference(&wanted) {
            // It may be gone altogether, and its watch with it.
            let _ = watcher.unwatch(gone);
        }
        let mut watch = |folder: &Path| watcher.watch(folder, RecursiveMode::NonRecursive);
        let new: Vec<&PathBuf> = wanted.difference(&self.folders).collect();
        let failed: Vec<notify::Error> = new.iter().filter_map(|folder| watch(folder).err()).collect();
        let is_new = !new.is_empty();
        if let (Some(error), false) = (failed.first(), self.failed) {
            tracing::warn!(%error, "cannot watch some folders; polling");
            self.failed = true;
        }
        self.folders = wanted;
        is_new
    }
}
