use bytes::{Buf, Bytes};

use super::connection_io::ConnectionIo;
use super::half_closed::LivenessProbe;
use super::response_head::ResponseLength;
use super::server_stream::ServerStream;

/// How far the body of a response is written.
#[derive(Debug)]
pub(super) struct ResponseBodyWriter {
    length: ResponseLength,
    /// Whether nothing more of the body is wanted.
    pub(super) is_done: bool,
    /// Whether the body ended before its length.
    is_short: bool,
    /// Whether it is the event stream of an answer.
    is_event_stream: bool,
    /// Whether what is written ends between two events.
    is_between_events: bool,
}

impl ResponseBodyWriter {
    /// Begins the body behind its head. The body of a response to `HEAD` is never written.
    pub(super) fn new(length: ResponseLength, is_head: bool, is_event_stream: bool) -> Self {
        let is_over = is_head || matches!(length, ResponseLength::NoBody | ResponseLength::Known(0));
        Self { length, is_done: is_over, is_short: false, is_event_stream, is_between_events: true }
    }

    /// Writes a piece; nothing is the end.
    pub(super) fn write<D: Buf>(&mut self, io: &mut ConnectionIo<impl ServerStream>, piece: Option<D>) {
        match (piece, &mut self.length) {
            (Some(mut piece), ResponseLength::Known(left)) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let bytes = piece.copy_to_bytes(piece.remaining().min(most));
                *left -= bytes.len() as u64;
                self.is_done = *left == 0;
                io.write_chunk(bytes, &[]);
            }
            (Some(mut piece), length) => {
                let bytes = piece.copy_to_bytes(piece.remaining());
                // One without bytes would be taken for the last.
                if !bytes.is_empty() {
                    self.is_between_events = bytes.ends_with(b"\n\n");
                    write_chunk(io, bytes, *length);
                }
            }
            (None, ResponseLength::Known(_)) => (self.is_done, self.is_short) = (true, true),
            (None, length) => {
                self.is_done = true;
                if *length == ResponseLength::Chunked {
                    io.write_text(format_args!("0\r\n\r\n"));
                }
            }
        }
    }

    /// Returns what can be written to a half-closed connection while the body has nothing.
    pub(super) fn liveness_probe(&self) -> LivenessProbe {
        match self.is_event_stream {
            true if self.is_between_events => LivenessProbe::EventComment(self.length),
            true => LivenessProbe::Postponed,
            false => LivenessProbe::Unavailable,
        }
    }

    /// Reports whether the peer can find the end of the response.
    pub(super) fn is_complete(&self) -> bool {
        self.is_done && !self.is_short
    }
}

fn write_chunk(io: &mut ConnectionIo<impl ServerStream>, bytes: Bytes, length: ResponseLength) {
    if length == ResponseLength::Chunked {
        io.write_text(format_args!("{:x}\r\n", bytes.len()));
        io.write_chunk(bytes, b"\r\n");
    } else {
        io.write_chunk(bytes, &[]);
    }
}
