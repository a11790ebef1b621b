//! The heads and bodies of HTTP/1.1.

use bytes::BytesMut;
use trunkline_http1::client::take_response_head;
use trunkline_http1::server::take_request_head;
use trunkline_http1::{BodyFraming, BodyRead, MAX_HEAD_BYTES, MAX_HEADERS};

/// Reads the head of a request, whole and in pieces, and compares the two.
///
/// The first byte is the size of the pieces.
pub fn request_head(data: &[u8]) {
    let [size, stream @ ..] = data else { return };
    let read = |piece: usize| {
        read_head(stream, piece, |buffer, scanned| {
            let head = take_request_head(buffer, scanned).map_err(|error| format!("{error:?}"))?;
            Ok(head.map(|head| {
                let parts = head.request.parts();
                assert!(parts.headers.len() <= MAX_HEADERS);
                // What ends a line or a word is never part of a name or a value.
                for (name, value) in &parts.headers {
                    assert!(name.as_str().bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'));
                    assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
                let flags = (head.keep_alive, head.expects_continue, head.upgrades);
                format!("{parts:?} {:?} {flags:?}", head.framing)
            }))
        })
    };
    let whole = read(stream.len().max(1));
    assert_eq!(read(usize::from(*size).max(1)), whole);
}

/// Reads the head of a response, whole and in pieces, and compares the two.
///
/// The first byte is the size of the pieces.
pub fn response_head(data: &[u8]) {
    let [size, stream @ ..] = data else { return };
    let read = |piece: usize| {
        read_head(stream, piece, |buffer, scanned| {
            let head = take_response_head(buffer, scanned)?;
            Ok(head.map(|head| {
                // A connection on which the end of the body is not certain is never kept.
                assert!(!head.keeps_alive || head.framing != BodyFraming::UntilClose);
                format!("{} {:?} {:?} {}", head.status, head.headers, head.framing, head.keeps_alive)
            }))
        })
    };
    let whole = read(stream.len().max(1));
    assert_eq!(read(usize::from(*size).max(1)), whole);
}

/// What was read of a stream: a head and what follows it, that there is no whole one, or what is wrong.
type HeadRead = Result<Option<(String, Vec<u8>)>, String>;

fn read_head(
    stream: &[u8],
    piece: usize,
    take: impl Fn(&mut BytesMut, &mut usize) -> Result<Option<String>, String>,
) -> HeadRead {
    let (mut buffer, mut scanned) = (BytesMut::new(), 0);
    let mut pieces = stream.chunks(piece);
    loop {
        if let Some(head) = take(&mut buffer, &mut scanned)? {
            let rest = [&buffer[..], &pieces.flatten().copied().collect::<Vec<_>>()].concat();
            assert!(stream.ends_with(&rest), "what follows a head was changed");
            return Ok(Some((head, rest)));
        }
        assert!(buffer.len() <= MAX_HEAD_BYTES, "more is held than a head may have");
        let Some(piece) = pieces.next() else { return Ok(None) };
        buffer.extend_from_slice(piece);
    }
}

/// Reads a body in chunks, whole and in pieces, and compares the two; what was read is written in chunks and read again.
///
/// The first byte is the size of the pieces.
pub fn chunked_body(data: &[u8]) {
    let [size, stream @ ..] = data else { return };
    let whole = read_chunks(stream, stream.len().max(1));
    assert_eq!(read_chunks(stream, usize::from(*size).max(1)), whole);
    let Some((body, rest)) = whole else { return };
    assert!(stream.ends_with(&rest), "what follows a body was changed");
    let mut again = Vec::new();
    for piece in body.chunks(usize::from(*size).max(1)) {
        again.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        again.extend_from_slice(piece);
        again.extend_from_slice(b"\r\n");
    }
    again.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(read_chunks(&again, again.len()), Some((body, Vec::new())));
}

/// Returns a body and what follows it; `None` if it is malformed or has no end.
fn read_chunks(stream: &[u8], piece: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut framing = BodyFraming::chunked();
    let (mut buffer, mut body) = (BytesMut::new(), Vec::new());
    let mut pieces = stream.chunks(piece);
    loop {
        let Ok(read) = framing.read(&mut buffer) else {
            assert!(framing.read(&mut buffer).is_err(), "nothing is read behind what is malformed");
            return None;
        };
        match read {
            BodyRead::Data(data) => body.extend_from_slice(&data),
            BodyRead::NeedMore => buffer.extend_from_slice(pieces.next()?),
            BodyRead::End => {
                assert!(framing.is_complete());
                let rest = [&buffer[..], &pieces.flatten().copied().collect::<Vec<_>>()].concat();
                return Some((body, rest));
            }
        }
    }
}
