//! Advisory locks among processes. The system releases them when a process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::super::TokenKey;
use super::super::refresh_locks::RefreshLocks;

/// How long a lock is waited for. A refresh takes a few seconds at most.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a lock of another process is tried.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The locks of one store: files in a folder beside it.
#[derive(Debug)]
pub(super) struct StoreLocks {
    folder: PathBuf,
    /// Waiters of this process queue here, and one of them at a time tries the file.
    refreshes: RefreshLocks,
}

/// Excludes other refreshes until it is dropped.
#[derive(Debug)]
pub(super) struct RefreshLock {
    _file: File,
    _in_process: OwnedMutexGuard<()>,
}

impl StoreLocks {
    /// Returns the locks of a store. Their folder has to be created before they are used.
    pub(super) fn new(store: &Path) -> Self {
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".locks");
        Self { folder: store.with_file_name(name), refreshes: RefreshLocks::default() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits until no process writes. This blocks the thread.
    pub(super) fn for_writing(&self) -> io::Result<File> {
        let (path, begin) = (self.folder.join("write"), Instant::now());
        loop {
            match try_lock(&path)? {
                Some(file) => return Ok(file),
                None if begin.elapsed() >= LOCK_TIMEOUT => return Err(timed_out(&path)),
                None => std::thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    /// Waits until no refresh of a key is under way.
    pub(super) async fn for_refresh(&self, key: &TokenKey) -> io::Result<RefreshLock> {
        let path = self.folder.join(format!("refresh-{:02}", RefreshLocks::stripe_index(key)));
        let locked = tokio::time::timeout(LOCK_TIMEOUT, async {
            let in_process = self.refreshes.lock(key).await;
            loop {
                match try_lock(&path)? {
                    Some(file) => return Ok(RefreshLock { _file: file, _in_process: in_process }),
                    None => tokio::time::sleep(RETRY_INTERVAL).await,
                }
            }
        });
        locked.await.unwrap_or_else(|_| Err(timed_out(&path)))
    }
}

fn timed_out(path: &Path) -> io::Error {
    let message = format!("another process holds the lock {}", path.display());
    io::Error::new(io::ErrorKind::TimedOut, message)
}

/// Tries to lock a file, which is created; `None` if it is locked.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
    #[cfg(windows)]
    {
        // An open file that is not shared is its lock.
        const SHARING_VIOLATION: i32 = 32;
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
        match options.open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
