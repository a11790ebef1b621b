use std::borrow::Cow;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, ReadBuf};

use super::line_splitter::LineSplitter;
use super::system::PipeReader;

/// What a command wrote to one of its outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedOutput {
    /// The first bytes, as many as the limit allows.
    pub bytes: Vec<u8>,
    /// How many bytes came after them and are gone.
    pub dropped: u64,
}

impl CapturedOutput {
    /// Returns the bytes as text; those that are no UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// One of the two outputs of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line that a command wrote, as soon as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLine<'a> {
    /// Where it was written to.
    pub stream: OutputStream,
    /// The line without its end, and without what is beyond the limit for lines.
    pub text: Cow<'a, str>,
}

/// Who looks at a command while it runs.
pub trait CommandObserver: Send {
    /// Reports whether lines are wanted.
    fn wants_lines(&self) -> bool {
        false
    }

    /// Takes the id of the process as soon as there is one.
    fn started(&mut self, _id: u32) {}

    /// Takes a line, if lines are wanted.
    fn line(&mut self, _line: OutputLine<'_>) {}

    /// Takes what comes after the last byte of an output that is kept; it is gone unless it is kept here.
    fn overflow(&mut self, _source: OutputStream, _bytes: &[u8]) {}
}

/// Looks at nothing.
impl CommandObserver for () {}

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// One output of a command while it is read.
#[derive(Debug)]
pub(super) struct OutputReader {
    /// Our end of the pipe, until there is nothing more to read.
    pipe: Option<PipeReader>,
    stream: OutputStream,
    captured: CapturedOutput,
    limit: usize,
    splitter: Option<LineSplitter>,
}

impl OutputReader {
    pub(super) fn new(
        pipe: PipeReader,
        source: OutputStream,
        limit: usize,
        cutter: Option<LineSplitter>,
    ) -> Self {
        Self {
            pipe: Some(pipe),
            stream: source,
            captured: CapturedOutput::default(),
            limit,
            splitter: cutter,
        }
    }

    /// Reads until the output is at its end; what is beyond the limit is read too, and dropped.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>, watcher: &mut dyn CommandObserver) -> Poll<()> {
        while let Some(pipe) = &mut self.pipe {
            let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut read = ReadBuf::uninit(&mut scratch);
            // A pipe that cannot be read is at its end as far as we are concerned.
            let result: io::Result<()> = ready!(Pin::new(pipe).poll_read(cx, &mut read));
            if result.is_err() || read.filled().is_empty() {
                self.pipe = None;
                self.finish(watcher);
            } else {
                self.take(read.filled(), watcher);
            }
        }
        Poll::Ready(())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.pipe.is_none()
    }

    pub(super) fn take_captured(&mut self) -> CapturedOutput {
        std::mem::take(&mut self.captured)
    }

    /// Gives up reading, for somebody else to go on.
    pub(super) fn take_pipe(&mut self) -> Option<PipeReader> {
        self.pipe.take()
    }

    fn take(&mut self, bytes: &[u8], watcher: &mut dyn CommandObserver) {
        let room = self.limit - self.captured.bytes.len();
        let (kept, beyond) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        reserve(&mut self.captured.bytes, kept.len(), self.limit);
        self.captured.bytes.extend_from_slice(kept);
        self.captured.dropped += beyond.len() as u64;
        let source = self.stream;
        if !beyond.is_empty() {
            watcher.overflow(source, beyond);
        }
        if let Some(cutter) = &mut self.splitter {
            cutter.push(bytes, |line| {
                watcher.line(OutputLine { stream: source, text: String::from_utf8_lossy(line) });
            });
        }
    }

    fn finish(&mut self, watcher: &mut dyn CommandObserver) {
        let source = self.stream;
        if let Some(mut cutter) = self.splitter.take() {
            cutter.finish(|line| {
                watcher.line(OutputLine { stream: source, text: String::from_utf8_lossy(line) });
            });
        }
    }
}

/// Makes room as a vector would by itself, but never for more than the limit.
fn reserve(bytes: &mut Vec<u8>, more: usize, limit: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let capacity = needed.max(bytes.capacity().saturating_mul(2)).min(limit.max(needed));
        bytes.reserve_exact(capacity - bytes.len());
    }
}
