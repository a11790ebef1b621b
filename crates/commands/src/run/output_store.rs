//! The whole of outputs that were too long for a result, kept for a while for whoever caused them.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use trunkline_server::protocol::model::{self, ReadResourceResult, ResourceContents};
use trunkline_server::session::Principal;
use trunkline_server::{BoxFuture, Context, ResourceProvider, ToolError};

/// The most bytes of one output.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// The most bytes of all of them, those of commands that still run too.
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// How many are kept.
const MAX_STORED_OUTPUTS: usize = 64;

/// For how long they are kept.
const RETENTION: Duration = Duration::from_secs(15 * 60);

const URI_PREFIX: &str = "command-output:";

/// Outputs by their unguessable ids. Each is in a file without a name, which is gone when we are, however we end.
#[derive(Debug)]
pub(crate) struct OutputStore {
    outputs: Mutex<VecDeque<StoredOutput>>,
    bytes: AtomicU64,
    max_output_bytes: u64,
    max_total_bytes: u64,
}

impl Default for OutputStore {
    fn default() -> Self {
        Self {
            outputs: Mutex::default(),
            bytes: AtomicU64::new(0),
            max_output_bytes: MAX_OUTPUT_BYTES,
            max_total_bytes: MAX_TOTAL_BYTES,
        }
    }
}

#[derive(Debug)]
struct StoredOutput {
    id: String,
    owner: Principal,
    stored_at: Instant,
    output: Arc<Mutex<SpillFile>>,
}

impl OutputStore {
    /// Keeps an output, and returns the resource that it is.
    fn insert(&self, output: SpillFile, owner: Principal, name: String) -> Option<model::Resource> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = random.iter().fold(String::new(), |mut id, byte| {
            // Writing to a text cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
        let mut link = model::Resource::new(format!("{URI_PREFIX}{id}"), name);
        let part = if output.is_full { "the first part of it that could be kept" } else { "all of it" };
        link.description = Some(format!("{part}, for {} minutes", RETENTION.as_secs() / 60));
        link.mime_type = Some("text/plain".to_owned());
        link.size = Some(output.length);
        let mut kept = self.lock();
        if kept.len() >= MAX_STORED_OUTPUTS {
            kept.pop_front();
        }
        let output = Arc::new(Mutex::new(output));
        kept.push_back(StoredOutput { id, owner, stored_at: Instant::now(), output });
        Some(link)
    }

    /// Finds an output for who caused it; for anybody else there is none.
    fn find(&self, uri: &str, reader: &Principal) -> Option<Arc<Mutex<SpillFile>>> {
        let id = uri.strip_prefix(URI_PREFIX)?;
        let kept = self.lock();
        let found = kept.iter().find(|kept| kept.id == id && kept.owner == *reader)?;
        Some(found.output.clone())
    }

    /// Takes room for more bytes, if need be from the oldest that are kept.
    fn reserve(&self, bytes: u64) -> bool {
        loop {
            let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
            if before + bytes <= self.max_total_bytes {
                return true;
            }
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            if self.lock().pop_front().is_none() {
                return false;
            }
        }
    }

    /// Returns what is kept, without what is too old.
    fn lock(&self) -> MutexGuard<'_, VecDeque<StoredOutput>> {
        let mut kept = self.outputs.lock();
        while kept.front().is_some_and(|oldest| oldest.stored_at.elapsed() > RETENTION) {
            kept.pop_front();
        }
        kept
    }
}

/// An output that is longer than its result may be, while it is written and afterwards.
#[derive(Debug)]
pub(crate) struct SpillFile {
    store: Arc<OutputStore>,
    file: File,
    /// How many bytes the file has, from its beginning to its end.
    length: u64,
    reserved: u64,
    is_full: bool,
}

