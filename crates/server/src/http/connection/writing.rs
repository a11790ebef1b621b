use bytes::{Buf, Bytes};

use super::reply::Length;
use super::wire::Wire;

/// How far the body of a response is written.
#[derive(Debug)]
pub(super) struct Writing {
    length: Length,
    /// Whether nothing more of the body is wanted.
    pub(super) is_over: bool,
    /// Whether the body ended before its length.
    is_short: bool,
}

impl Writing {
    /// Begins the body behind its head. That of a response to `HEAD` is told of, and not written.
    pub(super) fn new(length: Length, is_head: bool) -> Self {
        let is_over = is_head || matches!(length, Length::Without | Length::Known(0));
        Self { length, is_over, is_short: false }
    }

    /// Writes a piece; nothing is the end.
    pub(super) fn write<D: Buf>(&mut self, wire: &mut Wire, piece: Option<D>) {
        match (piece, &mut self.length) {
            (Some(mut piece), Length::Known(left)) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let bytes = piece.copy_to_bytes(piece.remaining().min(most));
                *left -= bytes.len() as u64;
                self.is_over = *left == 0;
                wire.add(bytes, &[]);
            }
            (Some(mut piece), length) => {
                let bytes = piece.copy_to_bytes(piece.remaining());
                // One without bytes would be taken for the last.
                if !bytes.is_empty() {
                    write_piece(wire, bytes, *length);
                }
            }
            (None, Length::Known(_)) => (self.is_over, self.is_short) = (true, true),
            (None, length) => {
                self.is_over = true;
                if *length == Length::Chunked {
                    wire.say(format_args!("0\r\n\r\n"));
                }
            }
        }
    }

    /// Reports whether the peer can tell where the response ends.
    pub(super) fn is_whole(&self) -> bool {
        self.is_over && !self.is_short
    }
}

fn write_piece(wire: &mut Wire, bytes: Bytes, length: Length) {
    if length == Length::Chunked {
        wire.say(format_args!("{:x}\r\n", bytes.len()));
        wire.add(bytes, b"\r\n");
    } else {
        wire.add(bytes, &[]);
    }
}
