//! The heads of requests and responses, as bytes.

use std::mem::MaybeUninit;

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version};

use super::response_headers::ResponseHeaders;
use crate::{BodyFraming, MAX_HEAD_BYTES, MAX_HEADERS, RawHeaders, read_length};

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: ResponseHeaders,
    /// Where the body ends.
    pub framing: BodyFraming,
    /// Whether another request can go over the connection once the body was read.
    pub keeps_alive: bool,
}

/// Reports whether a request has `Content-Length`, even without a body (RFC 9110, section 8.6).
pub(super) fn sends_content_length(method: &Method, body: &[u8]) -> bool {
    !body.is_empty() || matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Reads a head from the beginning of a buffer and takes it out; `None` as long as it is not whole. What was looked at before
/// need not be looked at again.
///
/// # Errors
/// A sentence about what is wrong with it.
pub fn take_response_head(
    buffer: &mut BytesMut,
    looked_at: &mut usize,
) -> Result<Option<ResponseHead>, String> {
    let Some(length) = end(buffer, *looked_at).filter(|length| *length <= MAX_HEAD_BYTES) else {
        *looked_at = buffer.len();
        return if buffer.len() > MAX_HEAD_BYTES { Err(too_large()) } else { Ok(None) };
    };
    *looked_at = 0;
    let head = buffer.split_to(length).freeze();
    let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, &head, &mut lines);
    if parsed.map_err(|error| error.to_string())? != httparse::Status::Complete(length) {
        return Err("unexpected empty line in its head".to_owned());
    }
    let version = if response.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or_else(|| "it has no status".to_owned())?;
    let found = response.headers.iter().map(|header| (header.name.as_bytes(), header.value));
    let headers = RawHeaders::new(head.clone(), found).into();
    let framing = framing(status, version, &headers)?;
    let keeps_alive = version == Version::HTTP_11
        && framing != BodyFraming::UntilClose
        && status != StatusCode::SWITCHING_PROTOCOLS
        && !has_connection_close(&headers)
        && !has_ambiguous_framing(status, &headers);
    Ok(Some(ResponseHead { status, headers, framing, keeps_alive }))
}

