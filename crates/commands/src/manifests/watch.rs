use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use trunkline_server::ChangeNotifier;

use super::provider::ManifestState;
use super::scan::WatchScope;

/// The delay after a change in which further changes are collected.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The shortest polling interval, where the system reports no changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The polling interval as a multiple of the duration of a scan, so that scanning never keeps a machine busy.
const POLL_BACKOFF_FACTOR: u32 = 20;

/// A thread that rescans for manifests whenever files change. It is stopped on drop.
#[derive(Debug)]
pub(super) struct ManifestWatcher {
    /// The thread runs until this end of the channel is dropped.
    alive: Option<SyncSender<()>>,
    /// Wakes the thread.
    changed: SyncSender<()>,
}

impl Drop for ManifestWatcher {
    fn drop(&mut self) {
        self.alive = None;
        // If the channel is full, the queued change wakes the thread as well.
        let _ = self.changed.try_send(());
    }
}

impl ManifestWatcher {
    pub(super) fn spawn(shared: Arc<ManifestState>, notifier: ChangeNotifier) -> Self {
        // One queued change suffices: the next scan sees all changes.
        let (changed, changes) = sync_channel(1);
        let (alive, ended) = sync_channel::<()>(0);
        let wake = changed.clone();
        let spawned = std::thread::Builder::new().name("manifests".to_owned()).spawn(move || {
            let mut folders = WatchedFolders::new(changed);
            let scanner = ManifestScanner { shared, notifier, changes, ended };
            let mut took = scanner.scan_and_notify(&mut folders);
            while scanner.wait(folders.covers_all(), POLL_INTERVAL.max(took * POLL_BACKOFF_FACTOR)) {
                took = scanner.scan_and_notify(&mut folders);
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
    /// Rescans, notifies of changes, and returns the duration.
    fn scan_and_notify(&self, watched: &mut WatchedFolders) -> Duration {
        let began = Instant::now();
        let (mut changes, scope) = self.shared.scan();
        if watched.update(scope) {
            // A change after the scan and before the folder was watched would be missed.
            let (missed, scope) = self.shared.scan();
            watched.update(scope);
            changes.merge(missed);
        }
        if changes.list_changed {
            self.notifier.list_changed();
        }
        for uri in changes.updated {
            self.notifier.resource_updated(uri);
        }
        began.elapsed()
    }

    /// Waits until files have changed; returns false once the watcher is dropped.
    fn wait(&self, is_covered: bool, within: Duration) -> bool {
        loop {
            if self.is_stopped() {
                return false;
            }
            match self.changes.recv_timeout(within) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) if is_covered => {}
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        // Debounce: a file is often changed several times in a row, and a scan is expensive.
        std::thread::sleep(DEBOUNCE);
        let _ = self.changes.try_recv();
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected)
    }
}

/// The folders that are watched by the system.
struct WatchedFolders {
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// A folder could not be watched.
    failed: bool,
    /// There are more folders than may be watched.
    has_more: bool,
}

impl WatchedFolders {
    fn new(changed: SyncSender<()>) -> Self {
        let on_event = move |event: notify::Result<Event>| {
            if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
                // If the channel is full, the queued change covers this one too.
                let (Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(()))) =
                    changed.try_send(());
            }
        };
        let watcher = notify::recommended_watcher(on_event)
            .inspect_err(|error| tracing::warn!(%error, "cannot watch for changes; polling"))
            .ok();
        Self { watcher, folders: BTreeSet::new(), failed: false, has_more: false }
    }

    /// Reports whether the system reports every change, so that polling is not needed.
    fn covers_all(&self) -> bool {
        self.watcher.is_some() && !self.failed && !self.has_more
    }

    /// Watches exactly these folders, and returns whether there are new ones among them.
    fn update(&mut self, scope: WatchScope) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        if scope.has_more && !self.has_more {
            tracing::warn!("too many folders to watch; polling");
        }
        self.has_more = scope.has_more;
        let wanted = scope.folders;
        for gone in self.folders.difference(&wanted) {
            // The folder may be deleted, and its watch with it.
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
