//! Writing server-sent events.

use std::io::Write;

use memchr::memchr2;

/// Appends one event.
///
/// Line breaks in `data` become further `data` lines, which a reader joins again with `\n`; compact JSON has
/// none and is copied in one piece. Line breaks in `event` and `id`, and NUL in `id`, are left out, because
/// these fields have no way to carry them. An empty `event` is left out: it means the default name.
pub fn write_event(out: &mut Vec<u8>, event: Option<&str>, id: Option<&str>, data: &[u8]) {
    let names = event.map_or(0, str::len) + id.map_or(0, str::len);
    out.reserve(data.len() + names + "event: \nid: \ndata: \n\n".len());
    if let Some(event) = event.filter(|event| !event.is_empty()) {
        write_field(out, b"event: ", event);
    }
    if let Some(id) = id {
        write_field(out, b"id: ", id);
    }
    write_data(out, data);
    out.push(b'\n');
}

/// Appends an event with an id and empty data, so that a client can resume before the first message.
pub fn write_priming(out: &mut Vec<u8>, id: &str, retry_ms: Option<u64>) {
    write_field(out, b"id: ", id);
    if let Some(retry_ms) = retry_ms {
        write_retry_field(out, retry_ms);
    }
    out.extend_from_slice(b"data: \n\n");
}

/// Appends the time, in milliseconds, after which a client should reconnect.
pub fn write_retry(out: &mut Vec<u8>, retry_ms: u64) {
    write_retry_field(out, retry_ms);
    out.push(b'\n');
}

/// Appends a comment, which readers ignore; it keeps a quiet connection alive.
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    write_field(out, b": ", text);
    out.push(b'\n');
}

fn write_data(out: &mut Vec<u8>, data: &[u8]) {
    let mut rest = data;
    while let Some(end) = memchr2(b'\n', b'\r', rest) {
        let (line, ending) = rest.split_at(end);
        write_data_line(out, line);
        rest = ending.strip_prefix(b"\r\n").or_else(|| ending.get(1..)).unwrap_or_default();
    }
    write_data_line(out, rest);
}

fn write_data_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(line);
    out.push(b'\n');
}

fn write_field(out: &mut Vec<u8>, prefix: &[u8], value: &str) {
    out.extend_from_slice(prefix);
    // A NUL would make readers drop an id; the other fields lose nothing of value.
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | 0)));
    out.push(b'\n');
}

fn write_retry_field(out: &mut Vec<u8>, retry_ms: u64) {
    // Writing to a `Vec` cannot fail.
    let _ = writeln!(out, "retry: {retry_ms}");
}