/// Finds the end of a head, which is an empty line.
fn end(bytes: &[u8], looked_at: usize) -> Option<usize> {
    let from = looked_at.saturating_sub(3);
    let new = bytes.get(from..)?;
    memchr::memchr_iter(b'\n', new).find_map(|at| match new.get(at + 1..)? {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// Reads from a head how the body ends.
///
/// # Errors
/// A sentence about what is wrong: two readers could find the end in two places.
fn framing(status: StatusCode, version: Version, headers: &ResponseHeaders) -> Result<BodyFraming, String> {
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(BodyFraming::Length(0));
    }
    let mut codings = headers.get_all(&TRANSFER_ENCODING);
    if let Some(coding) = codings.next() {
        let is_chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        if !is_chunked || codings.next().is_some() || version != Version::HTTP_11 {
            return Err("its `Transfer-Encoding` is not supported".to_owned());
        }
        return Ok(BodyFraming::chunked_response());
    }
    let mut lengths = headers.get_all(&CONTENT_LENGTH).map(read_length);
    let Some(first) = lengths.next() else { return Ok(BodyFraming::UntilClose) };
    match first.filter(|first| lengths.all(|other| other == Some(*first))) {
        Some(length) => Ok(BodyFraming::Length(length)),
        None => Err("its `Content-Length` is invalid or contradictory".to_owned()),
    }
}

/// Reports whether the server closes the connection behind the response.
fn has_connection_close(headers: &ResponseHeaders) -> bool {
    let mut options = headers.get_all(&CONNECTION).flat_map(|value| value.split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Reports whether a proxy on the way may have found the end of the body elsewhere than we do.
fn has_ambiguous_framing(status: StatusCode, headers: &ResponseHeaders) -> bool {
    let is_chunked = headers.has(&TRANSFER_ENCODING);
    let length = || headers.get(&CONTENT_LENGTH);
    match status {
        // What has no body may be followed by one nevertheless.
        StatusCode::NO_CONTENT => is_chunked || length().is_some_and(|length| length != b"0"),
        StatusCode::NOT_MODIFIED => is_chunked,
        _ => is_chunked && length().is_some(),
    }
}

fn too_large() -> String {
    format!("its head has more than {MAX_HEAD_BYTES} bytes")
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use super::*;
    use crate::mutations::mutated;

    #[test]
    fn response_with_ambiguous_body_length_is_rejected() {
        type HeadCaseHeaders = &'static [(&'static str, &'static str)];
        let chunked = Some(BodyFraming::chunked_response());
        let table: &[(u16, HeadCaseHeaders, Option<BodyFraming>)] = &[
            (200, &[], Some(BodyFraming::UntilClose)),
            (200, &[("content-length", "5")], Some(BodyFraming::Length(5))),
            (200, &[("content-length", "5"), ("content-length", "5")], Some(BodyFraming::Length(5))),
            (200, &[("content-length", "5"), ("content-length", "6")], None),
            (200, &[("content-length", "5, 5")], None),
            (200, &[("content-length", "+5")], None),
            (200, &[("content-length", "")], None),
            (200, &[("content-length", "99999999999999999999999")], None),
            (200, &[("transfer-encoding", "Chunked")], chunked.clone()),
            (200, &[("transfer-encoding", "chunked"), ("content-length", "5")], chunked),
            (200, &[("transfer-encoding", "gzip, chunked")], None),
            (200, &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], None),
            (200, &[("transfer-encoding", "xchunked")], None),
            (204, &[("content-length", "5")], Some(BodyFraming::Length(0))),
            (304, &[("transfer-encoding", "chunked")], Some(BodyFraming::Length(0))),
            (101, &[], Some(BodyFraming::Length(0))),
        ];
        for (status, headers, expected) in table {
            let pairs = headers.iter().map(|(n, v)| (n.parse().unwrap(), HeaderValue::from_static(v)));
            let map: HeaderMap = {
                let mut map = HeaderMap::new();
                pairs.for_each(|(name, value): (http::HeaderName, _)| {
                    map.append(name, value);
                });
                map
            };
            let status = StatusCode::from_u16(*status).unwrap();
            assert_eq!(
                framing(status, Version::HTTP_11, &(&map).into()).ok(),
                *expected,
                "{status} {headers:?}"
            );
        }
        let old = HeaderMap::from_iter([(TRANSFER_ENCODING, HeaderValue::from_static("chunked"))]);
        assert!(framing(StatusCode::OK, Version::HTTP_10, &(&old).into()).is_err());
    }

    fn read(text: &str) -> Result<Option<(ResponseHead, String)>, String> {
        let mut buffer = BytesMut::from(text);
        let head = take_response_head(&mut buffer, &mut 0)?;
        Ok(head.map(|head| (head, String::from_utf8_lossy(&buffer).into_owned())))
    }

    #[test]
    fn response_head_is_parsed_only_when_complete() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-a:\r\nContent-Length: 2\r\n\r\n{}";
        let (head, _) = text.split_once("{}").unwrap();
        for end in 0..head.len() {
            assert!(read(head.get(..end).unwrap()).unwrap().is_none(), "{end}");
        }
        let (head, rest) = read(text).unwrap().unwrap();
        assert_eq!((head.status, rest.as_str()), (StatusCode::OK, "{}"));
        assert_eq!(head.headers.get_text(&http::header::CONTENT_TYPE), Some("application/json"));
        assert_eq!(head.headers.get_text(&http::HeaderName::from_static("x-a")), Some(""));
        assert_eq!(head.framing, BodyFraming::Length(2));
        assert!(head.keeps_alive);
    }

    #[test]
    fn response_head_scan_resumes_without_rescanning() {
        let text = b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n";
        let (mut buffer, mut looked_at) = (BytesMut::new(), 0);
        for (at, byte) in text.iter().enumerate() {
            assert!(take_response_head(&mut buffer, &mut looked_at).unwrap().is_none(), "{at}");
            buffer.extend_from_slice(&[*byte]);
        }
        assert!(take_response_head(&mut buffer, &mut looked_at).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn response_head_parses_equally_for_any_chunking(
            text in mutated(HEADS, b"\r\n\0 \t;:,0159aT/\x7f\xff"),
            piece in 1_usize..9,
        ) {
            let whole = in_pieces(&text, text.len());
            if let Ok(Some((_, _, rest))) = &whole {
                prop_assert!(text.ends_with(rest));
            }
            prop_assert_eq!(in_pieces(&text, piece), whole);
        }
    }

    const HEADS: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.0 200\ntransfer-encoding: chunked\n\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\nx-a:\r\n\r\n",
    ];

    type ParsedHead = Result<Option<(u16, bool, Vec<u8>)>, String>;

    /// Reads a head that arrives in pieces of a length; with its status, whether the connection is kept, and what follows.
    fn in_pieces(text: &[u8], piece: usize) -> ParsedHead {
        let (mut buffer, mut looked_at) = (BytesMut::new(), 0);
        let mut pieces = text.chunks(piece);
        loop {
            if let Some(head) = take_response_head(&mut buffer, &mut looked_at)? {
                let rest = pieces.fold(buffer.to_vec(), |rest, piece| [&rest, piece].concat());
                return Ok(Some((head.status.as_u16(), head.keeps_alive, rest)));
            }
            let Some(piece) = pieces.next() else { return Ok(None) };
            buffer.extend_from_slice(piece);
        }
    }

    #[test]
    fn connection_is_reused_only_after_an_unambiguous_response() {
        let table = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: Close\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: x, close\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", false),
            ("HTTP/1.1 101 Switch\r\nupgrade: websocket\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 7\r\n\r\n", false),
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n", false),
            ("HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n", false),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", true),
            ("HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n", false),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).unwrap().unwrap().0.keeps_alive, expected, "{text:?}");
        }
    }

    #[test]
    fn malformed_or_oversized_response_head_is_rejected() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(MAX_HEADERS + 1));
        let endless = format!("HTTP/1.1 200 OK\r\nx-a: {}", "b".repeat(MAX_HEAD_BYTES));
        let large = format!("{endless}\r\n\r\n");
        for text in [
            &many,
            &endless,
            &large,
            "SSH-2.0-OpenSSH_9\r\n\r\n",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx a: b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx-a : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx-a: b\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx-a: \x01\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 000 OK\r\n\r\n",
        ] {
            assert!(read(text).is_err(), "{:?}", text.get(..60).unwrap_or(text));
        }
    }
}
