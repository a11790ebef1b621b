//! The file of the database: how it is opened, and what an interrupted creation or damage leaves behind.

use std::fs::{File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageBackend};

/// How much of the file is cached in memory, besides its content: it is only written while it is open.
const CACHE_BYTES: usize = 4 << 20;

/// Opens the database, or creates it in a file that only its owner can read.
pub(crate) fn open_database(path: &Path) -> Result<Database, DatabaseError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    discard_unfinished_creation(&file, path)?;
    let backend = BoundedFile(FileBackend::new(file)?);
    Database::builder()
        .create_with_file_format_v3(true)
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(backend)
}

/// The largest part of the file that is read without a look at the length of the file.
const SMALL_READ: usize = 1 << 20;

/// A file of which nothing behind its end is read: the database allocates the size in a damaged page number, up to terabytes, and a
/// failed allocation ends the process.
#[derive(Debug)]
struct BoundedFile(FileBackend);

impl StorageBackend for BoundedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        if len > SMALL_READ && offset.saturating_add(len as u64) > self.0.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// Runs code of the database, which panics at some damage in place of returning an error; `None` if it panicked.
///
/// What the code has changed is not used after a panic, and the panic is logged by the process's hook.
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// The largest file that a creation can have left behind; a new database has little more than 1 MiB.
#[cfg(unix)]
const MAX_UNFINISHED_BYTES: u64 = 4 << 20;

/// Empties a file if its creation was interrupted: the database writes its magic number last, and refuses a file without.
///
/// The lock that the database takes is taken before, so that no other process is creating the file.
#[cfg(unix)]
fn discard_unfinished_creation(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};

    let length = file.metadata()?.len();
    if length == 0 || length > MAX_UNFINISHED_BYTES || !is_unfinished(file)? {
        return Ok(());
    }
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_unfinished(file)? {
        tracing::warn!(path = %path.display(), "the creation of the session store was interrupted; it begins again");
        file.set_len(0)?;
    }
    Ok(())
}

/// Reports whether a file has no magic number, and nothing was ever stored in it: both commit slots have no tables.
///
/// The layout is that of the file formats 2 and 3 of `redb`.
#[cfg(unix)]
fn is_unfinished(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;

    const MAGIC_BYTES: usize = 9;
    const SLOTS: [usize; 2] = [64, 192];
    let mut header = [0; 320];
    match file.read_exact_at(&mut header, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    }
    let are_zero = |from: usize, count: usize| header.iter().skip(from).take(count).all(|byte| *byte == 0);
    // The second and third bytes of a slot report whether it has tables of users and of the database.
    Ok(are_zero(0, MAGIC_BYTES) && SLOTS.iter().all(|slot| are_zero(slot + 1, 2)))
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use redb::backends::InMemoryBackend;

    use super::*;

    /// A disk that records its content whenever it is to be written to the medium.
    #[derive(Debug, Default)]
    struct RecordingDisk {
        content: InMemoryBackend,
        states: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl RecordingDisk {
        fn record(&self) -> io::Result<()> {
            let length = usize::try_from(self.content.len()?).map_err(io::Error::other)?;
            self.states.lock().push(self.content.read(0, length)?);
            Ok(())
        }
    }

    impl StorageBackend for RecordingDisk {
        fn len(&self) -> io::Result<u64> {
            self.content.len()
        }

        fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
            self.content.read(offset, len)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.content.set_len(len)?;
            self.record()
        }

        fn sync_data(&self, eventual: bool) -> io::Result<()> {
            self.content.sync_data(eventual)?;
            self.record()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.content.write(offset, data)?;
            self.record()
        }
    }

    /// Creates a database, and returns what is on the disk at each step.
    fn states_of_a_creation() -> Result<Vec<Vec<u8>>, DatabaseError> {
        let disk = RecordingDisk::default();
        let states = disk.states.clone();
        drop(Database::builder().create_with_file_format_v3(true).create_with_backend(disk)?);
        Ok(std::mem::take(&mut *states.lock()))
    }

    #[test]
    fn creation_that_was_interrupted_at_any_step_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.redb");
        let states = states_of_a_creation().unwrap();
        let without_magic = states.iter().filter(|state| !state.starts_with(b"redb")).count();
        assert!(without_magic > 1, "{without_magic} of {} states", states.len());
        for (step, state) in states.iter().enumerate() {
            std::fs::write(&path, state).unwrap();
            let opened = catch_panic(|| open_database(&path).map(drop));
            assert!(matches!(opened, Some(Ok(()))), "step {step}: {opened:?}");
        }
    }

    #[test]
    fn read_behind_the_end_of_the_file_fails_without_its_memory() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let bounded = BoundedFile(FileBackend::new(file).unwrap());
        assert_eq!(bounded.read(0, 1 << 20).unwrap().len(), 1 << 20);
        for (offset, length) in [(0, 1 << 40), (1, 1 << 20), (u64::MAX, 2 << 20)] {
            let read = bounded.read(offset, length).map(|content| content.len());
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{offset} {length}");
        }
    }

    #[test]
    fn file_that_is_being_created_by_another_process_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.redb");
        let state =
            states_of_a_creation().unwrap().into_iter().find(|state| !state.starts_with(b"redb")).unwrap();
        std::fs::write(&path, &state).unwrap();
        let other = File::open(&path).unwrap();
        rustix::fs::flock(&other, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(matches!(open_database(&path), Err(DatabaseError::DatabaseAlreadyOpen)));
        assert_eq!(std::fs::read(&path).unwrap(), state);
    }

    #[test]
    fn store_without_its_magic_number_is_not_taken_for_an_unfinished_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.redb");
        let database = open_database(&path).unwrap();
        let writing = database.begin_write().unwrap();
        let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("any");
        writing.open_table(table).unwrap().insert(1, 1).unwrap();
        writing.commit().unwrap();
        drop(database);
        let mut content = std::fs::read(&path).unwrap();
        content[..9].fill(0);
        std::fs::write(&path, &content).unwrap();
        assert!(open_database(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}
