//! Requests that are right, or nearly so, from a seed.

/// Makes one connection's worth of bytes after the other.
pub(crate) struct RequestGenerator {
    state: u64,
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "M-SEARCH", "get"];

const TARGETS: &[&str] = &[
    "/",
    "/mcp",
    "/a/b?c=d&e",
    "*",
    "http://example.com/mcp",
    "example.com:80",
    "/%20%zz",
    "//",
    "/a\u{e9}",
    "?x",
];

const VERSIONS: &[&str] =
    &["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0"];

/// How often there is a `Host` decides what becomes of the request.
const HOSTS: &[&str] = &["Host: localhost\r\n", "", "host: a\r\nHost: b\r\n", "HOST:\r\n"];

const HEADERS: &[&str] = &[
    "accept: application/json, text/event-stream",
    "x-empty:",
    "x-space:   value with space \t ",
    "X-Upper: A",
    "x-bytes: \u{e9}\u{ff}",
    "Connection: close",
    "connection: keep-alive, upgrade",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "x-name : value",
    " folded",
    "no-colon",
    "te: trailers",
    "trailer: x-a",
];

const LENGTHS: &[&str] = &[
    "Content-Length: N",
    "content-length:N ",
    "Content-Length: N\r\nContent-Length: N",
    "Content-Length: 0N",
    "Content-Length: +N",
    "Content-Length: N, N",
    "Content-Length: N\r\nContent-Length: 1",
    "Content-Length : N",
    "Content-Length: ",
    "Content-Length: N\r\nTransfer-Encoding: chunked",
];

const CODINGS: &[&str] = &[
    "Transfer-Encoding: chunked",
    "transfer-encoding: Chunked ",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding:\tchunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding : chunked",
];

const CHUNK_EXTENSIONS: &[&str] = &["", "", "", "", ";a=b", " ;a", ";a=\"b;c\"", " ", "\t", ";\u{e9}"];

const LINE_ENDS: &[&str] =
    &["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n"];

const TRAILERS: &[&str] = &["", "", "", "x-a: b\r\n", "x-a: b\r\nx-c: d\r\n"];

const CHANGES: &[u8] = b"\r\n\0 \t;:,0159aT/?*\x7f\xff\x0b";

impl RequestGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        // No state may be zero, from which there would be no way out.
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Returns the bytes of a connection, and how many of them are read at a time.
    pub(crate) fn next(&mut self) -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        for _ in 0..=self.below(3) {
            self.request(&mut bytes);
        }
        if self.below(3) == 0 {
            for _ in 0..=self.below(2) {
                let at = self.below(bytes.len());
                bytes[at] = self.one_of(CHANGES);
            }
        }
        let piece = if self.below(2) == 0 { bytes.len() } else { 1 + self.below(16) };
        (bytes, piece)
    }

    fn request(&mut self, out: &mut Vec<u8>) {
        if self.below(16) == 0 {
            out.extend_from_slice(b"\r\n");
        }
        // Most of a request is ordinary, so that what is odd about it decides what becomes of it.
        let method = self.mostly(METHODS);
        let target = self.mostly(TARGETS);
        let version = self.one_of(VERSIONS);
        let line_end = self.mostly(LINE_ENDS);
        out.extend_from_slice(format!("{method} {target} {version}{line_end}").as_bytes());
        out.extend_from_slice(self.mostly(HOSTS).as_bytes());
        for _ in 0..self.below(4) {
            let (header, line_end) = (self.one_of(HEADERS), self.mostly(LINE_ENDS));
            // Odd headers are refused, so that there must not be one in each request.
            let header = if header.contains(": ") || self.below(8) == 0 { header } else { "x-a: b" };
            out.extend_from_slice(format!("{header}{line_end}").as_bytes());
        }
        match self.below(4) {
            0 => out.extend_from_slice(b"\r\n"),
            1 => self.chunked_body(out),
            _ => self.sized_body(out),
        }
    }

    fn sized_body(&mut self, out: &mut Vec<u8>) {
        let body = self.text();
        let length = self.mostly(LENGTHS).replace('N', &body.len().to_string());
        out.extend_from_slice(format!("{length}\r\n\r\n{body}").as_bytes());
    }

    fn chunked_body(&mut self, out: &mut Vec<u8>) {
        let coding = self.mostly(CODINGS);
        out.extend_from_slice(format!("{coding}\r\n\r\n").as_bytes());
        for _ in 0..self.below(4) {
            let body = format!("{}!", self.text());
            let size = match self.below(8) {
                0 => format!("{:X}", body.len()),
                1 => format!("000{:x}", body.len()),
                2 if self.below(4) == 0 => format!("0x{:x}", body.len()),
                3 if self.below(4) == 0 => format!("{:x}", body.len() + 1),
                _ => format!("{:x}", body.len()),
            };
            let (extension, line_end, end) =
                (self.one_of(CHUNK_EXTENSIONS), self.mostly(LINE_ENDS), self.mostly(LINE_ENDS));
            out.extend_from_slice(format!("{size}{extension}{line_end}{body}{end}").as_bytes());
        }
        let trailers = self.one_of(TRAILERS);
        out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    }

    /// A body that could be taken for a request.
    fn text(&mut self) -> &'static str {
        self.one_of(&[
            "",
            "{}",
            "{\"jsonrpc\":\"2.0\"}",
            "GET /hidden HTTP/1.1\r\n\r\n",
            "0\r\n\r\n",
            "hello\n",
        ])
    }

    /// Returns the first of several most of the time.
    fn mostly<T: Copy>(&mut self, all: &[T]) -> T {
        if self.below(4) == 0 { self.one_of(all) } else { all[0] }
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns a number below another, by xorshift.
    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 11) % end as u64) as usize
    }
}
