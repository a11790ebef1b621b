//! Sans-IO framing of newline-delimited JSON.
//!
//! A [`LineFramer`] turns whatever pieces a pipe or socket delivers into whole lines. It never scans a byte
//! twice, never copies a line it hands out, and never holds much more than one line of the permitted length.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#sending-messages).

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use crate::envelope::{MemberSearch, OversizedMessage};

/// The longest line after which the framer keeps its memory for the next one, in bytes.
///
/// One large message must not retain a buffer of its size for the lifetime of the connection.
const MAX_RETAINED_LINE: usize = 256 * 1024;

/// Reports a line that was longer than the framer permits.
///
/// The line itself is dropped; the lines after it are delivered as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line is longer than {limit} bytes")]
pub struct LineTooLong {
    /// The limit that was passed, in bytes, not counting the line's end.
    pub limit: usize,
}

/// Splits a stream of bytes into lines.
///
/// The caller appends what it reads to [`buffer`](Self::buffer) and then takes lines with
/// [`next_line`](Self::next_line) until there is none. A line ends with `\n` or `\r\n`; blank lines are skipped.
///
/// # Limits
/// Taking every line after each read, the framer holds at most the limit plus one read.
#[derive(Debug)]
pub struct LineFramer {
    buffer: BytesMut,
    /// How many bytes at the front of the buffer are known to hold no line end.
    scanned: usize,
    max_line: usize,
    current: CurrentLine,
    /// What the last line was that was refused.
    oversized: OversizedMessage,
    /// Whether the memory behind the buffer was grown by a line longer than [`MAX_RETAINED_LINE`].
    outgrown: bool,
}

/// How the bytes up to the next line end are taken.
#[derive(Debug, Default)]
enum CurrentLine {
    #[default]
    Buffered,
    /// The line is too long, and is searched for what it is.
    Searched(MemberSearch),
    /// The line was refused already.
    Discarded,
}

impl LineFramer {
    /// Creates a framer that refuses lines of more than `max_line` bytes, not counting the line's end.
    #[must_use]
    pub fn new(max_line: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            max_line,
            current: CurrentLine::Buffered,
            oversized: OversizedMessage::Unknown,
            outgrown: false,
        }
    }

    /// Returns the read buffer, to which the caller appends and from which it removes nothing.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the number of buffered bytes; when no line is complete, they are a part of one.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Takes what the last line was that was refused, as far as its outermost members show it.
    pub fn take_oversized(&mut self) -> OversizedMessage {
        std::mem::take(&mut self.oversized)
    }

    /// Takes the next complete line, without its end, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`LineTooLong`] once for each line over the limit, as soon as the excess is seen and it is known what the line is:
    /// with its last byte at the latest.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        loop {
            let unscanned = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(offset) = memchr(b'\n', unscanned) else {
                return self.wait_for_more();
            };
            let mut line = self.buffer.split_to(self.scanned + offset);
            self.buffer.advance(1);
            self.scanned = 0;
            match std::mem::take(&mut self.current) {
                CurrentLine::Discarded => continue,
                CurrentLine::Searched(search) => return Some(Err(self.refuse(search, &line))),
                CurrentLine::Buffered => {}
            }
            self.outgrown |= line.len() > MAX_RETAINED_LINE;
            strip_carriage_return(&mut line);
            if line.len() > self.max_line {
                return Some(Err(self.refuse(MemberSearch::default(), &line)));
            }
            if !is_blank(&line) {
                return Some(Ok(line.freeze()));
            }
        }
    }

    /// Takes what is left once the peer has closed: remaining lines, then an unterminated last one.
    ///
    /// Call it until it returns `None`.
    ///
    /// # Errors
    /// [`LineTooLong`] as for [`next_line`](Self::next_line).
    pub fn finish(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        if let Some(line) = self.next_line() {
            return Some(line);
        }
        let mut rest = std::mem::take(&mut self.buffer);
        self.scanned = 0;
        match std::mem::take(&mut self.current) {
            CurrentLine::Discarded => return None,
            CurrentLine::Searched(search) => return Some(Err(self.refuse(search, &rest))),
            CurrentLine::Buffered => {}
        }
        strip_carriage_return(&mut rest);
        if rest.len() > self.max_line {
            return Some(Err(self.refuse(MemberSearch::default(), &rest)));
        }
        (!is_blank(&rest)).then(|| Ok(rest.freeze()))
    }

    /// Settles the buffer before the next read, refusing the unfinished line if it is already too long.
    fn wait_for_more(&mut self) -> Option<Result<Bytes, LineTooLong>> {
        let pending = self.buffer.len();
        self.outgrown |= pending > MAX_RETAINED_LINE;
        // One byte of grace: the last one may be a `\r` that belongs to the line's end.
        let excess = pending > self.max_line.saturating_add(1);
        if excess && matches!(self.current, CurrentLine::Buffered) {
            self.current = CurrentLine::Searched(MemberSearch::default());
        }
        let known = match &mut self.current {
            CurrentLine::Buffered => None,
            CurrentLine::Discarded => {
                self.buffer.clear();
                None
            }
            CurrentLine::Searched(search) => {
                search.push(&self.buffer);
                self.buffer.clear();
                search.is_settled().then(|| search.outcome())
            }
        };
        self.scanned = self.buffer.len();
        self.release_outgrown();
        self.oversized = known?;
        self.current = CurrentLine::Discarded;
        Some(Err(LineTooLong { limit: self.max_line }))
    }

    /// Releases the memory of a long line, once little of it is in use.
    fn release_outgrown(&mut self) {
        if self.outgrown && self.buffer.len() <= MAX_RETAINED_LINE {
            self.buffer = BytesMut::from(self.buffer.as_ref());
            self.outgrown = false;
        }
    }

    /// Refuses a line at its end.
    fn refuse(&mut self, mut search: MemberSearch, rest: &[u8]) -> LineTooLong {
        search.push(rest);
        self.oversized = search.outcome();
        LineTooLong { limit: self.max_line }
    }
}

/// Appends one JSON text as one line.
///
/// A raw line break in JSON can only be white space between tokens, so it is replaced by a space and the
/// reader sees the same value on a single line.
pub fn encode_line(out: &mut Vec<u8>, json: &[u8]) {
    out.reserve(json.len() + 1);
    if memchr2(b'\n', b'\r', json).is_none() {
        out.extend_from_slice(json);
    } else {
        out.extend(json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    }
    out.push(b'\n');
}

fn strip_carriage_return(line: &mut BytesMut) {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
