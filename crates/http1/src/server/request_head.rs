//! The heads of requests (RFC 9112).

use std::mem::MaybeUninit;

use crate::{BodyFraming, MAX_HEAD_BYTES, MAX_HEADERS, RawHeaders, read_length};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{Method, StatusCode, Uri, Version};

use super::incoming_request::RequestHead;

/// The head of a request, and what it requires of its connection.
#[derive(Debug)]
pub struct ParsedRequestHead {
    /// The head.
    pub request: RequestHead,
    /// Where the body ends.
    pub framing: BodyFraming,
    /// Whether another request may come behind it.
    pub keep_alive: bool,
    /// Whether the client sends the body only after `100 Continue`.
    pub expects_continue: bool,
    /// Whether the connection may be taken over for something else.
    pub upgrades: bool,
}

/// What is wrong with a head. Where the next one would begin is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeadError {
    /// The status of the response.
    pub status: StatusCode,
    /// A sentence for people.
    pub message: &'static str,
}

const fn malformed(sentence: &'static str) -> RequestHeadError {
    RequestHeadError { status: StatusCode::BAD_REQUEST, message: sentence }
}

const TOO_LARGE: RequestHeadError = RequestHeadError {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    message: "the head of a request may have at most 64 KiB and 100 headers",
};

const TOO_LONG: RequestHeadError = RequestHeadError {
    status: StatusCode::URI_TOO_LONG,
    message: "the first line of the request is too long",
};

/// Reads a head from the beginning of a buffer and takes it out; `None` as long as it is not whole. What was looked at before
/// need not be looked at again.
///
/// # Errors
/// It is wrong, or will be whatever follows.
pub fn take_request_head(
    buffer: &mut BytesMut,
    looked_at: &mut usize,
) -> Result<Option<ParsedRequestHead>, RequestHeadError> {
    if *looked_at == 0 {
        skip_empty_lines(buffer);
        match buffer.as_ref() {
            [] | [b'\r'] => return Ok(None),
            // A client that sends TLS or another binary protocol is refused at the first byte.
            [first, ..] if first.is_ascii_control() || !first.is_ascii() => {
                return Err(malformed("this is not HTTP"));
            }
            _ => {}
        }
    }
    let Some(length) = find_end(buffer, *looked_at)?.filter(|length| *length <= MAX_HEAD_BYTES) else {
        *looked_at = buffer.len();
        return match buffer.len() > MAX_HEAD_BYTES {
            true if memchr::memchr(b'\n', buffer).is_none() => Err(TOO_LONG),
            true => Err(TOO_LARGE),
            false => Ok(None),
        };
    };
    *looked_at = 0;
    parse(&buffer.split_to(length).freeze()).map(Some)
}

/// Skips the lines that some clients end a body with, and that belong to nothing.
fn skip_empty_lines(buffer: &mut BytesMut) {
    while buffer.starts_with(b"\r\n") {
        buffer.advance(2);
    }
}

/// Finds the end of a head, which is an empty line.
///
/// # Errors
/// A line does not end as the standard has it. A proxy on the way may have taken it for a part of the line before.
fn find_end(bytes: &[u8], looked_at: usize) -> Result<Option<usize>, RequestHeadError> {
    let from = looked_at.saturating_sub(3);
    for at in memchr::memchr_iter(b'\n', bytes.get(from..).unwrap_or_default()) {
        let (before, behind) = bytes.split_at_checked(from + at).unwrap_or_default();
        if before.last() != Some(&b'\r') {
            return Err(malformed("a line ends without a carriage return"));
        }
        if behind.starts_with(b"\n\r\n") {
            return Ok(Some(before.len() + 3));
        }
    }
    Ok(None)
}

fn parse(text: &Bytes) -> Result<ParsedRequestHead, RequestHeadError> {
    let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(text, &mut lines).map_err(explain)?;
    if parsed != httparse::Status::Complete(text.len()) {
        return Err(malformed("unexpected empty line in the request head"));
    }
    let version = if request.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let method = Method::from_bytes(request.method.unwrap_or_default().as_bytes())
        .map_err(|_| malformed("invalid request method"))?;
    let target = text.slice_ref(request.path.unwrap_or_default().as_bytes());
    if memchr::memchr(b'#', &target).is_some() {
        return Err(malformed("a request target has no fragment"));
    }
    let uri = Uri::from_maybe_shared(target).map_err(|_| malformed("invalid request target"))?;
    if uri.scheme_str().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
        return Err(malformed("the scheme of the request target is not `http` or `https`"));
    }
    let mut said = FramingHeaders::default();
    for header in request.headers.iter() {
        said.add_header(header.name, header.value)?;
    }
    let found = request.headers.iter().map(|header| (header.name.as_bytes(), header.value));
    let is_newest = version == Version::HTTP_11;
    said.check_host(version)?;
    let framing = said.framing(version)?;
    Ok(ParsedRequestHead {
        keep_alive: is_newest && !said.close,
        expects_continue: is_newest && said.expects_continue,
        // The new owner of the connection would take the body for its own protocol.
        upgrades: is_newest && said.upgrades && framing.is_complete(),
        framing,
        request: RequestHead::new(method, uri, version, RawHeaders::new(text.clone(), found)),
    })
}

