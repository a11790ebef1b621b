use std::borrow::Cow;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, ReadBuf};

use super::observe::Cutter;
use super::system::Reader;

/// What a command wrote to one of its outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captured {
    /// The first bytes, as many as the limit allows.
    pub bytes: Vec<u8>,
    /// How many bytes came after them and are gone.
    pub dropped: u64,
}

impl Captured {
    /// Returns the bytes as text; those that are no UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// One of the two outputs of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line that a command wrote, as soon as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// Where it was written to.
    pub source: Source,
    /// The line without its end, and without what is beyond the limit for lines.
    pub text: Cow<'a, str>,
}

/// Who looks at lines while they come.
pub(super) type Observe<'a> = dyn FnMut(Line<'_>) + Send + 'a;

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// One output of a command while it is read.
#[derive(Debug)]
pub(super) struct Output {
    /// Our end of the pipe, until there is nothing more to read.
    pipe: Option<Reader>,
    source: Source,
    captured: Captured,
    limit: usize,
    cutter: Option<Cutter>,
}

impl Output {
    pub(super) fn new(pipe: Reader, source: Source, limit: usize, cutter: Option<Cutter>) -> Self {
        Self { pipe: Some(pipe), source, captured: Captured::default(), limit, cutter }
    }

    /// Reads until the output is at its end; what is beyond the limit is read too, and dropped.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>, observe: &mut Observe<'_>) -> Poll<()> {
        while let Some(pipe) = &mut self.pipe {
            let mut scratch = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut read = ReadBuf::uninit(&mut scratch);
            // A pipe that cannot be read is at its end as far as we are concerned.
            let result: io::Result<()> = ready!(Pin::new(pipe).poll_read(cx, &mut read));
            if result.is_err() || read.filled().is_empty() {
                self.pipe = None;
                self.finish(observe);
            } else {
                self.take(read.filled(), observe);
            }
        }
        Poll::Ready(())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.pipe.is_none()
    }

    pub(super) fn take_captured(&mut self) -> Captured {
        std::mem::take(&mut self.captured)
    }

    /// Gives up reading, for somebody else to go on.
    pub(super) fn take_pipe(&mut self) -> Option<Reader> {
        self.pipe.take()
    }

    fn take(&mut self, bytes: &[u8], observe: &mut Observe<'_>) {
        let room = self.limit - self.captured.bytes.len();
        let kept = bytes.get(..room).unwrap_or(bytes);
        reserve(&mut self.captured.bytes, kept.len(), self.limit);
        self.captured.bytes.extend_from_slice(kept);
        self.captured.dropped += (bytes.len() - kept.len()) as u64;
        let source = self.source;
        if let Some(cutter) = &mut self.cutter {
            cutter.push(bytes, |line| observe(Line { source, text: String::from_utf8_lossy(line) }));
        }
    }

    fn finish(&mut self, observe: &mut Observe<'_>) {
        let source = self.source;
        if let Some(mut cutter) = self.cutter.take() {
            cutter.finish(|line| observe(Line { source, text: String::from_utf8_lossy(line) }));
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
