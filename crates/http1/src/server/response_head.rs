//! The heads of responses.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{StatusCode, response};

/// How long the body of a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseLength {
    /// There is none and can be none, so that no length is sent either.
    NoBody,
    /// So many bytes.
    Known(u64),
    /// It comes in chunks.
    Chunked,
    /// It ends with the connection, for a peer that knows no chunks.
    UntilClose,
}

/// What becomes of the connection behind a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPersistence {
    KeepAlive,
    Close,
}

/// Reports whether the service wants the connection closed behind it.
pub(super) fn wants_close(parts: &response::Parts) -> bool {
    parts.headers.iter().any(|(name, value)| is_close(name, value))
}

fn is_close(name: &HeaderName, value: &HeaderValue) -> bool {
    name == CONNECTION && value.as_bytes().eq_ignore_ascii_case(b"close")
}

/// Writes the head of a response.
pub(super) fn write_head(
    out: &mut Vec<u8>,
    parts: &response::Parts,
    length: ResponseLength,
    ending: ConnectionPersistence,
) {
    if parts.status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        let reason = parts.status.canonical_reason().unwrap_or("Other");
        for piece in ["HTTP/1.1 ", parts.status.as_str(), " ", reason, "\r\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
    for (name, value) in &parts.headers {
        // The connection itself decides how the body and the connection end.
        if matches!(*name, CONTENT_LENGTH | TRANSFER_ENCODING | DATE) || is_close(name, value) {
            continue;
        }
        write_header(out, name.as_str().as_bytes(), value.as_bytes());
    }
    match length {
        ResponseLength::Known(bytes) => {
            write_header(out, b"content-length", itoa::Buffer::new().format(bytes).as_bytes());
        }
        ResponseLength::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        ResponseLength::NoBody | ResponseLength::UntilClose => {}
    }
    if ending == ConnectionPersistence::Close {
        out.extend_from_slice(b"connection: close\r\n");
    }
    write_date(out);
    out.extend_from_slice(b"\r\n");
}

fn write_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for piece in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(piece);
    }
}

/// The last one of the year 9999, behind which a date cannot be written.
const LAST_SECOND: u64 = 253_402_300_799;

thread_local! {
    /// The header line of the last second in which one was written.
    static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
}

/// Writes when the response was made, which is worked out once a second.
fn write_date(out: &mut Vec<u8>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since.as_secs().min(LAST_SECOND);
    LAST.with_borrow_mut(|(last, text)| {
        if *last != second {
            *last = second;
            let at = UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(UNIX_EPOCH);
            *text = format!("date: {}\r\n", httpdate::fmt_http_date(at));
        }
        out.extend_from_slice(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    #[test]
    fn response_head_has_exactly_one_body_framing_header() {
        let table = [
            (
                200,
                ResponseLength::Known(5),
                ConnectionPersistence::KeepAlive,
                "200 OK",
                "content-length: 5\r\n",
            ),
            (
                202,
                ResponseLength::Known(0),
                ConnectionPersistence::Close,
                "202 Accepted",
                "content-length: 0\r\nconnection: close\r\n",
            ),
            (
                200,
                ResponseLength::Chunked,
                ConnectionPersistence::KeepAlive,
                "200 OK",
                "transfer-encoding: chunked\r\n",
            ),
            (
                200,
                ResponseLength::UntilClose,
                ConnectionPersistence::Close,
                "200 OK",
                "connection: close\r\n",
            ),
            (204, ResponseLength::NoBody, ConnectionPersistence::KeepAlive, "204 No Content", ""),
            (599, ResponseLength::NoBody, ConnectionPersistence::KeepAlive, "599 Other", ""),
        ];
        for (status, length, ending, line, said) in table {
            let response = Response::builder()
                .status(status)
                .header("x-a", "b")
                .header("content-length", "77")
                .header("transfer-encoding", "gzip")
                .header("date", "never")
                .header("connection", "Close");
            let (parts, ()) = response.body(()).unwrap().into_parts();
            let mut out = Vec::new();
            assert!(wants_close(&parts));
            write_head(&mut out, &parts, length, ending);
            let text = String::from_utf8(out).unwrap();
            let (head, date) = text.split_once("date: ").unwrap();
            assert_eq!(head, format!("HTTP/1.1 {line}\r\nx-a: b\r\n{said}"));
            assert!(date.ends_with(" GMT\r\n\r\n") && date.len() == 33, "{date}");
        }
    }
}
