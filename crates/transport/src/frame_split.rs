//! Splits the long frames of a WebSocket before they are decoded.
//!
//! tungstenite reserves a whole frame in its read buffer, and retains that capacity for the lifetime of the
//! connection: an idle connection that once received a large message would cost as much memory as that message. Of a
//! frame that arrives as several fragments (RFC 6455 §5.4) it reserves one at a time, and collects the message in a
//! separate buffer.

/// The most payload of a fragment for the decoder. A multiple of four, so that each fragment begins with the first
/// byte of the mask as the whole frame does; and small enough for a length of two bytes.
pub(crate) const SPLIT_BYTES: usize = 32 * 1024;

const FINAL: u8 = 0x80;
const CONTROL: u8 = 0x08;
const MASKED: u8 = 0x80;

/// Rewrites the bytes of frames as they arrive, in pieces of any size.
#[derive(Debug)]
pub(crate) struct FrameSplitter {
    /// Longer frames are left unchanged, for the decoder to reject.
    limit: u64,
    /// The received part of the next frame's header.
    header: Vec<u8>,
    /// The remaining payload of the frame, and of the current fragment.
    payload_left: u64,
    fragment_left: u64,
    /// Of a split frame, whether it is the last of its message, and its mask.
    last: u8,
    mask: Option<[u8; 4]>,
}

impl FrameSplitter {
    /// Creates a splitter for messages of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit as u64,
            header: Vec::new(),
            payload_left: 0,
            fragment_left: 0,
            last: 0,
            mask: None,
        }
    }

    /// Takes bytes that were read and emits the bytes for the decoder. A header is emitted only when it is complete.
    pub(crate) fn feed(&mut self, mut input: &[u8], mut give: impl FnMut(&[u8])) {
        while !input.is_empty() {
            if self.fragment_left > 0 {
                let most = usize::try_from(self.fragment_left).unwrap_or(usize::MAX);
                let (payload, rest) = input.split_at_checked(most).unwrap_or((input, &[]));
                give(payload);
                input = rest;
                self.fragment_left -= payload.len() as u64;
                self.payload_left -= payload.len() as u64;
                if self.fragment_left == 0 && self.payload_left > 0 {
                    self.begin_fragment(0, &mut give);
                }
                continue;
            }
            let missing = header_length(&self.header) - self.header.len();
            let (taken, rest) = input.split_at_checked(missing).unwrap_or((input, &[]));
            self.header.extend_from_slice(taken);
            input = rest;
            if self.header.len() == header_length(&self.header) {
                self.begin_frame(&mut give);
                self.header.clear();
            }
        }
    }

    fn begin_frame(&mut self, give: &mut impl FnMut(&[u8])) {
        let first = self.header.first().copied().unwrap_or_default();
        self.payload_left = payload_length(&self.header);
        if first & CONTROL != 0 || self.payload_left <= SPLIT_BYTES as u64 || self.payload_left > self.limit {
            self.fragment_left = self.payload_left;
            return give(&self.header);
        }
        self.last = first & FINAL;
        self.mask = self.header.last_chunk().copied().filter(|_| is_masked(&self.header));
        self.begin_fragment(first & !FINAL, give);
    }

    /// Emits the header of the next fragment; the last one ends the message if the frame does.
    fn begin_fragment(&mut self, first: u8, give: &mut impl FnMut(&[u8])) {
        let length = u16::try_from(self.payload_left.min(SPLIT_BYTES as u64)).unwrap_or(u16::MAX);
        self.fragment_left = u64::from(length);
        let is_last = self.fragment_left == self.payload_left;
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        give(&[if is_last { first | self.last } else { first }]);
        match u8::try_from(length) {
            Ok(short @ 0..=125) => give(&[masked | short]),
            _ => {
                give(&[masked | 126]);
                give(&length.to_be_bytes());
            }
        }
        if let Some(mask) = self.mask {
            give(&mask);
        }
    }
}

