//! Watches files for changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

/// The debounce time after a change: editors often write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How long is waited for quiet at most.
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);

/// The polling interval where the system cannot watch for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Watches the folders that files are in: an editor replaces a file, and what is watched would be the old one.
pub(crate) struct FileWatcher {
    files: Vec<PathBuf>,
    /// Whether what was changed before it was watched is still to be seen.
    check_first: bool,
    folders: Option<FolderWatcher>,
}

struct FolderWatcher {
    changes: mpsc::Receiver<()>,
    /// Sends changes until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileWatcher {
    /// Begins to watch.
    pub(crate) fn start(files: Vec<PathBuf>) -> Self {
        let watching = FolderWatcher::start(&files)
            .inspect_err(|error| {
                let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                tracing::warn!(%error, "cannot watch {} for changes; polling", names.join(", "));
            })
            .ok();
        Self { files, check_first: true, folders: watching }
    }

    /// Waits until something in the folders has changed and it is quiet again. It is so at first, since the files were
    /// read before they were watched.
    pub(crate) async fn changed(&mut self) {
        if std::mem::take(&mut self.check_first) {
            return;
        }
        match &mut self.folders {
            // If the watcher fails, no more events arrive, and the file is polled from then on.
            Some(watching) => drop(watching.changes.recv().await),
            None => sleep(POLL_INTERVAL).await,
        }
        // The folder may be gone or replaced; the previous watcher reports nothing about the new one.
        self.folders = FolderWatcher::start(&self.files).ok();
        let latest = Instant::now() + MAX_DEBOUNCE;
        while let Some(watching) = &mut self.folders
            && let Ok(Some(())) =
                timeout_at(latest.min(Instant::now() + DEBOUNCE), watching.changes.recv()).await
        {}
    }
}

impl FolderWatcher {
    fn start(files: &[PathBuf]) -> notify::Result<Self> {
        // One change that waits is as good as many.
        let (tell, changes) = mpsc::channel(1);
        Ok(Self { changes, _watcher: watch_folders(files, tell)? })
    }
}

fn watch_folders(files: &[PathBuf], tell: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reading the file is an event too, and must not lead to reading it again.
        let is_change = event.map_or(true, |event| !matches!(event.kind, EventKind::Access(_)));
        if is_change {
            // If one waits already, this one is seen with it.
            let _ = tell.try_send(());
        }
    })?;
    // A file may be a link, in which case both the link and what it leads to may be replaced.
    let links = files.iter().map(|file| folder_of(file));
    let targets = files.iter().filter_map(|file| std::fs::canonicalize(file).ok());
    let folders: BTreeSet<PathBuf> = links.chain(targets.map(|target| folder_of(&target))).collect();
    for folder in folders {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const WATCHDOG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn file_watcher_sees_changes_before_start_and_in_a_recreated_folder() {
        let folder = std::env::temp_dir().join(format!("trunkline-follow-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("mcp.json");
        std::fs::write(&file, "1").unwrap();
        let mut watch = FileWatcher::start(vec![file.clone()]);
        timeout(WATCHDOG, watch.changed()).await.expect("what was before is read once");
        std::fs::remove_dir_all(&folder).unwrap();
        timeout(WATCHDOG, watch.changed()).await.expect("the folder is gone");
        timeout(WATCHDOG, watch.changed()).await.expect("it is looked again without being told");
        std::fs::create_dir(&folder).unwrap();
        while watch.folders.is_none() {
            timeout(WATCHDOG, watch.changed()).await.expect("the folder is there");
        }
        std::fs::write(&file, "2").unwrap();
        timeout(WATCHDOG, watch.changed()).await.expect("the new folder is watched");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
