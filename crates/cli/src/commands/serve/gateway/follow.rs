//! Noticing that the file has changed, or that somebody asks to read it again.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::Gateway;

/// How long it has to be quiet after a change: what writes a file often does so in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// How long is waited for quiet at most.
const SETTLE_AT_MOST: Duration = Duration::from_secs(1);

/// How often is looked where the system does not tell of changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Gateway {
    /// Reads the file again whenever it is different, and whenever somebody asks for it by a signal.
    pub(super) async fn follow(&self, mut hangups: Hangups) -> Infallible {
        let mut watch = Watch::begin(self.plan().source.path());
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
            tokio::spawn(async move { gateway.reread(asked).await });
        }
    }
}

/// Watches the folders that a file is in: an editor replaces the file, and what is watched would be the old one.
struct Watch {
    changes: mpsc::Receiver<()>,
    /// It tells of changes for as long as it is there.
    _watcher: Option<RecommendedWatcher>,
    is_told: bool,
}

impl Watch {
    fn begin(file: &Path) -> Self {
        // One change that waits is as good as many.
        let (tell, changes) = mpsc::channel(1);
        match watcher(file, tell) {
            Ok(watcher) => Self { changes, _watcher: Some(watcher), is_told: true },
            Err(error) => {
                tracing::warn!(%error, "the system does not tell of changes of {}", file.display());
                Self { changes, _watcher: None, is_told: false }
            }
        }
    }

    /// Waits until something in the folder has changed and it is quiet again.
    async fn changed(&mut self) {
        if !self.is_told || self.changes.recv().await.is_none() {
            return sleep(LOOK_EVERY).await;
        }
        let latest = Instant::now() + SETTLE_AT_MOST;
        while let Ok(Some(())) = timeout_at(latest.min(Instant::now() + SETTLE), self.changes.recv()).await {}
    }
}

fn watcher(file: &Path, tell: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
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

/// The signal that asks to read the file again, from the moment that this is made.
pub(super) struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Hangups {
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
impl Hangups {
    /// There is no such signal here.
    ///
    /// # Errors
    /// Never.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
