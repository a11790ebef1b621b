//! Reading server-sent events.

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};

use crate::envelope::{MemberSearch, OversizedMessage};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The event's name; `None` means the default, `message`.
    pub event: Option<String>,
    /// The id given in this block, which an empty string resets.
    pub id: Option<String>,
    /// The reconnection time given in this block, in milliseconds.
    pub retry_ms: Option<u64>,
    /// The data lines joined with `\n`; `None` if the block had no data line at all.
    ///
    /// A priming event has empty data, and a block with only a reconnection time has none.
    pub data: Option<Bytes>,
}

impl SseEvent {
    /// Reports whether the block had a data line, even an empty one.
    #[must_use]
    pub fn has_data(&self) -> bool {
        self.data.is_some()
    }
}

/// Reports an event that was larger than the decoder permits.
///
/// The event is gone; the decoder skips to its end and delivers the events after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("server-sent event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit that was passed, in bytes.
    pub limit: usize,
}

/// Reads server-sent events from a stream that arrives in pieces.
///
/// Lines may end with `\n`, `\r\n` or `\r`. Comments and unknown fields are ignored, and an event that the
/// stream's end cuts off is never delivered.
///
/// # Limits
/// The name, id and data of an event together with the line being read never exceed the limit.
#[derive(Debug)]
pub struct SseDecoder {
    max_event: usize,
    /// The unfinished line; of a comment only the first byte is kept, and of an event that is too large the name of the
    /// field.
    line: BytesMut,
    event: Option<String>,
    id: Option<String>,
    retry_ms: Option<u64>,
    data: Option<BytesMut>,
    /// Whether the last line ended with `\r`, so that a `\n` coming next belongs to that end.
    after_carriage_return: bool,
    /// How much of a byte order mark has been seen; `None` once the stream's first bytes are settled.
    mark_seen: Option<usize>,
    current: CurrentEvent,
    /// What the data of the last event was that was refused.
    oversized: OversizedMessage,
}

/// How the lines up to the next blank one are taken.
#[derive(Debug, Default)]
enum CurrentEvent {
    #[default]
    Buffered,
    /// The event is too large, and its data is searched for what it is.
    Searched(Box<MemberSearch>),
    /// The event was refused already.
    Discarded,
}

/// The beginning of a line with data.
const DATA_FIELD: &[u8] = b"data:";