/// Returns the length of a header, as far as its received part determines it.
fn header_length(header: &[u8]) -> usize {
    let Some(second) = header.get(1) else { return 2 };
    let of_length = match second & !MASKED {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + of_length + if is_masked(header) { 4 } else { 0 }
}

fn is_masked(header: &[u8]) -> bool {
    header.get(1).is_some_and(|second| second & MASKED != 0)
}

/// Reads the payload length from a complete header.
fn payload_length(header: &[u8]) -> u64 {
    let Some((second, rest)) = header.get(1..).and_then(<[u8]>::split_first) else { return 0 };
    match second & !MASKED {
        126 => rest.first_chunk().map_or(0, |length| u64::from(u16::from_be_bytes(*length))),
        127 => rest.first_chunk().map_or(0, |length| u64::from_be_bytes(*length)),
        short => u64::from(short),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

    use super::*;

    const LIMIT: usize = 8 * SPLIT_BYTES;

    /// Writes a frame; a mask of zeros leaves the payload as it is.
    fn write(opcode: OpCode, is_final: bool, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = FrameHeader { is_final, opcode, mask, ..FrameHeader::default() };
        header.format(payload.len() as u64, &mut bytes).unwrap();
        let mask = mask.unwrap_or_default();
        bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        bytes
    }

    /// Reads frames, each with whether it is the last of its message.
    fn read(mut bytes: &[u8]) -> Vec<(OpCode, bool, Vec<u8>)> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let mut cursor = std::io::Cursor::new(bytes);
            let (header, length) = FrameHeader::parse(&mut cursor).unwrap().expect("a whole header");
            let start = usize::try_from(cursor.position()).unwrap();
            let (payload, rest) = bytes[start..].split_at(usize::try_from(length).unwrap());
            let mask = header.mask.unwrap_or_default();
            let payload = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]).collect();
            frames.push((header.opcode, header.is_final, payload));
            bytes = rest;
        }
        frames
    }

    fn split(bytes: &[u8], piece: usize) -> Vec<u8> {
        let (mut splitter, mut emitted) = (FrameSplitter::new(LIMIT), Vec::new());
        for piece in bytes.chunks(piece) {
            splitter.feed(piece, |bytes| emitted.extend_from_slice(bytes));
        }
        emitted
    }

    /// Joins the data frames of each message.
    fn messages(bytes: &[u8]) -> Vec<(OpCode, Vec<u8>)> {
        let (mut whole, mut open) = (Vec::new(), None::<(OpCode, Vec<u8>)>);
        for (opcode, is_final, payload) in read(bytes) {
            match opcode {
                OpCode::Control(_) => whole.push((opcode, payload)),
                OpCode::Data(Data::Continue) => open.as_mut().expect("a message is open").1.extend(payload),
                OpCode::Data(_) => assert!(open.replace((opcode, payload)).is_none(), "one at a time"),
            }
            if is_final && !matches!(opcode, OpCode::Control(_)) {
                whole.extend(open.take());
            }
        }
        assert!(open.is_none(), "the last message ends");
        whole
    }

    proptest! {
        #[test]
        fn split_frames_decode_to_equal_messages_for_any_chunking(
            lengths in proptest::collection::vec((0..4 * SPLIT_BYTES, any::<bool>(), any::<bool>()), 1..6),
            mask in proptest::option::of(any::<[u8; 4]>()),
            piece in 1..3 * SPLIT_BYTES,
        ) {
            let mut bytes = Vec::new();
            let mut continues = false;
            let count = lengths.len();
            for (at, (length, is_final, pings)) in lengths.into_iter().enumerate() {
                let kind = if continues { Data::Continue } else { Data::Text };
                let payload: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
                let is_final = is_final || at + 1 == count;
                bytes.extend(write(OpCode::Data(kind), is_final, &payload, mask));
                continues = !is_final;
                if pings {
                    bytes.extend(write(OpCode::Control(Control::Ping), true, b"p", mask));
                }
            }
            let emitted = split(&bytes, piece);
            // A control frame may come between fragments; only its order among messages can differ.
            let order = |mut messages: Vec<(OpCode, Vec<u8>)>| {
                messages.sort_by_key(|(opcode, _)| matches!(opcode, OpCode::Control(_)));
                messages
            };
            prop_assert_eq!(order(messages(&emitted)), order(messages(&bytes)));
            let longest = read(&emitted).into_iter().map(|(_, _, payload)| payload.len()).max();
            prop_assert!(longest <= Some(SPLIT_BYTES));
        }
    }

    #[test]
    fn oversized_control_and_short_frames_are_not_split() {
        for (opcode, length) in [
            (OpCode::Data(Data::Text), 0),
            (OpCode::Data(Data::Text), 125),
            (OpCode::Data(Data::Text), SPLIT_BYTES),
            (OpCode::Data(Data::Text), LIMIT + 1),
            (OpCode::Control(Control::Ping), SPLIT_BYTES + 1),
        ] {
            let bytes = write(opcode, true, &vec![b'x'; length], Some([1, 2, 3, 4]));
            assert!(split(&bytes, 1000) == bytes, "{opcode:?} of {length}");
        }
        let bytes = write(OpCode::Data(Data::Text), true, &vec![b'x'; LIMIT], None);
        assert_eq!(read(&split(&bytes, 7)).len(), LIMIT / SPLIT_BYTES);
        assert!(split(&[0x81], 1).is_empty(), "a header that is not whole is not emitted");
    }
}