fn explain(error: httparse::Error) -> RequestHeadError {
    match error {
        httparse::Error::TooManyHeaders => TOO_LARGE,
        httparse::Error::HeaderName => malformed("invalid header name"),
        httparse::Error::HeaderValue => malformed("invalid byte in a header value"),
        httparse::Error::Version => malformed("unsupported HTTP version: use HTTP/1.1"),
        _ => malformed("malformed request head"),
    }
}

/// The headers that decide framing and persistence (RFC 9112, sections 6 and 9).
#[derive(Debug, Default)]
struct FramingHeaders {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    expects_continue: bool,
    upgrades: bool,
    /// How many `Host` headers there are.
    hosts: usize,
}

impl FramingHeaders {
    /// Takes note of one. Whatever would let two readers find the end of the body in two places is refused: what one of them
    /// takes for a body would be a request to the other.
    fn add_header(&mut self, name: &str, value: &[u8]) -> Result<(), RequestHeadError> {
        // By their lengths most headers are known to be none of these.
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            14 if is("content-length") => {
                let length = read_length(value).ok_or(malformed("`Content-Length` is not a number"))?;
                if self.length.is_some_and(|other| other != length) {
                    return Err(malformed("conflicting `Content-Length` headers"));
                }
                self.length = Some(length);
            }
            17 if is("transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(malformed("unsupported `Transfer-Encoding`: only `chunked`, once"));
                }
                self.chunked = true;
            }
            10 if is("connection") => {
                let mut options = value.split(|byte| *byte == b',');
                self.close |= options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
            }
            6 if is("expect") => self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue"),
            7 if is("upgrade") => self.upgrades = true,
            4 if is("host") => self.hosts += 1,
            _ => {}
        }
        Ok(())
    }

    /// Checks the number of `Host` headers (RFC 9112, section 3.2): a proxy on the way may route by another of them.
    fn check_host(&self, version: Version) -> Result<(), RequestHeadError> {
        match self.hosts {
            1 => Ok(()),
            0 if version != Version::HTTP_11 => Ok(()),
            0 => Err(malformed("the `Host` header is missing")),
            _ => Err(malformed("more than one `Host` header")),
        }
    }

    fn framing(&self, version: Version) -> Result<BodyFraming, RequestHeadError> {
        match (self.chunked, self.length) {
            (false, length) => Ok(BodyFraming::Length(length.unwrap_or(0))),
            (true, None) if version == Version::HTTP_11 => Ok(BodyFraming::chunked()),
            (true, None) => Err(malformed("`Transfer-Encoding` is not allowed in HTTP/1.0")),
            (true, Some(_)) => Err(malformed("`Content-Length` and `Transfer-Encoding` in one message")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    const PLAIN: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\ncontent-length: 2\r\n\r\n";

    fn read(text: &[u8]) -> Result<Option<(ParsedRequestHead, Vec<u8>)>, RequestHeadError> {
        let mut buffer = BytesMut::from(text);
        Ok(take_request_head(&mut buffer, &mut 0)?.map(|head| (head, buffer.to_vec())))
    }

    #[test]
    fn request_head_is_parsed_completely_or_not_at_all() {
        for end in 0..PLAIN.len() {
            assert!(read(&PLAIN.as_bytes()[..end]).is_ok_and(|head| head.is_none()), "{end}");
        }
        let (head, rest) = read(format!("\r\n{PLAIN}{{}}").as_bytes()).unwrap().unwrap();
        assert_eq!(
            (head.request.method(), head.request.path(), rest),
            (&Method::POST, "/mcp", b"{}".to_vec())
        );
        assert_eq!(head.request.parts().headers["host"], "localhost");
    }

    #[test]
    fn request_headers_determine_the_body_framing() {
        let chunked = BodyFraming::chunked();
        // The end of the body, whether the connection is kept, whether `100 Continue` is expected, whether it may be upgraded.
        let table: &[(&str, BodyFraming, [bool; 3])] = &[
            ("1\r\n", BodyFraming::Length(0), [true, false, false]),
            ("0\r\n", BodyFraming::Length(0), [false, false, false]),
            ("0\r\nconnection: keep-alive\r\n", BodyFraming::Length(0), [false, false, false]),
            ("1\r\nconnection: a,CLOSE\r\n", BodyFraming::Length(0), [false, false, false]),
            ("1\r\nContent-Length: 7\r\n", BodyFraming::Length(7), [true, false, false]),
            ("1\r\nContent-Length: 7\r\ncontent-length: 7\r\n", BodyFraming::Length(7), [true, false, false]),
            ("1\r\nTransfer-Encoding: Chunked\r\n", chunked, [true, false, false]),
            ("1\r\nexpect: 100-Continue\r\n", BodyFraming::Length(0), [true, true, false]),
            ("0\r\nexpect: 100-continue\r\nupgrade: websocket\r\n", BodyFraming::Length(0), [false; 3]),
            ("1\r\nupgrade: websocket\r\n", BodyFraming::Length(0), [true, false, true]),
            (
                "1\r\nupgrade: websocket\r\ncontent-length: 2\r\n",
                BodyFraming::Length(2),
                [true, false, false],
            ),
        ];
        for (rest, framing, [keeps_alive, expects_continue, upgrades]) in table {
            let (head, _) = read(format!("GET / HTTP/1.{rest}Host: h\r\n\r\n").as_bytes()).unwrap().unwrap();
            assert_eq!(head.framing, *framing, "{rest}");
            assert_eq!(
                [head.keep_alive, head.expects_continue, head.upgrades],
                [*keeps_alive, *expects_continue, *upgrades],
                "{rest}"
            );
        }
    }

    #[test]
    fn ambiguous_request_heads_are_rejected() {
        let many = "x-a: b\r\n".repeat(MAX_HEADERS + 1);
        let long = format!("x-a: {}\r\n", "b".repeat(MAX_HEAD_BYTES));
        let table: &[(&str, u16)] = &[
            ("content-length: 1\r\ncontent-length: 2\r\n", 400),
            ("content-length: 1, 1\r\n", 400),
            ("content-length: +1\r\n", 400),
            ("content-length:\r\n", 400),
            ("content-length: 99999999999999999999\r\n", 400),
            ("content-length: 1\r\ntransfer-encoding: chunked\r\n", 400),
            ("transfer-encoding: chunked\r\ncontent-length: 1\r\n", 400),
            ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", 400),
            ("transfer-encoding: chunked, identity\r\n", 400),
            ("transfer-encoding: xchunked\r\n", 400),
            ("transfer-encoding: \u{b}chunked\r\n", 400),
            ("transfer-encoding : chunked\r\n", 400),
            ("x-a: b\r\n folded: c\r\n", 400),
            ("x-a: b\rc\r\n", 400),
            ("x-a: b\nx-c: d\r\n", 400),
            ("x-a: b\n\r\n", 400),
            ("x-a: b\0\r\n", 400),
            (" x-a: b\r\n", 400),
            (": b\r\n", 400),
            ("host: other\r\n", 400),
            (&many, 431),
            (&long, 431),
        ];
        for (headers, status) in table {
            let wrong =
                read(format!("POST / HTTP/1.1\r\nHost: h\r\n{headers}\r\n").as_bytes()).err().unwrap();
            assert_eq!(wrong.status.as_u16(), *status, "{headers:.60}");
        }
        for (line, status) in [
            ("/".repeat(MAX_HEAD_BYTES + 1), 414),
            ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n".into(), 400),
            ("GET / HTTP/1.1\r\n\r\n".into(), 400),
            ("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n".into(), 400),
            ("GET file://h/a HTTP/1.1\r\nHost: h\r\n\r\n".into(), 400),
            ("GET ftp://h/a HTTP/1.1\r\nHost: h\r\n\r\n".into(), 400),
        ] {
            assert_eq!(read(line.as_bytes()).err().unwrap().status.as_u16(), status, "{line:.60}");
        }
    }

    proptest! {
        #[test]
        fn request_head_parses_the_same_for_any_fragmentation(
            changes in vec((any::<Index>(), select(&b"\r\n\0 \t;:,0159aT/?*\x7f\xff"[..])), 0..5),
            piece in 1_usize..9,
        ) {
            let mut text = format!("{PLAIN}{{}}").into_bytes();
            for (at, byte) in changes {
                let at = at.index(text.len());
                text[at] = byte;
            }
            let (mut buffer, mut looked_at) = (BytesMut::new(), 0);
            let mut pieces = text.chunks(piece);
            let in_pieces = loop {
                match take_request_head(&mut buffer, &mut looked_at) {
                    Ok(None) => match pieces.next() {
                        Some(more) => buffer.extend_from_slice(more),
                        None => break Ok(None),
                    },
                    Ok(Some(head)) => {
                        break Ok(Some((head, [&buffer[..], &pieces.flatten().copied().collect::<Vec<_>>()].concat())));
                    }
                    Err(wrong) => break Err(wrong),
                }
            };
            let shown = |read: Result<Option<(ParsedRequestHead, Vec<u8>)>, RequestHeadError>| {
                read.map(|read| {
                    read.map(|(head, rest)| (format!("{:?} {:?}", head.request.parts(), head.framing), rest))
                })
            };
            prop_assert_eq!(shown(in_pieces), shown(read(&text)));
        }
    }
}
