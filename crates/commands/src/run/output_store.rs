//! Stores outputs that are too long for a result, for a while and for the caller that caused them.
//!
//! # Invariants
//!
//! - A stored output is readable only by the caller that produced it:
//!   `stored_output_is_complete_and_readable_only_by_its_principal`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use trunkline_server::protocol::model::{self, ReadResourceResult, ResourceContents};
use trunkline_server::session::{Principal, SessionId};
use trunkline_server::{BoxFuture, Context, ResourceProvider, ToolError};

/// The most bytes of one output.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// The most bytes of all outputs, including those of running commands.
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// The most stored outputs.
const MAX_STORED_OUTPUTS: usize = 64;

/// How long outputs are stored.
const RETENTION: Duration = Duration::from_secs(15 * 60);

const URI_PREFIX: &str = "command-output:";

/// Outputs by unguessable ids. Each is in an unnamed temporary file, which the system deletes with this process,
/// however it ends.
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
    owner: OutputOwner,
    stored_at: Instant,
    output: Arc<Mutex<SpillFile>>,
}

/// The caller that an output belongs to: its principal, and for anonymous callers also the client, since all of them
/// are one principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputOwner {
    principal: Principal,
    client: Option<SessionId>,
}

impl OutputOwner {
    /// Returns the owner of the outputs of a call.
    pub(super) fn of_call(context: &Context) -> Self {
        context.with_caller(|caller| {
            let is_anonymous = caller.principal == Principal::Anonymous;
            Self { principal: caller.principal.clone(), client: caller.client_id().filter(|_| is_anonymous) }
        })
    }
}

impl OutputStore {
    /// Stores an output, and returns its resource.
    fn insert(&self, output: SpillFile, owner: OutputOwner, name: String) -> Option<model::Resource> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = random.iter().fold(String::new(), |mut id, byte| {
            // Writing to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
        let mut link = model::Resource::new(format!("{URI_PREFIX}{id}"), name);
        let part = if output.is_full { "the first part of it that could be kept" } else { "all of it" };
        link.description = Some(format!("{part}, for {} minutes", RETENTION.as_secs() / 60));
        link.mime_type = Some("text/plain".to_owned());
        link.size = Some(output.length);
        let mut outputs = self.lock();
        if outputs.len() >= MAX_STORED_OUTPUTS {
            outputs.pop_front();
        }
        let output = Arc::new(Mutex::new(output));
        outputs.push_back(StoredOutput { id, owner, stored_at: Instant::now(), output });
        Some(link)
    }

    /// Returns an output of this caller; `None` for outputs of others.
    fn find(&self, uri: &str, reader: &OutputOwner) -> Option<Arc<Mutex<SpillFile>>> {
        let id = uri.strip_prefix(URI_PREFIX)?;
        let outputs = self.lock();
        let found = outputs.iter().find(|stored| stored.id == id && stored.owner == *reader)?;
        Some(found.output.clone())
    }

    /// Reserves bytes of the budget, and evicts the oldest outputs if needed.
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

    /// Locks the outputs, without expired ones.
    fn lock(&self) -> MutexGuard<'_, VecDeque<StoredOutput>> {
        let mut outputs = self.outputs.lock();
        while outputs.front().is_some_and(|oldest| oldest.stored_at.elapsed() > RETENTION) {
            outputs.pop_front();
        }
        outputs
    }
}

/// An output that exceeds its result, while it is written and afterwards.
#[derive(Debug)]
pub(crate) struct SpillFile {
    store: Arc<OutputStore>,
    file: File,
    /// The length of the file, including the captured beginning.
    length: u64,
    reserved: u64,
    is_full: bool,
}

