use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use redb::{DatabaseError, StorageError};
use trunkline_session::{
    EventLimits, MemoryEvents, MemorySessions, MemoryStates, RecordSealer, SessionLimits, StateKeys,
    StateLimits,
};

use crate::clock_granularity;
use crate::database_file::{catch_panic, open_database};
use crate::error::{DatabaseFailure, FileStoreError};
use crate::file_events::FileEvents;
use crate::file_sessions::FileSessions;
use crate::file_states::FileStates;
use crate::store_core::{OpenDatabase, OpenStore, StoreCore, StoreMemory};
use crate::tables::{self, LoadError};
use crate::write_queue::WriteQueue;

/// The limits of the stores in a file.
#[derive(Clone, Debug, Default)]
pub struct FileStoreLimits {
    /// The limits of sessions.
    pub sessions: SessionLimits,
    /// The limits of events.
    pub events: EventLimits,
    /// The limits of handler state.
    pub states: StateLimits,
}

/// Legacy sessions, their events and handler state in one file.
///
/// ```no_run
/// use trunkline_session::StateKeys;
/// use trunkline_store_file::{FileStore, FileStoreLimits};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = StateKeys::from_files(["state.key"])?;
/// let store = FileStore::open("sessions.redb", &keys, FileStoreLimits::default())?;
/// let (sessions, events, states) = (store.sessions(), store.events(), store.states());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    store: Arc<OpenStore>,
    path: Arc<Path>,
}

impl FileStore {
    /// Opens a store, or creates it as a file that only its owner can read.
    ///
    /// Every record is sealed with the first of the keys. A record that is sealed with another of them is sealed again.
    ///
    /// # Errors
    /// [`FileStoreError`]: another process has the file open, it is sealed with another key, a newer build wrote it, or
    /// it cannot be read.
    pub fn open(
        path: impl AsRef<Path>,
        keys: &StateKeys,
        limits: FileStoreLimits,
    ) -> Result<Self, FileStoreError> {
        let path: Arc<Path> = path.as_ref().into();
        let opened = catch_panic(|| open_database(&path)).ok_or_else(|| broken(&path))?;
        let database = opened.map_err(|error| describe(&path, error))?;
        let reopened = path.clone();
        let reopen = Box::new(move || open_database(&reopened).map_err(DatabaseFailure::from));
        Self::start(path, database, reopen, keys, limits)
    }

    /// Reads an open database into memory and starts its writer.
    pub(crate) fn start(
        path: Arc<Path>,
        database: redb::Database,
        reopen: OpenDatabase,
        keys: &StateKeys,
        limits: FileStoreLimits,
    ) -> Result<Self, FileStoreError> {
        let (sealer, slack) = (RecordSealer::new(keys), clock_granularity(limits.sessions.idle));
        let memory = StoreMemory {
            sessions: MemorySessions::new(limits.sessions),
            events: MemoryEvents::with_journal(limits.events),
            states: MemoryStates::with_journal(limits.states),
        };
        // A database that has panicked may panic again when it is dropped.
        let read = || {
            let is_current = tables::check_header(&database, &sealer)?;
            let loaded = tables::load(&database, &sealer, &memory, slack)?;
            Ok::<_, LoadError>((database, is_current, loaded))
        };
        let read = catch_panic(read).ok_or_else(|| broken(&path))?;
        let (database, is_current, loaded) = read.map_err(|error| match error {
            LoadError::WrongKey => FileStoreError::WrongKey(path.to_path_buf()),
            LoadError::Newer(detail) => FileStoreError::Newer { path: path.to_path_buf(), detail },
            LoadError::File(cause) => FileStoreError::Damaged { path: path.to_path_buf(), cause: cause.0 },
        })?;
        if loaded.damaged > 0 {
            tracing::warn!(records = loaded.damaged, "removed records that could not be read");
        }
        let queue = WriteQueue::default();
        queue.mark(|dirty| {
            *dirty = loaded.outdated;
            dirty.header |= !is_current;
        });
        let core = Arc::new(StoreCore { memory, queue, sealer });
        // What loading dropped, because it is beyond the limits by now.
        core.mark_journals();
        let store = OpenStore::start(core, database, reopen)
            .map_err(|cause| FileStoreError::Unusable { path: path.to_path_buf(), cause })?;
        Ok(Self { store: Arc::new(store), path })
    }

    /// Returns the store of sessions.
    pub fn sessions(&self) -> FileSessions {
        FileSessions::new(self.store.clone())
    }

    /// Returns the store of events.
    pub fn events(&self) -> FileEvents {
        FileEvents::new(self.store.clone())
    }

    /// Returns the store of handler state.
    pub fn states(&self) -> FileStates {
        FileStates::new(self.store.clone())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the keys; returns whether they differ from those before. All records are sealed again then.
    pub fn replace_keys(&self, keys: &StateKeys) -> bool {
        self.store.core.replace_keys(keys)
    }
}

/// Describes a file with content at which the database panicked.
fn broken(path: &Path) -> FileStoreError {
    FileStoreError::Damaged { path: path.to_path_buf(), cause: "its parts do not fit together".to_owned() }
}

fn describe(path: &Path, error: DatabaseError) -> FileStoreError {
    let path = path.to_path_buf();
    match error {
        DatabaseError::DatabaseAlreadyOpen => FileStoreError::Locked(path),
        DatabaseError::Storage(StorageError::Io(cause)) => match cause.kind() {
            ErrorKind::InvalidData => {
                FileStoreError::Damaged { path, cause: "it does not begin as one".to_owned() }
            }
            ErrorKind::UnexpectedEof => {
                FileStoreError::Damaged { path, cause: "its end is missing".to_owned() }
            }
            _ => FileStoreError::Unusable { path, cause },
        },
        DatabaseError::UpgradeRequired(format) => {
            FileStoreError::Newer { path, detail: format!("its file format is {format}") }
        }
        other => FileStoreError::Damaged { path, cause: other.to_string() },
    }
}