impl SseDecoder {
    /// Returns the number of bytes that are buffered of an incomplete event.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, BytesMut::len)
    }

    /// Creates a decoder that refuses events of more than `max_event` bytes.
    #[must_use]
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            line: BytesMut::new(),
            event: None,
            id: None,
            retry_ms: None,
            data: None,
            after_carriage_return: false,
            mark_seen: Some(0),
            current: CurrentEvent::Buffered,
            oversized: OversizedMessage::Unknown,
        }
    }

    /// Takes what the last event was that was refused, as far as the outermost members of its data show it.
    pub fn take_oversized(&mut self) -> OversizedMessage {
        std::mem::take(&mut self.oversized)
    }

    /// Reads from `input` up to the end of the next event; `None` means all of `input` was used up.
    ///
    /// Call it again with the same input until it returns `None`. Blocks that carry neither data, id nor
    /// reconnection time are skipped.
    ///
    /// # Errors
    /// [`EventTooLarge`] once for each event over the limit, as soon as the excess is seen and it is known what the data
    /// is: at its end at the latest.
    pub fn next_event(&mut self, input: &mut impl Buf) -> Option<Result<SseEvent, EventTooLarge>> {
        self.skip_mark(input);
        while input.has_remaining() {
            let chunk = input.chunk();
            if std::mem::take(&mut self.after_carriage_return) && chunk.first() == Some(&b'\n') {
                input.advance(1);
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                let taken = chunk.len();
                let outcome = self.buffer_partial(chunk);
                input.advance(taken);
                if let Err(too_large) = outcome {
                    return Some(Err(too_large));
                }
                continue;
            };
            let (line, ending) = chunk.split_at(end);
            self.after_carriage_return = ending.first() == Some(&b'\r');
            let outcome = self.end_line(line);
            input.advance(end + 1);
            if let Some(outcome) = outcome.transpose() {
                return Some(outcome);
            }
        }
        None
    }

    /// Skips a byte order mark at the very start of the stream, even one that arrives in pieces.
    fn skip_mark(&mut self, input: &mut impl Buf) {
        while let Some(seen) = self.mark_seen
            && let Some(next) = input.chunk().first()
        {
            match BYTE_ORDER_MARK.get(seen) {
                Some(expected) if expected == next => {
                    input.advance(1);
                    self.mark_seen = Some(seen + 1);
                }
                Some(_) => {
                    self.line.extend_from_slice(BYTE_ORDER_MARK.get(..seen).unwrap_or_default());
                    self.mark_seen = None;
                }
                None => self.mark_seen = None,
            }
        }
    }

    /// Buffers a piece of an incomplete line.
    fn buffer_partial(&mut self, piece: &[u8]) -> Result<(), EventTooLarge> {
        let first = self.line.first().or_else(|| piece.first());
        if first == Some(&b':') {
            if self.line.is_empty() {
                self.line.extend_from_slice(piece.get(..1).unwrap_or_default());
            }
            return Ok(());
        }
        if !self.exceeds_limit(piece) {
            self.line.extend_from_slice(piece);
            return Ok(());
        }
        self.search(piece);
        self.refuse_if_settled()
    }

    /// Takes a line's last piece and acts on the whole line.
    fn end_line(&mut self, piece: &[u8]) -> Result<Option<SseEvent>, EventTooLarge> {
        if self.line.is_empty() && piece.is_empty() {
            return self.end_event();
        }
        let first = self.line.first().or_else(|| piece.first());
        if first == Some(&b':') {
            self.line.clear();
            return Ok(None);
        }
        if self.exceeds_limit(piece) {
            self.search(piece);
            // Lines of data are joined by line breaks.
            self.search(b"\n");
            self.line.clear();
            return self.refuse_if_settled().map(|()| None);
        }
        if self.line.is_empty() {
            self.apply(piece);
        } else {
            self.line.extend_from_slice(piece);
            let line = std::mem::take(&mut self.line);
            self.apply_buffered(line);
        }
        Ok(None)
    }

    /// Reports whether the current event is over the limit, at the latest with `piece`; then nothing of it is buffered any
    /// more.
    fn exceeds_limit(&mut self, piece: &[u8]) -> bool {
        if !matches!(self.current, CurrentEvent::Buffered) {
            return true;
        }
        let held = self.event.as_ref().map_or(0, String::len)
            + self.id.as_ref().map_or(0, String::len)
            + self.data.as_ref().map_or(0, BytesMut::len)
            + self.line.len();
        if held.saturating_add(piece.len()) <= self.max_event {
            return false;
        }
        let mut search = MemberSearch::default();
        search.push(self.data.as_deref().unwrap_or_default());
        self.current = CurrentEvent::Searched(Box::new(search));
        self.discard_event();
        let line = std::mem::take(&mut self.line);
        self.search(&line);
        true
    }

    /// Searches a piece of a line, of which no more is kept than the name of its field.
    fn search(&mut self, piece: &[u8]) {
        let missing = DATA_FIELD.len().saturating_sub(self.line.len()).min(piece.len());
        let (field, value) = piece.split_at(missing);
        self.line.extend_from_slice(field);
        if let CurrentEvent::Searched(search) = &mut self.current
            && self.line == DATA_FIELD
        {
            search.push(value);
        }
    }

    /// Refuses the event that is searched, if it is known what it is.
    fn refuse_if_settled(&mut self) -> Result<(), EventTooLarge> {
        match &self.current {
            CurrentEvent::Searched(search) if search.is_settled() => {
                self.oversized = search.outcome();
                self.current = CurrentEvent::Discarded;
                Err(EventTooLarge { limit: self.max_event })
            }
            _ => Ok(()),
        }
    }

    /// Acts on a line that was held, keeping its memory as the event's data where that saves a copy.
    fn apply_buffered(&mut self, mut line: BytesMut) {
        let (name, value) = split_field(&line);
        if name == b"data" && self.data.is_none() {
            line.advance(line.len() - value.len());
            self.data = Some(line);
        } else {
            self.apply(&line);
        }
    }

    fn apply(&mut self, line: &[u8]) {
        let (name, value) = split_field(line);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.extend_from_slice(b"\n");
                    data.extend_from_slice(value);
                }
                None => self.data = Some(BytesMut::from(value)),
            },
            b"event" => self.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => self.retry_ms = parse_digits(value).or(self.retry_ms),
            _ => {}
        }
    }

    fn end_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        match std::mem::take(&mut self.current) {
            CurrentEvent::Buffered => {}
            CurrentEvent::Discarded => return Ok(None),
            CurrentEvent::Searched(search) => {
                self.oversized = search.outcome();
                return Err(EventTooLarge { limit: self.max_event });
            }
        }
        let event = SseEvent {
            event: self.event.take().filter(|name| !name.is_empty()),
            id: self.id.take(),
            retry_ms: self.retry_ms.take(),
            data: self.data.take().map(BytesMut::freeze),
        };
        let says_something = event.has_data() || event.id.is_some() || event.retry_ms.is_some();
        Ok(says_something.then_some(event))
    }

    fn discard_event(&mut self) {
        self.event = None;
        self.id = None;
        self.retry_ms = None;
        self.data = None;
    }
}

/// Splits a line into its field name and value, without the one space that may follow the colon.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some((name, value)) = memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) else {
        return (line, &[]);
    };
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// Reads a number written in digits only; the standard requires anything else to be ignored.
fn parse_digits(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}
