//! The heads of requests (RFC 9112).

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use trunkline_transport::http1::{Chunk, Framing, MOST_HEAD_BYTES, MOST_HEADERS, head_end, read_length};

/// The head of a request, and what it says of its connection.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) parts: Parts,
    pub(super) framing: Framing,
    /// Whether another request may come behind it.
    pub(super) keeps_alive: bool,
    /// Whether the body comes only once it is asked for.
    pub(super) expects_continue: bool,
    /// Whether the connection may be taken over for something else.
    pub(super) upgrades: bool,
}

/// What is wrong with a head. Where the next one would begin is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) status: StatusCode,
    pub(super) sentence: &'static str,
}

const fn malformed(sentence: &'static str) -> Wrong {
    Wrong { status: StatusCode::BAD_REQUEST, sentence }
}

const TOO_LARGE: Wrong = Wrong {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    sentence: "the head of a request may have at most 64 KiB and 100 headers",
};

const TOO_LONG: Wrong =
    Wrong { status: StatusCode::URI_TOO_LONG, sentence: "the first line of the request is too long" };

/// Reads a head from the beginning of a buffer and takes it out; `None` as long as it is not whole. What was looked at before
/// need not be looked at again.
///
/// # Errors
/// It is wrong, or will be whatever follows.
pub(super) fn take(buffer: &mut BytesMut, looked_at: &mut usize) -> Result<Option<Head>, Wrong> {
    if *looked_at == 0 {
        // Some clients end a body with a line that belongs to nothing.
        let empty = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        buffer.advance(empty);
    }
    let Some(length) = head_end(buffer, *looked_at).filter(|length| *length <= MOST_HEAD_BYTES) else {
        *looked_at = buffer.len();
        return match buffer.len() > MOST_HEAD_BYTES {
            true if memchr::memchr(b'\n', buffer).is_none() => Err(TOO_LONG),
            true => Err(TOO_LARGE),
            false => Ok(None),
        };
    };
    *looked_at = 0;
    parse(&buffer.split_to(length).freeze()).map(Some)
}

fn parse(text: &Bytes) -> Result<Head, Wrong> {
    let mut lines = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(text, &mut lines).map_err(explain)?;
    if parsed != httparse::Status::Complete(text.len()) {
        return Err(malformed("the head has an empty line where there must be none"));
    }
    let version = if request.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let target = text.slice_ref(request.path.unwrap_or_default().as_bytes());
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.version = version;
    parts.method = Method::from_bytes(request.method.unwrap_or_default().as_bytes())
        .map_err(|_| malformed("the method is not one"))?;
    parts.uri = Uri::from_maybe_shared(target)
        .map_err(|_| malformed("the first line does not name what is asked for"))?;
    parts.headers = HeaderMap::with_capacity(request.headers.len());
    let mut said = Said::default();
    for line in request.headers.iter() {
        let name = name(line.name).ok_or(malformed("a header has no name"))?;
        said.hear(&name, line.value)?;
        let value = HeaderValue::from_maybe_shared(text.slice_ref(line.value))
            .map_err(|_| malformed("the value of a header has bytes that none may have"))?;
        parts.headers.append(name, value);
    }
    let is_newest = version == Version::HTTP_11;
    Ok(Head {
        framing: said.framing(version)?,
        keeps_alive: is_newest && !said.close,
        expects_continue: is_newest && said.expects_continue,
        upgrades: is_newest && said.upgrades,
        parts,
    })
}

fn explain(error: httparse::Error) -> Wrong {
    match error {
        httparse::Error::TooManyHeaders => TOO_LARGE,
        httparse::Error::HeaderName => malformed("the name of a header is not one"),
        httparse::Error::HeaderValue => malformed("the value of a header has bytes that none may have"),
        httparse::Error::Version => malformed("the only HTTP spoken here is 1.1"),
        _ => malformed("the head of the request is not that of any"),
    }
}

/// Reads the name of a header. Those of the protocol are known, so that they need not be copied.
fn name(text: &str) -> Option<HeaderName> {
    const OURS: [&str; 5] =
        ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"];
    match OURS.into_iter().find(|ours| ours.eq_ignore_ascii_case(text)) {
        Some(ours) => Some(HeaderName::from_static(ours)),
        None => HeaderName::from_bytes(text.as_bytes()).ok(),
    }
}

/// What headers say of the connection.
#[derive(Debug, Default)]
struct Said {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    expects_continue: bool,
    upgrades: bool,
}

impl Said {
    /// Takes note of one. Whatever would let two readers find the end of the body in two places is refused: what one of them
    /// takes for a body would be a request to the other.
    fn hear(&mut self, name: &HeaderName, value: &[u8]) -> Result<(), Wrong> {
        if name == CONTENT_LENGTH {
            let length = read_length(value).ok_or(malformed("`Content-Length` is not a number"))?;
            if self.length.is_some_and(|other| other != length) {
                return Err(malformed("`Content-Length` says two things"));
            }
            self.length = Some(length);
        } else if name == TRANSFER_ENCODING {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("the only transfer encoding understood here is `chunked`, once"));
            }
            self.chunked = true;
        } else if name == CONNECTION {
            let mut options = value.split(|byte| *byte == b',');
            self.close |= options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
        } else if name == EXPECT {
            self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
        } else if name == UPGRADE {
            self.upgrades = true;
        }
        Ok(())
    }

    fn framing(&self, version: Version) -> Result<Framing, Wrong> {
        match (self.chunked, self.length) {
            (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
            (true, None) if version == Version::HTTP_11 => Ok(Framing::Chunked(Chunk::Size)),
            (true, None) => Err(malformed("HTTP/1.0 knows no `Transfer-Encoding`")),
            (true, Some(_)) => Err(malformed("`Content-Length` and `Transfer-Encoding` exclude each other")),
        }
    }
}
