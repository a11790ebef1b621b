//! HTTP/1.1 responses, read where they lie in the connection's buffer.

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    head: &'a [u8],
    /// The body without transfer coding; the bytes themselves unless it came in chunks.
    pub(crate) body: Cow<'a, [u8]>,
}

/// The head of a response and where its body begins.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) status: u16,
    bytes: &'a [u8],
    framing: Framing,
    pub(crate) after: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

impl<'a> Response<'a> {
    /// Reads one response; none while it is incomplete. The connection is never pipelined, so nothing may follow it.
    ///
    /// # Errors
    /// The bytes are not HTTP/1.1 as a server should send it.
    pub(crate) fn parse(received: &'a [u8]) -> Result<Option<Self>> {
        let Some(Head { status, bytes, framing, after }) = Head::parse(received)? else { return Ok(None) };
        let body = match framing {
            Framing::Length(length) if after.len() < length => None,
            Framing::Length(length) => {
                ensure!(after.len() == length, "bytes follow the response");
                Some(Cow::Borrowed(after))
            }
            // The end is looked for first, so that a long body is decoded once and not at every read.
            Framing::Chunked if after.ends_with(b"0\r\n\r\n") => decode_chunks(after)?.map(Cow::Owned),
            Framing::Chunked => None,
        };
        Ok(body.map(|body| Self { status, head: bytes, body }))
    }

    /// Looks a header up by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }
}

impl<'a> Head<'a> {
    /// Reads the status line and the headers; none while they are incomplete.
    ///
    /// # Errors
    /// The bytes are not an HTTP/1.1 head.
    pub(crate) fn parse(received: &'a [u8]) -> Result<Option<Self>> {
        let Some(end) = memmem::find(received, b"\r\n\r\n") else { return Ok(None) };
        let (bytes, after) = received.split_at_checked(end + 4).context("a head ends inside the buffer")?;
        let status =
            bytes.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3)).context("not HTTP/1.1")?;
        let status = std::str::from_utf8(status)?.parse()?;
        let framing = if let Some(length) = header(bytes, "content-length") {
            Framing::Length(length.parse().context("content-length")?)
        } else if header(bytes, "transfer-encoding").is_some() {
            Framing::Chunked
        } else if status == 202 || status == 204 {
            Framing::Length(0)
        } else {
            bail!("the response {status} has neither a length nor chunks")
        };
        Ok(Some(Self { status, bytes, framing, after }))
    }
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        if !key.eq_ignore_ascii_case(name.as_bytes()) {
            return None;
        }
        std::str::from_utf8(value).ok().map(str::trim)
    })
}

/// Joins the chunks; none while the last one is missing.
fn decode_chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let Some(line_end) = memmem::find(rest, b"\r\n") else { return Ok(None) };
        let (size, after) = rest.split_at_checked(line_end).context("a size ends inside the buffer")?;
        let size = usize::from_str_radix(std::str::from_utf8(size)?, 16).context("chunk size")?;
        let Some(data) = after.get(2..) else { return Ok(None) };
        if size == 0 {
            return Ok(data.starts_with(b"\r\n").then_some(body));
        }
        let Some((data, next)) = data.split_at_checked(size) else { return Ok(None) };
        body.extend_from_slice(data);
        let Some(next) = next.strip_prefix(b"\r\n") else { return Ok(None) };
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 4\r\n\r\nbody";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nMcp-Session-Id: s1\r\n\r\n6\r\ndata: \r\na\r\n0123456789\r\n0\r\n\r\n";

    #[track_caller]
    fn check_whole(bytes: &str, status: u16, body: &str) {
        let response = Response::parse(bytes.as_bytes()).unwrap().unwrap();
        assert_eq!((response.status, response.body.as_ref()), (status, body.as_bytes()));
        for end in 0..bytes.len() {
            let part = Response::parse(&bytes.as_bytes()[..end]).unwrap();
            assert!(part.is_none(), "{end} bytes are taken for a whole response");
        }
    }

    #[test]
    fn response_is_complete_only_with_its_last_byte() {
        check_whole(PLAIN, 200, "body");
        check_whole(CHUNKED, 200, "data: 0123456789");
        check_whole("HTTP/1.1 202 Accepted\r\n\r\n", 202, "");
    }

    #[test]
    fn headers_are_found_whatever_their_case() {
        let response = Response::parse(CHUNKED.as_bytes()).unwrap().unwrap();
        assert_eq!(response.header("mcp-session-id"), Some("s1"));
        assert_eq!(response.header("mcp-session"), None);
    }

    #[test]
    fn non_http_response_is_an_error() {
        for bytes in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 2xx\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab",
        ] {
            Response::parse(bytes.as_bytes()).expect_err(bytes);
        }
    }
}
