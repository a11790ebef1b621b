//! Message body framing (RFC 9112, sections 6 and 7).

use bytes::{Buf as _, Bytes, BytesMut};

/// The longest line with the size of a chunk, its extensions included.
const MAX_CHUNK_LINE: usize = 1024;

/// The most bytes of chunk extensions and trailers in one body. All of them are skipped.
const MAX_SKIPPED_BYTES: usize = 16 * 1024;

/// More digits than any chunk needs, and few enough for a number of 64 bits.
const MAX_SIZE_DIGITS: usize = 15;

/// What is left of a body, and how its end is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// So many bytes are left.
    Length(u64),
    /// The body comes in chunks, of which the last is empty.
    Chunked(ChunkedDecoder),
    /// The body ends with the connection.
    UntilClose,
}

/// The decoder of the chunked transfer coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkedDecoder {
    position: ChunkState,
    /// The bytes that were skipped.
    skipped: usize,
    padding: SizePadding,
}

/// Whether whitespace may follow the size of a chunk that has no extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizePadding {
    /// A request: RFC 9112 does not allow it.
    Refused,
    /// A response: some servers pad the size to a fixed width.
    Skipped,
}

/// The state of the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChunkState {
    /// Before the line with the size of a chunk.
    Size,
    /// Within the data of a chunk; so many bytes are left.
    Data(u64),
    /// After the data of a chunk, before its CRLF.
    LineEnd,
    /// After the last chunk, in the trailers.
    Trailers,
    /// After the last trailer.
    Done,
    /// After a syntax error, so that the end of the body is not known.
    Malformed,
}

/// What a buffer holds of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyRead {
    /// Some of it, never nothing.
    Data(Bytes),
    /// Nothing; more bytes are needed.
    NeedMore,
    /// Its end.
    End,
}

impl BodyFraming {
    /// Begins a body that comes in chunks.
    pub const fn chunked() -> Self {
        Self::chunks(SizePadding::Refused)
    }

    /// Begins the body of a response that comes in chunks; blanks behind the size of a chunk are skipped.
    pub const fn chunked_response() -> Self {
        Self::chunks(SizePadding::Skipped)
    }

    const fn chunks(padding: SizePadding) -> Self {
        Self::Chunked(ChunkedDecoder { position: ChunkState::Size, skipped: 0, padding })
    }

    /// Returns the least number of bytes that are still to come.
    pub fn min_remaining(&self) -> u64 {
        match self {
            Self::Length(left) | Self::Chunked(ChunkedDecoder { position: ChunkState::Data(left), .. }) => {
                *left
            }
            Self::Chunked(_) | Self::UntilClose => 0,
        }
    }

    /// Reports whether the body is over, as far as that does not need the end of the connection.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(ChunkedDecoder { position: ChunkState::Done, .. }))
    }

    /// Takes what a buffer holds of the body.
    ///
    /// # Errors
    /// A sentence about what is wrong. The bytes that follow belong to no message.
    pub fn read(&mut self, buffer: &mut BytesMut) -> Result<BodyRead, &'static str> {
        match self {
            Self::Length(0) => Ok(BodyRead::End),
            Self::Length(left) => Ok(read_sized(left, buffer)),
            Self::UntilClose if buffer.is_empty() => Ok(BodyRead::NeedMore),
            Self::UntilClose => Ok(BodyRead::Data(buffer.split().freeze())),
            Self::Chunked(chunks) => {
                chunks.read(buffer).inspect_err(|_| chunks.position = ChunkState::Malformed)
            }
        }
    }
}

impl ChunkedDecoder {
    fn read(&mut self, buffer: &mut BytesMut) -> Result<BodyRead, &'static str> {
        loop {
            self.position = match &mut self.position {
                ChunkState::Done => return Ok(BodyRead::End),
                ChunkState::Malformed => return Err("the body is malformed"),
                ChunkState::Data(0) => ChunkState::LineEnd,
                ChunkState::Data(left) => return Ok(read_sized(left, buffer)),
                ChunkState::Size => match take_line(buffer, MAX_CHUNK_LINE)? {
                    None => return Ok(BodyRead::NeedMore),
                    Some(line) => {
                        self.skip(line.len().saturating_sub(MAX_SIZE_DIGITS))?;
                        match read_size(&line, self.padding).ok_or("invalid chunk size")? {
                            0 => ChunkState::Trailers,
                            size => ChunkState::Data(size),
                        }
                    }
                },
                ChunkState::LineEnd => match take_line(buffer, 0)? {
                    None => return Ok(BodyRead::NeedMore),
                    Some(_) => ChunkState::Size,
                },
                ChunkState::Trailers => match take_line(buffer, MAX_SKIPPED_BYTES)? {
                    None => return Ok(BodyRead::NeedMore),
                    Some(line) if line.is_empty() => ChunkState::Done,
                    Some(line) if !is_field_line(&line) => {
                        return Err("invalid trailer");
                    }
                    Some(line) => {
                        self.skip(line.len() + 2)?;
                        ChunkState::Trailers
                    }
                },
            }
        }
    }

    fn skip(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.skipped += bytes;
        if self.skipped > MAX_SKIPPED_BYTES {
            Err("too many bytes of chunk extensions and trailers")
        } else {
            Ok(())
        }
    }
}

