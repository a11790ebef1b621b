//! The byte machines that cut a stream into messages.

use bytes::Bytes;
use trunkline_protocol::line::{LineFramer, LineTooLong, encode_line};
use trunkline_protocol::sse::{
    EventTooLarge, SseDecoder, SseEvent, write_comment, write_event, write_priming,
};

/// Cuts a stream into lines, whole and in pieces, and compares the two.
///
/// The first byte is the limit and the second the size of the pieces.
pub fn line_framer(data: &[u8]) {
    let [limit, size, stream @ ..] = data else { return };
    let limit = usize::from(*limit);
    let whole = lines_of(limit, &[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(*size).max(1)).collect();
    assert_eq!(lines_of(limit, &pieces), whole);
    for line in whole.iter().flatten() {
        assert!(line.len() <= limit && !line.contains(&b'\n'));
        let mut encoded = Vec::new();
        encode_line(&mut encoded, line);
        let again = line.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect();
        assert_eq!(lines_of(limit, &[&encoded]), [Ok(again)]);
    }
}

fn lines_of(limit: usize, pieces: &[&[u8]]) -> Vec<Result<Bytes, LineTooLong>> {
    let mut framer = LineFramer::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        framer.buffer().extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| framer.next_line()));
        assert!(framer.buffer().len() <= limit + 1, "more is held than one line");
    }
    lines.extend(std::iter::from_fn(|| framer.finish()));
    lines
}

/// Reads a stream of events, whole and in pieces, and compares the two.
///
/// The first byte is the limit and the second the size of the pieces.
pub fn sse_decoder(data: &[u8]) {
    let [limit, size, stream @ ..] = data else { return };
    let limit = usize::from(*limit);
    let whole = events_of(limit, &[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(*size).max(1)).collect();
    assert_eq!(events_of(limit, &pieces), whole);
    for event in whole.into_iter().flatten() {
        let data = event.data.unwrap_or_default();
        assert!(data.len() <= limit);
        let mut encoded = Vec::new();
        write_event(&mut encoded, event.event.as_deref(), event.id.as_deref(), &data);
        let mut again = events_of(usize::MAX, &[&encoded]);
        assert_eq!(again.len(), 1);
        let again = again.pop().and_then(Result::ok).expect("no limit was set");
        // NUL is legal in a name, but never written.
        let name = event.event.map(|name| name.replace('\0', "")).filter(|name| !name.is_empty());
        assert_eq!((again.event, again.id, again.data), (name, event.id, Some(data)));
    }
}

/// Writes an event from hostile parts and reads it back as exactly one.
///
/// The parts are name, id and data, each ended by the byte 0xFF.
pub fn sse_roundtrip(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0xFF);
    let mut text = || parts.next().map(|part| String::from_utf8_lossy(part).into_owned());
    let (name, id) = (text(), text());
    let data = parts.next().unwrap_or_default();

    let mut stream = Vec::new();
    write_comment(&mut stream, name.as_deref().unwrap_or_default());
    write_event(&mut stream, name.as_deref(), id.as_deref(), data);
    write_priming(&mut stream, id.as_deref().unwrap_or_default(), Some(7));

    let clean = |text: String| text.replace(['\r', '\n', '\0'], "");
    let id = id.map(clean);
    let event = SseEvent {
        event: name.map(clean).filter(|name| !name.is_empty()),
        id: id.clone(),
        retry_ms: None,
        data: Some(with_plain_line_ends(data)),
    };
    let priming = SseEvent {
        event: None,
        id: Some(id.unwrap_or_default()),
        retry_ms: Some(7),
        data: Some(Bytes::new()),
    };
    assert_eq!(events_of(usize::MAX, &[&stream]), [Ok(event), Ok(priming)]);
}

fn events_of(limit: usize, pieces: &[&[u8]]) -> Vec<Result<SseEvent, EventTooLarge>> {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        events.extend(std::iter::from_fn(|| decoder.next_event(&mut input)));
        assert!(input.is_empty(), "input was left unread");
    }
    events
}

fn with_plain_line_ends(data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let [first, after @ ..] = rest {
        rest = if *first == b'\r' { after.strip_prefix(b"\n").unwrap_or(after) } else { after };
        out.push(if *first == b'\r' { b'\n' } else { *first });
    }
    Bytes::from(out)
}
