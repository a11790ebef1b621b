//! The whole of outputs that were too long for a result, kept for a while for whoever caused them.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use trunkline_server::protocol::model::{self, ReadResult, ResourceContents};
use trunkline_server::session::Principal;
use trunkline_server::{BoxFuture, Context, ResourceProvider, ToolError};

/// The most bytes of one output.
const MOST_BYTES: u64 = 64 << 20;

/// The most bytes of all of them, those of commands that still run too.
const MOST_BYTES_TOGETHER: u64 = 256 << 20;

/// How many are kept.
const MOST_KEPT: usize = 64;

/// For how long they are kept.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);

const URI: &str = "command-output:";

/// Outputs by their unguessable ids. Each is in a file without a name, which is gone when we are, however we end.
#[derive(Debug)]
pub(crate) struct Shelf {
    kept: Mutex<VecDeque<Kept>>,
    bytes: AtomicU64,
    most_bytes: u64,
    most_bytes_together: u64,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            bytes: AtomicU64::new(0),
            most_bytes: MOST_BYTES,
            most_bytes_together: MOST_BYTES_TOGETHER,
        }
    }
}

#[derive(Debug)]
struct Kept {
    id: String,
    owner: Principal,
    since: Instant,
    output: Arc<Mutex<Overflow>>,
}

impl Shelf {
    /// Keeps an output, and returns the resource that it is.
    fn keep(&self, output: Overflow, owner: Principal, name: String) -> Option<model::Resource> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = random.iter().fold(String::new(), |mut id, byte| {
            // Writing to a text cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
        let mut link = model::Resource::new(format!("{URI}{id}"), name);
        let part = if output.is_full { "the first part of it that could be kept" } else { "all of it" };
        link.description = Some(format!("{part}, for {} minutes", KEPT_FOR.as_secs() / 60));
        link.mime_type = Some("text/plain".to_owned());
        link.size = Some(output.length);
        let mut kept = self.lock();
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        let output = Arc::new(Mutex::new(output));
        kept.push_back(Kept { id, owner, since: Instant::now(), output });
        Some(link)
    }

    /// Finds an output for who caused it; for anybody else there is none.
    fn find(&self, uri: &str, reader: &Principal) -> Option<Arc<Mutex<Overflow>>> {
        let id = uri.strip_prefix(URI)?;
        let kept = self.lock();
        let found = kept.iter().find(|kept| kept.id == id && kept.owner == *reader)?;
        Some(found.output.clone())
    }

    /// Takes room for more bytes, if need be from the oldest that are kept.
    fn take_room(&self, bytes: u64) -> bool {
        loop {
            let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
            if before + bytes <= self.most_bytes_together {
                return true;
            }
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            if self.lock().pop_front().is_none() {
                return false;
            }
        }
    }

    /// Returns what is kept, without what is too old.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        let mut kept = self.kept.lock();
        while kept.front().is_some_and(|oldest| oldest.since.elapsed() > KEPT_FOR) {
            kept.pop_front();
        }
        kept
    }
}

/// An output that is longer than its result may be, while it is written and afterwards.
#[derive(Debug)]
pub(crate) struct Overflow {
    shelf: Arc<Shelf>,
    file: File,
    /// How many bytes the file has, from its beginning to its end.
    length: u64,
    room: u64,
    is_full: bool,
}