/// Takes what there is of a known number of bytes.
fn read_sized(left: &mut u64, buffer: &mut BytesMut) -> BodyRead {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
    if count == 0 {
        return BodyRead::NeedMore;
    }
    *left -= count as u64;
    BodyRead::Data(buffer.split_to(count).freeze())
}

/// Takes a line that ends in CRLF; `None` if it is incomplete.
fn take_line(buffer: &mut BytesMut, max_len: usize) -> Result<Option<Bytes>, &'static str> {
    let too_long = Err("a line of the body is too long");
    let Some(end) = memchr::memchr(b'\n', buffer.get(..max_len.saturating_add(2)).unwrap_or(buffer)) else {
        return if buffer.len() >= max_len.saturating_add(2) { too_long } else { Ok(None) };
    };
    let line = buffer.split_to(end).freeze();
    buffer.advance(1);
    match line.strip_suffix(b"\r") {
        Some(text) => Ok(Some(line.slice(..text.len()))),
        None => Err("a line of the chunked body does not end with CRLF"),
    }
}

/// Reads the length of a chunk; extensions, which follow a semicolon, have to be well-formed and are ignored.
fn read_size(line: &[u8], padding: SizePadding) -> Option<u64> {
    let end = memchr::memchr(b';', line);
    let (size, extensions) = line.split_at(end.unwrap_or(line.len()));
    let digits = if end.is_some() || padding == SizePadding::Skipped { trim_whitespace(size) } else { size };
    if !are_extensions(extensions) {
        return None;
    }
    let is_number = (1..=MAX_SIZE_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, 16).ok()
}

/// Drops spaces and tabs at the end.
fn trim_whitespace(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default()
}

/// Reports whether a text is nothing but chunk extensions (RFC 9112, section 7.1.1). Readers disagree about where a malformed
/// one ends.
fn are_extensions(mut text: &[u8]) -> bool {
    let skip_whitespace = |text: &mut &[u8]| *text = text.trim_ascii_start();
    // Line ends and other control characters are not whitespace.
    if text.iter().any(|byte| (byte.is_ascii_control() && *byte != b'\t') || !byte.is_ascii()) {
        return false;
    }
    while let [b';', rest @ ..] = text {
        text = rest;
        skip_whitespace(&mut text);
        if !take_token(&mut text) {
            return false;
        }
        skip_whitespace(&mut text);
        if let [b'=', rest @ ..] = text {
            text = rest;
            skip_whitespace(&mut text);
            if !take_quoted(&mut text) && !take_token(&mut text) {
                return false;
            }
            skip_whitespace(&mut text);
        }
    }
    text.is_empty()
}

/// Takes a token from the beginning of a text; false if there is none.
fn take_token(text: &mut &[u8]) -> bool {
    let length = text.iter().position(|byte| !is_token(byte)).unwrap_or(text.len());
    *text = text.get(length..).unwrap_or_default();
    length > 0
}