impl SpillFile {
    /// Begins the file of an output, behind the bytes that are kept for the result.
    fn create(shelf: &Arc<OutputStore>, kept: usize) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        let kept = kept as u64;
        file.seek(SeekFrom::Start(kept))?;
        let mut overflow = Self { store: shelf.clone(), file, length: kept, reserved: 0, is_full: false };
        overflow.is_full = kept > shelf.max_output_bytes || !overflow.reserve(kept);
        Ok(overflow)
    }

    fn reserve(&mut self, bytes: u64) -> bool {
        let taken = self.store.reserve(bytes);
        self.reserved += if taken { bytes } else { 0 };
        taken
    }

    /// Adds what comes next, up to the limit. The file is in the system's memory, so that this hardly ever waits.
    fn push(&mut self, bytes: &[u8]) {
        if self.is_full {
            return;
        }
        let room =
            usize::try_from(self.store.max_output_bytes.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let taken = bytes.get(..room).unwrap_or(bytes);
        let fits = self.reserve(taken.len() as u64) && self.file.write_all(taken).is_ok();
        self.length += if fits { taken.len() as u64 } else { 0 };
        self.is_full = !fits || taken.len() < bytes.len();
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(self.length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.store.bytes.fetch_sub(self.reserved, Ordering::Relaxed);
    }
}

/// Where one output of a command goes beyond what its result may have.
#[derive(Debug, Default)]
pub(crate) struct OutputSpill {
    store: Option<Arc<OutputStore>>,
    file: Option<SpillFile>,
}

impl OutputSpill {
    pub(crate) fn new(shelf: Option<Arc<OutputStore>>) -> Self {
        Self { store: shelf, file: None }
    }

    /// Takes bytes that come after those that are kept for the result.
    pub(crate) fn push(&mut self, kept: usize, bytes: &[u8]) {
        if self.file.is_none() {
            let Some(shelf) = self.store.take() else { return };
            match SpillFile::create(&shelf, kept) {
                Ok(overflow) => self.file = Some(overflow),
                Err(error) => tracing::warn!(%error, "cannot create a file for a long output"),
            }
        }
        if let Some(overflow) = &mut self.file {
            overflow.push(bytes);
        }
    }

    /// Puts the whole output on the shelf, now that its beginning is known, and returns the resource that it is.
    pub(crate) fn store(self, beginning: &[u8], owner: Principal, name: String) -> Option<model::Resource> {
        let mut overflow = self.file.filter(|overflow| overflow.length > beginning.len() as u64)?;
        overflow.file.seek(SeekFrom::Start(0)).ok()?;
        overflow.file.write_all(beginning).ok()?;
        overflow.store.clone().insert(overflow, owner, name)
    }
}

/// The outputs as resources, which are not listed: only who was given a URI knows of one.
#[derive(Debug)]
pub(crate) struct OutputStoreProvider(pub(crate) Arc<OutputStore>);

impl ResourceProvider for OutputStoreProvider {
    fn source(&self) -> String {
        "outputs of commands".to_owned()
    }

    fn resources(&self) -> Vec<model::Resource> {
        Vec::new()
    }

    fn templates(&self) -> Vec<model::ResourceTemplate> {
        let mut template = model::ResourceTemplate::new(format!("{URI_PREFIX}{{id}}"), "command-output");
        template.description =
            Some("The whole output of a command that was too long for its result, for a while.".to_owned());
        template.mime_type = Some("text/plain".to_owned());
        vec![template]
    }

    fn read(
        &self,
        uri: &str,
        context: Context,
    ) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>> {
        let (found, uri) = (self.0.find(uri, &context.principal()), uri.to_owned());
        Box::pin(async move {
            let Some(output) = found else { return Ok(None) };
            let read = move || output.lock().read();
            let bytes = tokio::task::spawn_blocking(read).await??;
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let mut contents = ResourceContents::text(uri, text);
            contents.mime_type = Some("text/plain".to_owned());
            Ok(Some(ReadResourceResult::new(vec![contents])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(
        shelf: &Arc<OutputStore>,
        beginning: &[u8],
        rest: &[&[u8]],
        owner: &Principal,
    ) -> Option<model::Resource> {
        let mut spill = OutputSpill::new(Some(shelf.clone()));
        rest.iter().for_each(|bytes| spill.push(beginning.len(), bytes));
        spill.store(beginning, owner.clone(), "output".to_owned())
    }

    fn read(shelf: &OutputStore, uri: &str, reader: &Principal) -> Option<Vec<u8>> {
        let found = shelf.find(uri, reader)?;
        let read = found.lock().read();
        Some(read.unwrap())
    }

    #[test]
    fn an_output_is_read_whole_and_only_by_who_caused_it() {
        let shelf: Arc<OutputStore> = Arc::default();
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        assert_eq!(put(&shelf, b"short", &[], &ann), None);
        let link = put(&shelf, b"one ", &[b"two ", b"three"], &ann).unwrap();
        assert_eq!(link.size, Some(13));
        for _ in 0..2 {
            assert_eq!(read(&shelf, &link.uri, &ann).unwrap(), b"one two three");
        }
        for (uri, reader) in
            [(link.uri.as_str(), &bob), (&link.uri, &Principal::Anonymous), ("command-output:0", &ann)]
        {
            assert_eq!(read(&shelf, uri, reader), None, "{uri} {reader}");
        }
        let other = put(&shelf, b"", &[b"x"], &ann).unwrap();
        assert_ne!(other.uri, link.uri);
    }

    #[test]
    fn the_oldest_goes_where_there_are_too_many_and_its_room_with_it() {
        let shelf: Arc<OutputStore> = Arc::default();
        let links: Vec<_> = (0..=MAX_STORED_OUTPUTS)
            .map(|_| put(&shelf, b"12", &[b"345"], &Principal::Process).unwrap())
            .collect();
        let is_there = |link: &model::Resource| read(&shelf, &link.uri, &Principal::Process).is_some();
        assert_eq!(links.iter().filter(|link| is_there(link)).count(), MAX_STORED_OUTPUTS);
        assert!(!is_there(&links[0]) && is_there(&links[1]));
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 5 * MAX_STORED_OUTPUTS as u64);
        drop(put(&shelf, b"1", &[], &Principal::Process));
        drop(SpillFile::create(&shelf, 7).unwrap());
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 5 * MAX_STORED_OUTPUTS as u64);
    }

    #[test]
    fn one_output_and_all_together_take_no_more_than_their_room() {
        let shelf =
            Arc::new(OutputStore { max_output_bytes: 1000, max_total_bytes: 4000, ..OutputStore::default() });
        let all = [b'x'; 1000];
        let link = put(&shelf, b"12", &[&all], &Principal::Process).unwrap();
        assert_eq!(link.size, Some(1000));
        assert!(link.description.unwrap().contains("first part"));
        // Those that still run are not pushed out by others, and what has no room is not kept.
        let mut running = [(); 4].map(|()| SpillFile::create(&shelf, 0).unwrap());
        running.iter_mut().for_each(|overflow| overflow.push(&all));
        assert!(running.iter().all(|overflow| overflow.length == 1000));
        assert_eq!(read(&shelf, &link.uri, &Principal::Process), None, "what was kept has made room");
        assert_eq!(put(&shelf, b"", &[b"x"], &Principal::Process), None);
        drop(running);
        assert!(put(&shelf, b"", &[b"x"], &Principal::Process).is_some());
    }

    #[test]
    fn the_bounds_are_in_the_document_of_limits() {
        let document = include_str!("../../../../docs/limits.md");
        for row in [
            format!("| bytes of one output that is kept | {} MiB |", MAX_OUTPUT_BYTES >> 20),
            format!("| bytes of all that are kept | {} MiB |", MAX_TOTAL_BYTES >> 20),
            format!("| outputs that are kept | {MAX_STORED_OUTPUTS} |"),
            format!("| how long one is kept | {} min |", RETENTION.as_secs() / 60),
        ] {
            assert!(document.contains(&row), "docs/limits.md lacks {row}");
        }
    }
}