impl SpillFile {
    /// Creates the file of an output; the first `captured` bytes are written later, from the result.
    fn create(store: &Arc<OutputStore>, captured: usize) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        let captured = captured as u64;
        file.seek(SeekFrom::Start(captured))?;
        let mut spill_file =
            Self { store: store.clone(), file, length: captured, reserved: 0, is_full: false };
        spill_file.is_full = captured > store.max_output_bytes || !spill_file.reserve(captured);
        Ok(spill_file)
    }

    fn reserve(&mut self, bytes: u64) -> bool {
        let accepted = self.store.reserve(bytes);
        self.reserved += if accepted { bytes } else { 0 };
        accepted
    }

    /// Appends bytes, up to the limit. The file is in the page cache, so that this hardly ever blocks.
    fn push(&mut self, bytes: &[u8]) {
        if self.is_full {
            return;
        }
        let remaining =
            usize::try_from(self.store.max_output_bytes.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let accepted = bytes.get(..remaining).unwrap_or(bytes);
        let fits = self.reserve(accepted.len() as u64) && self.file.write_all(accepted).is_ok();
        self.length += if fits { accepted.len() as u64 } else { 0 };
        self.is_full = !fits || accepted.len() < bytes.len();
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

/// The spill of one output, for the bytes beyond the result.
#[derive(Debug, Default)]
pub(crate) struct OutputSpill {
    store: Option<Arc<OutputStore>>,
    file: Option<SpillFile>,
}

impl OutputSpill {
    pub(crate) fn new(store: Option<Arc<OutputStore>>) -> Self {
        Self { store, file: None }
    }

    /// Appends bytes that follow those captured for the result.
    pub(crate) fn push(&mut self, captured: usize, bytes: &[u8]) {
        if self.file.is_none() {
            let Some(store) = self.store.take() else { return };
            match SpillFile::create(&store, captured) {
                Ok(spill_file) => self.file = Some(spill_file),
                Err(error) => tracing::warn!(%error, "cannot create a file for a long output"),
            }
        }
        if let Some(spill_file) = &mut self.file {
            spill_file.push(bytes);
        }
    }

    /// Stores the whole output, once its beginning is known, and returns its resource.
    pub(crate) fn store(self, beginning: &[u8], owner: OutputOwner, name: String) -> Option<model::Resource> {
        let mut spill_file = self.file.filter(|spill_file| spill_file.length > beginning.len() as u64)?;
        spill_file.file.seek(SeekFrom::Start(0)).ok()?;
        spill_file.file.write_all(beginning).ok()?;
        spill_file.store.clone().insert(spill_file, owner, name)
    }
}

/// Serves the outputs as resources. They are not listed: a reader has to know the URI.
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
        let (found, uri) = (self.0.find(uri, &OutputOwner::of_call(&context)), uri.to_owned());
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
        store: &Arc<OutputStore>,
        beginning: &[u8],
        rest: &[&[u8]],
        owner: &Principal,
    ) -> Option<model::Resource> {
        let mut spill = OutputSpill::new(Some(store.clone()));
        rest.iter().for_each(|bytes| spill.push(beginning.len(), bytes));
        spill.store(beginning, owned_by(owner), "output".to_owned())
    }

    fn owned_by(principal: &Principal) -> OutputOwner {
        OutputOwner { principal: principal.clone(), client: None }
    }

    fn read(store: &OutputStore, uri: &str, reader: &Principal) -> Option<Vec<u8>> {
        let found = store.find(uri, &owned_by(reader))?;
        let read = found.lock().read();
        Some(read.unwrap())
    }

    #[test]
    fn stored_output_is_complete_and_readable_only_by_its_principal() {
        let store: Arc<OutputStore> = Arc::default();
        let (ann, bob) = (Principal::Named("ann".into()), Principal::Named("bob".into()));
        assert_eq!(put(&store, b"short", &[], &ann), None);
        let link = put(&store, b"one ", &[b"two ", b"three"], &ann).unwrap();
        assert_eq!(link.size, Some(13));
        for _ in 0..2 {
            assert_eq!(read(&store, &link.uri, &ann).unwrap(), b"one two three");
        }
        for (uri, reader) in
            [(link.uri.as_str(), &bob), (&link.uri, &Principal::Anonymous), ("command-output:0", &ann)]
        {
            assert_eq!(read(&store, uri, reader), None, "{uri} {reader}");
        }
        let other = put(&store, b"", &[b"x"], &ann).unwrap();
        assert_ne!(other.uri, link.uri);
    }

    #[test]
    fn anonymous_clients_read_only_outputs_of_their_own_session() {
        let store: Arc<OutputStore> = Arc::default();
        let client = || OutputOwner { principal: Principal::Anonymous, client: Some(SessionId::random()) };
        let (one, other) = (client(), client());
        let mut spill = OutputSpill::new(Some(store.clone()));
        spill.push(0, b"secret");
        let link = spill.store(b"", one.clone(), "output".to_owned()).unwrap();
        assert!(store.find(&link.uri, &one).is_some());
        for reader in [&other, &owned_by(&Principal::Anonymous)] {
            assert!(store.find(&link.uri, reader).is_none(), "{reader:?}");
        }
    }

    #[test]
    fn oldest_output_is_evicted_beyond_the_count_and_frees_its_bytes() {
        let store: Arc<OutputStore> = Arc::default();
        let links: Vec<_> = (0..=MAX_STORED_OUTPUTS)
            .map(|_| put(&store, b"12", &[b"345"], &Principal::Process).unwrap())
            .collect();
        let is_there = |link: &model::Resource| read(&store, &link.uri, &Principal::Process).is_some();
        assert_eq!(links.iter().filter(|link| is_there(link)).count(), MAX_STORED_OUTPUTS);
        assert!(!is_there(&links[0]) && is_there(&links[1]));
        assert_eq!(store.bytes.load(Ordering::Relaxed), 5 * MAX_STORED_OUTPUTS as u64);
        drop(put(&store, b"1", &[], &Principal::Process));
        drop(SpillFile::create(&store, 7).unwrap());
        assert_eq!(store.bytes.load(Ordering::Relaxed), 5 * MAX_STORED_OUTPUTS as u64);
    }

    #[test]
    fn stored_outputs_stay_within_single_and_total_byte_limits() {
        let store =
            Arc::new(OutputStore { max_output_bytes: 1000, max_total_bytes: 4000, ..OutputStore::default() });
        let all = [b'x'; 1000];
        let link = put(&store, b"12", &[&all], &Principal::Process).unwrap();
        assert_eq!(link.size, Some(1000));
        assert!(link.description.unwrap().contains("first part"));
        // Outputs of running commands are not evicted, and an output beyond the budget is not stored.
        let mut running = [(); 4].map(|()| SpillFile::create(&store, 0).unwrap());
        running.iter_mut().for_each(|spill_file| spill_file.push(&all));
        assert!(running.iter().all(|spill_file| spill_file.length == 1000));
        assert_eq!(read(&store, &link.uri, &Principal::Process), None, "what was kept has made room");
        assert_eq!(put(&store, b"", &[b"x"], &Principal::Process), None);
        drop(running);
        assert!(put(&store, b"", &[b"x"], &Principal::Process).is_some());
    }

    #[test]
    fn output_store_limits_are_documented() {
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