impl Overflow {
    /// Begins the file of an output, behind the bytes that are kept for the result.
    fn begin(shelf: &Arc<Shelf>, kept: usize) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        let kept = kept as u64;
        file.seek(SeekFrom::Start(kept))?;
        let mut overflow = Self { shelf: shelf.clone(), file, length: kept, room: 0, is_full: false };
        overflow.is_full = kept > shelf.most_bytes || !overflow.take_room(kept);
        Ok(overflow)
    }

    fn take_room(&mut self, bytes: u64) -> bool {
        let taken = self.shelf.take_room(bytes);
        self.room += if taken { bytes } else { 0 };
        taken
    }

    /// Adds what comes next, up to the limit. The file is in the system's memory, so that this hardly ever waits.
    fn push(&mut self, bytes: &[u8]) {
        if self.is_full {
            return;
        }
        let room = usize::try_from(self.shelf.most_bytes.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let taken = bytes.get(..room).unwrap_or(bytes);
        let fits = self.take_room(taken.len() as u64) && self.file.write_all(taken).is_ok();
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

impl Drop for Overflow {
    fn drop(&mut self) {
        self.shelf.bytes.fetch_sub(self.room, Ordering::Relaxed);
    }
}

/// Where one output of a command goes beyond what its result may have.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    shelf: Option<Arc<Shelf>>,
    overflow: Option<Overflow>,
}

impl Spill {
    pub(crate) fn new(shelf: Option<Arc<Shelf>>) -> Self {
        Self { shelf, overflow: None }
    }

    /// Takes bytes that come after those that are kept for the result.
    pub(crate) fn push(&mut self, kept: usize, bytes: &[u8]) {
        if self.overflow.is_none() {
            let Some(shelf) = self.shelf.take() else { return };
            match Overflow::begin(&shelf, kept) {
                Ok(overflow) => self.overflow = Some(overflow),
                Err(error) => tracing::warn!(%error, "there is no file for a long output"),
            }
        }
        if let Some(overflow) = &mut self.overflow {
            overflow.push(bytes);
        }
    }

    /// Puts the whole output on the shelf, now that its beginning is known, and returns the resource that it is.
    pub(crate) fn keep(self, beginning: &[u8], owner: Principal, name: String) -> Option<model::Resource> {
        let mut overflow = self.overflow.filter(|overflow| overflow.length > beginning.len() as u64)?;
        overflow.file.seek(SeekFrom::Start(0)).ok()?;
        overflow.file.write_all(beginning).ok()?;
        overflow.shelf.clone().keep(overflow, owner, name)
    }
}

/// The outputs as resources, which are not listed: only who was given a URI knows of one.
#[derive(Debug)]
pub(crate) struct ShelfProvider(pub(crate) Arc<Shelf>);

impl ResourceProvider for ShelfProvider {
    fn source(&self) -> String {
        "outputs of commands".to_owned()
    }

    fn resources(&self) -> Vec<model::Resource> {
        Vec::new()
    }

    fn templates(&self) -> Vec<model::ResourceTemplate> {
        let mut template = model::ResourceTemplate::new(format!("{URI}{{id}}"), "command-output");
        template.description =
            Some("The whole output of a command that was too long for its result, for a while.".to_owned());
        template.mime_type = Some("text/plain".to_owned());
        vec![template]
    }

    fn read(&self, uri: &str, context: Context) -> BoxFuture<'static, Result<Option<ReadResult>, ToolError>> {
        let (found, uri) = (self.0.find(uri, &context.principal()), uri.to_owned());
        Box::pin(async move {
            let Some(output) = found else { return Ok(None) };
            let read = move || output.lock().read();
            let bytes = tokio::task::spawn_blocking(read).await??;
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let mut contents = ResourceContents::text(uri, text);
            contents.mime_type = Some("text/plain".to_owned());
            Ok(Some(ReadResult::new(vec![contents])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(
        shelf: &Arc<Shelf>,
        beginning: &[u8],
        rest: &[&[u8]],
        owner: &Principal,
    ) -> Option<model::Resource> {
        let mut spill = Spill::new(Some(shelf.clone()));
        rest.iter().for_each(|bytes| spill.push(beginning.len(), bytes));
        spill.keep(beginning, owner.clone(), "output".to_owned())
    }

    fn read(shelf: &Shelf, uri: &str, reader: &Principal) -> Option<Vec<u8>> {
        let found = shelf.find(uri, reader)?;
        let read = found.lock().read();
        Some(read.unwrap())
    }

    #[test]
    fn an_output_is_read_whole_and_only_by_who_caused_it() {
        let shelf: Arc<Shelf> = Arc::default();
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
        let shelf: Arc<Shelf> = Arc::default();
        let links: Vec<_> =
            (0..=MOST_KEPT).map(|_| put(&shelf, b"12", &[b"345"], &Principal::Process).unwrap()).collect();
        let is_there = |link: &model::Resource| read(&shelf, &link.uri, &Principal::Process).is_some();
        assert_eq!(links.iter().filter(|link| is_there(link)).count(), MOST_KEPT);
        assert!(!is_there(&links[0]) && is_there(&links[1]));
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 5 * MOST_KEPT as u64);
        drop(put(&shelf, b"1", &[], &Principal::Process));
        drop(Overflow::begin(&shelf, 7).unwrap());
        assert_eq!(shelf.bytes.load(Ordering::Relaxed), 5 * MOST_KEPT as u64);
    }

    #[test]
    fn one_output_and_all_together_take_no_more_than_their_room() {
        let shelf = Arc::new(Shelf { most_bytes: 1000, most_bytes_together: 4000, ..Shelf::default() });
        let all = [b'x'; 1000];
        let link = put(&shelf, b"12", &[&all], &Principal::Process).unwrap();
        assert_eq!(link.size, Some(1000));
        assert!(link.description.unwrap().contains("first part"));
        // Those that still run are not pushed out by others, and what has no room is not kept.
        let mut running = [(); 4].map(|()| Overflow::begin(&shelf, 0).unwrap());
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
            format!("| bytes of one output that is kept | {} MiB |", MOST_BYTES >> 20),
            format!("| bytes of all that are kept | {} MiB |", MOST_BYTES_TOGETHER >> 20),
            format!("| outputs that are kept | {MOST_KEPT} |"),
            format!("| how long one is kept | {} min |", KEPT_FOR.as_secs() / 60),
        ] {
            assert!(document.contains(&row), "docs/limits.md lacks {row}");
        }
    }
}
