//! What the three stores of a file share: the content in memory, the queue of changes and the thread that writes.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use redb::Database;
use trunkline_session::{MemoryEvents, MemorySessions, MemoryStates, RecordSealer, StateKeys};

use crate::database_file::catch_panic;
use crate::error::DatabaseFailure;
use crate::tables;
use crate::write_queue::WriteQueue;

/// The content of the file. Everything is read from memory, within the same limits as stores in memory have.
pub(crate) struct StoreMemory {
    pub(crate) sessions: MemorySessions,
    pub(crate) events: MemoryEvents,
    pub(crate) states: MemoryStates,
}

pub(crate) struct StoreCore {
    pub(crate) memory: StoreMemory,
    pub(crate) queue: WriteQueue,
    pub(crate) sealer: RecordSealer,
}

impl StoreCore {
    /// Replaces the keys. If they differ, every row is sealed again, so that an old key can be removed later.
    pub(crate) fn replace_keys(&self, keys: &StateKeys) -> bool {
        let has_changed = self.sealer.replace(keys);
        if has_changed {
            let events = self.memory.events.serials();
            self.queue.mark(|dirty| {
                dirty.header = true;
                dirty.sessions.extend(self.memory.sessions.ids());
                dirty.states.extend(self.memory.states.handles());
                dirty.events.extend(events);
            });
        }
        has_changed
    }
}

impl StoreCore {
    /// Marks the rows that the limits, or the end of a session, have changed.
    pub(crate) fn mark_journals(&self) {
        // Under the lock of the queue, so that no caller commits between a change that another one took and its mark.
        self.queue.mark(|dirty| {
            let changed = self.memory.events.take_changes();
            dirty.events.extend(changed.into_iter().map(|(session, serial)| (serial, session)));
            dirty.states.extend(self.memory.states.take_removed());
        });
    }
}

/// The store as long as it is in use; dropping it writes what is left and closes the file.
pub(crate) struct OpenStore {
    pub(crate) core: Arc<StoreCore>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// Opens the database; called again after a failure, since a database that failed once does not recover.
pub(crate) type OpenDatabase = Box<dyn FnMut() -> Result<Database, DatabaseFailure> + Send>;

impl OpenStore {
    pub(crate) fn start(
        core: Arc<StoreCore>,
        database: Database,
        open: OpenDatabase,
    ) -> std::io::Result<Self> {
        let written = core.clone();
        let writer = std::thread::Builder::new()
            .name("trunkline-store".to_owned())
            .spawn(move || run_writer(&written, database, open))?;
        Ok(Self { core, writer: Mutex::new(Some(writer)) })
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        self.core.queue.close();
        if let Some(writer) = self.writer.lock().take() {
            // A writer that panicked has written nothing more, which its log line shows.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreMemory { sessions, events, states } = &self.core.memory;
        f.debug_struct("OpenStore")
            .field("sessions", sessions)
            .field("events", events)
            .field("states", states)
            .finish_non_exhaustive()
    }
}

/// Fails the waiting callers when the writer ends, however it ends.
struct EndGuard<'a>(&'a WriteQueue);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Writes batches until the store is closed. All changes that arrive during one commit share the next one.
fn run_writer(core: &StoreCore, database: Database, mut open: OpenDatabase) {
    let _end = EndGuard(&core.queue);
    let mut database = Some(database);
    while let Some(batch) = core.queue.next_batch() {
        let written = catch_panic(|| write_batch(core, &mut database, &mut open, &batch.dirty));
        let written = written.unwrap_or_else(|| Err(DatabaseFailure("the file is damaged".to_owned())));
        if let Err(error) = &written {
            tracing::error!(%error, "the session store cannot be written; no change is accepted until it can");
            // A database does no more after an input or output error; the next attempt opens it again.
            let _ = catch_panic(|| database = None);
        }
        if !core.queue.finish(batch, written.map_err(|error| error.to_string())) {
            return;
        }
    }
}

fn write_batch(
    core: &StoreCore,
    database: &mut Option<Database>,
    open: &mut OpenDatabase,
    dirty: &crate::write_queue::DirtyRows,
) -> Result<(), DatabaseFailure> {
    if dirty.is_empty() {
        return Ok(());
    }
    let database = match database {
        Some(database) => database,
        None => database.insert(open()?),
    };
    tables::write(database, &core.sealer, &core.memory, dirty)
}
