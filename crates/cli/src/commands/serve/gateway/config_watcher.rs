//! Watches the configuration file for changes and for reload requests.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::Gateway;

/// How long it has to be quiet after a change: what writes a file often does so in several steps.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How long is waited for quiet at most.
const MAX_DEBOUNCE: Duration = Duration::from_secs(1);

/// The polling interval where the system cannot watch for changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Gateway {
    /// Reloads the file whenever it changes, and on a reload signal.
    pub(super) async fn follow_config(&self, mut hangups: HangupSignals) -> Infallible {
        let mut watch = ConfigWatcher::start(self.plan().source.path());
        loop {
            let asked = tokio::select! {
                () = watch.changed() => false,
                () = hangups.next() => true,
            };
            if let Some(audit) = self.inner.audit.get().filter(|_| asked) {
                audit.reopen();
            }
            let gateway = self.clone();
            // A server that is slow to start must not keep the next change waiting.
            tokio::spawn(async move { gateway.reload_if_changed(asked).await });
        }
    }
}

/// Watches the folders that a file is in: an editor replaces the file, and what is watched would be the old one.
struct ConfigWatcher {
    file: PathBuf,
    /// Whether what was changed before it was watched is still to be seen.
    check_first: bool,
    folders: Option<ConfigFolderWatcher>,
}

struct ConfigFolderWatcher {
    changes: mpsc::Receiver<()>,
    /// Sends changes until it is dropped.
    _watcher: RecommendedWatcher,
}

impl ConfigWatcher {
    fn start(file: &Path) -> Self {
        let watching = ConfigFolderWatcher::start(file)
            .inspect_err(|error| {
                tracing::warn!(%error, "cannot watch {} for changes; polling it", file.display());
            })
            .ok();
        Self { file: file.to_owned(), check_first: true, folders: watching }
    }

    /// Waits until something in the folder has changed and it is quiet again. It is so at first, since the file was read
    /// before it was watched.
    async fn changed(&mut self) {
        if std::mem::take(&mut self.check_first) {
            return;
        }
        match &mut self.folders {
            // If the watcher fails, no more events arrive, and the file is polled from then on.
            Some(watching) => drop(watching.changes.recv().await),
            None => sleep(POLL_INTERVAL).await,
        }
        // The folder may be gone or replaced; the previous watcher reports nothing about the new one.
        self.folders = ConfigFolderWatcher::start(&self.file).ok();
        let latest = Instant::now() + MAX_DEBOUNCE;
        while let Some(watching) = &mut self.folders
            && let Ok(Some(())) =
                timeout_at(latest.min(Instant::now() + DEBOUNCE), watching.changes.recv()).await
        {}
    }
}

impl ConfigFolderWatcher {
    fn start(file: &Path) -> notify::Result<Self> {
        // One change that waits is as good as many.
        let (tell, changes) = mpsc::channel(1);
        Ok(Self { changes, _watcher: watch_folders(file, tell)? })
    }
}

fn watch_folders(file: &Path, tell: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reading the file is an event too, and must not lead to reading it again.
        let is_change = event.map_or(true, |event| !matches!(event.kind, EventKind::Access(_)));
        if is_change {
            // If one waits already, this one is seen with it.
            let _ = tell.try_send(());
        }
    })?;
    // The file may be a link, in which case both the link and what it leads to may be replaced.
    let mut folders = vec![folder_of(file)];
    folders.extend(std::fs::canonicalize(file).ok().map(|target| folder_of(&target)));
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

/// The signal that requests a reload, received from the moment that this is created.
pub(super) struct HangupSignals {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl HangupSignals {
    /// Begins to listen. It has to be called within a runtime.
    ///
    /// # Errors
    /// The operating system does not allow it.
    pub(super) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signal: signal(SignalKind::hangup())? })
    }

    async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
impl HangupSignals {
    /// The platform has no such signal.
    ///
    /// # Errors
    /// Never.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const WATCHDOG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_change_before_the_watch_is_seen_and_so_is_one_in_a_folder_that_was_made_anew() {
        let folder = std::env::temp_dir().join(format!("trunkline-follow-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("mcp.json");
        std::fs::write(&file, "1").unwrap();
        let mut watch = ConfigWatcher::start(&file);
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
