use std::borrow::Cow;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, ReadBuf};

use super::line_splitter::LineSplitter;
use super::system::PipeReader;

/// The captured output of a command on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedOutput {
    /// The first bytes, as many as the limit allows.
    pub bytes: Vec<u8>,
    /// The number of bytes after them, which were dropped.
    pub dropped: u64,
}

impl CapturedOutput {
    /// Returns the bytes as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// One of the two output streams of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line of a command's output, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLine<'a> {
    /// The stream.
    pub stream: OutputStream,
    /// The line without its newline, truncated to the line limit.
    pub text: Cow<'a, str>,
}

/// An observer of a running command.
pub trait CommandObserver: Send {
    /// Reports whether lines are wanted.
    fn wants_lines(&self) -> bool {
        false
    }

    /// Receives the process id after the start.
    fn started(&mut self, _id: u32) {}

    /// Receives a line, if lines are wanted.
    fn line(&mut self, _line: OutputLine<'_>) {}

    /// Receives the output beyond the capture limit, which is dropped otherwise.
    fn overflow(&mut self, _source: OutputStream, _bytes: &[u8]) {}
}

/// Observes nothing.
impl CommandObserver for () {}

/// The size of one read: the default capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// The reader of one output stream of a command.
#[derive(Debug)]
pub(super) struct OutputReader {
    /// Our end of the pipe, until its end of file.
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
        splitter: Option<LineSplitter>,
    ) -> Self {
        Self { pipe: Some(pipe), stream: source, captured: CapturedOutput::default(), limit, splitter }
    }

    /// Reads to the end of the output; bytes beyond the limit are read and dropped.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>, observer: &mut dyn CommandObserver) -> Poll<()> {
        while let Some(pipe) = &mut self.pipe {
            let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut read = ReadBuf::uninit(&mut scratch);
            // A read error counts as the end of the output.
            let result: io::Result<()> = ready!(Pin::new(pipe).poll_read(cx, &mut read));
            if result.is_err() || read.filled().is_empty() {
                self.pipe = None;
                self.finish(observer);
            } else {
                self.take(read.filled(), observer);
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

    /// Takes the pipe, so that another task can continue to read it.
    pub(super) fn take_pipe(&mut self) -> Option<PipeReader> {
        self.pipe.take()
    }

    fn take(&mut self, bytes: &[u8], observer: &mut dyn CommandObserver) {
        let room = self.limit - self.captured.bytes.len();
        let (kept, beyond) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        reserve(&mut self.captured.bytes, kept.len(), self.limit);
        self.captured.bytes.extend_from_slice(kept);
        self.captured.dropped += beyond.len() as u64;
        let source = self.stream;
        if !beyond.is_empty() {
            observer.overflow(source, beyond);
        }
        if let Some(splitter) = &mut self.splitter {
            splitter.push(bytes, |line| {
                observer.line(OutputLine { stream: source, text: String::from_utf8_lossy(line) });
            });
        }
    }

    fn finish(&mut self, observer: &mut dyn CommandObserver) {
        let source = self.stream;
        if let Some(mut splitter) = self.splitter.take() {
            splitter.finish(|line| {
                observer.line(OutputLine { stream: source, text: String::from_utf8_lossy(line) });
            });
        }
    }
}

/// Grows the capacity as `Vec` does, but never beyond the limit.
fn reserve(bytes: &mut Vec<u8>, more: usize, limit: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let capacity = needed.max(bytes.capacity().saturating_mul(2)).min(limit.max(needed));
        bytes.reserve_exact(capacity - bytes.len());
    }
}