/// Takes a quoted string from the beginning of a text; false if there is none that ends.
fn take_quoted(text: &mut &[u8]) -> bool {
    let Some(mut rest) = text.strip_prefix(b"\"") else { return false };
    loop {
        match rest {
            [b'"', after @ ..] => {
                *text = after;
                return true;
            }
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
            [] => return false,
        }
    }
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Reports whether a line is a header (RFC 9112, section 5). A peer that accepts a bare CR as the
/// end of a line could read anything else as a new request (request smuggling).
fn is_field_line(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let (name, value) = line.split_at(colon);
    !name.is_empty()
        && name.iter().all(is_token)
        && !value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t')
}

/// Reads the value of `Content-Length`, which is nothing but digits.
pub fn read_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutations::mutated;

    /// Reads a body that arrives in pieces of a length; `None` is what is wrong with it, or that it has no end.
    fn read(body: &[u8], piece: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut framing = BodyFraming::chunked();
        let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
        let mut pieces = body.chunks(piece);
        loop {
            match framing.read(&mut buffer).ok()? {
                BodyRead::Data(data) => read.extend_from_slice(&data),
                BodyRead::NeedMore => buffer.extend_from_slice(pieces.next()?),
                BodyRead::End => return Some((read, [&buffer[..], &pieces.flatten_all()].concat())),
            }
        }
    }

    trait FlattenAll {
        fn flatten_all(self) -> Vec<u8>;
    }

    impl<'a, I: Iterator<Item = &'a [u8]>> FlattenAll for I {
        fn flatten_all(self) -> Vec<u8> {
            self.flatten().copied().collect()
        }
    }

    proptest! {
        #[test]
        fn body_decodes_equally_for_any_chunking(
            body in mutated(BODIES, b"\r\n\0 \t;0159afF-\x7f\xff"),
            piece in 1_usize..9,
        ) {
            prop_assert_eq!(read(&body, piece), read(&body, body.len()));
        }
    }

    const BODIES: &[&[u8]] = &[
        b"5\r\nhello\r\n0\r\n\r\n",
        b"A;name=\"value\"\r\n0123456789\r\n0\r\nx-a: b\r\nx-c: d\r\n\r\n",
        b"00006\r\n world\r\n1\r\n!\r\n0\r\n\r\nHTTP",
        b"fffffffffffffff\r\nhello",
    ];

    #[test]
    fn malformed_chunk_is_never_taken_for_the_end_of_a_body() {
        for body in ["zz\r\n", "5\n", "5\r\nhello\n\r\n", "0\r\nx-a: b\n", "ffffffffffffffffff\r\n"] {
            let (mut framing, mut buffer) = (BodyFraming::chunked(), BytesMut::from(body));
            while framing.read(&mut buffer).is_ok() {}
            buffer.extend_from_slice(b"0\r\n\r\n");
            assert!(framing.read(&mut buffer).is_err() && !framing.is_complete(), "{body:?}");
        }
    }

    #[test]
    fn padded_chunk_size_is_read_in_responses_only() {
        for (mut framing, is_read) in
            [(BodyFraming::chunked(), false), (BodyFraming::chunked_response(), true)]
        {
            let mut buffer = BytesMut::from("5  \r\nhello\r\n0\r\n\r\n");
            let read = framing.read(&mut buffer);
            assert_eq!(read.ok() == Some(BodyRead::Data(Bytes::from_static(b"hello"))), is_read);
        }
    }

    #[test]
    fn chunked_body_decodes_for_any_fragmentation() {
        let long = format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(MAX_CHUNK_LINE));
        let trailers = format!("0\r\n{}\r\n", "x-a: b\r\n".repeat(MAX_SKIPPED_BYTES / 8 + 1));
        let talk = format!("{}0\r\n\r\n", format!("1;{}\r\na\r\n", "x".repeat(1000)).repeat(20));
        let table: &[(&[u8], Option<&str>)] = &[
            (b"5\r\nhello\r\n0\r\n\r\n", Some("hello|")),
            (b"5\r\nhello\r\n00006\r\n world\r\n0\r\n\r\nHTTP", Some("hello world|HTTP")),
            (b"A;name=\"value\"\r\n0123456789\r\n0\r\nx-a: b\r\nx-c: d\r\n\r\n", Some("0123456789|")),
            (b"5 \r\nhello\r\n0;x\r\n\r\n", None),
            (b"5\r\nhello\r\n0;x\r\n\r\n", Some("hello|")),
            (b"5 ; a = \"b\\\"; \" ;c\r\nhello\r\n0\r\n\r\n", Some("hello|")),
            (b"5;\r\nhello\r\n0\r\n\r\n", None),
            (b"5;;a\r\nhello\r\n0\r\n\r\n", None),
            (b"5;a=\r\nhello\r\n0\r\n\r\n", None),
            (b"5;a=\"b\r\nhello\r\n0\r\n\r\n", None),
            (b"5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", None),
            (b"5;a\xff\r\nhello\r\n0\r\n\r\n", None),
            (b"0\r\n\r\n", Some("|")),
            (b"5\r\nhello\r\n", None),
            (b"zz\r\nhello\r\n", None),
            (b"\r\nhello\r\n", None),
            (b"-1\r\nhello\r\n", None),
            (b"0x5\r\nhello\r\n0\r\n\r\n", None),
            (b" 5\r\nhello\r\n0\r\n\r\n", None),
            (b"5\nhello\r\n0\r\n\r\n", None),
            (b"5\r\nhello\n0\r\n\r\n", None),
            (b"5\r\nhello!\r\n0\r\n\r\n", None),
            (b"5\r\nhelloXX0\r\n\r\n", None),
            (b"5\r\r\nhello\r\n0\r\n\r\n", None),
            (b"5\x0c\r\nhello\r\n0\r\n\r\n", None),
            (b"5;a\0b\r\nhello\r\n0\r\n\r\n", None),
            (b"5\t;a=b\r\nhello\r\n0\r\n\r\n", Some("hello|")),
            (b"0\r\nx-a: b\n\r\n", None),
            (b"0\r\nX_a:\tb\r\n\r\n", Some("|")),
            (b"0\r\nGET / HTTP/1.1\r\n\r\n", None),
            (b"0\r\nx-a: b\r*GET / HTTP/1.1\r\n\r\n", None),
            (b"0\r\nx-a : b\r\n\r\n", None),
            (b"0\r\n: b\r\n\r\n", None),
            (b"0\r\nx-a: b\0\r\n\r\n", None),
            (b"ffffffffffffffff\r\nhello", None),
            (b"10000000000000000\r\nhello", None),
            (long.as_bytes(), None),
            (trailers.as_bytes(), None),
            (talk.as_bytes(), None),
        ];
        for (body, expected) in table {
            for piece in [1, 2, 3, 7, body.len()] {
                let found = read(body, piece).map(|(read, rest)| {
                    format!("{}|{}", String::from_utf8_lossy(&read), String::from_utf8_lossy(&rest))
                });
                assert_eq!(found.as_deref(), *expected, "{:?} by {piece}", String::from_utf8_lossy(body));
            }
        }
    }
}
