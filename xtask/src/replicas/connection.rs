//! A client's connection to the balancer: requests over a plain socket, and bodies as they come, chunked or of a known length.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a response may take. A replica that is killed breaks the connection long before.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest response.
const MAX_BYTES: usize = 1 << 20;

pub(super) struct HttpConnection {
    stream: TcpStream,
    /// What was received and is not read yet.
    received: Vec<u8>,
    body: BodyRest,
    /// The content of the body so far that is not read yet.
    content: Vec<u8>,
}

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyRest {
    Length(usize),
    /// So many bytes of the current chunk, with its line end.
    Chunk(usize),
    UntilClose,
    Done,
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct ReplyHead {
    pub(super) status: u16,
    text: String,
}

impl ReplyHead {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// An event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StreamMessage {
    pub(super) id: Option<String>,
    pub(super) data: String,
}

impl HttpConnection {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let connection = Self { stream, received: Vec::new(), body: BodyRest::Done, content: Vec::new() };
        connection.set_timeout(RESPONSE_TIMEOUT)?;
        Ok(connection)
    }

    /// Sets how long one read may take.
    pub(super) fn set_timeout(&self, timeout: Duration) -> Result<()> {
        self.stream.set_read_timeout(Some(timeout))
    }

    /// Sends a request and reads the head of its response; the rest of the one before has to be read.
    pub(super) fn request(
        &mut self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<ReplyHead> {
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.stream.write_all(request.as_bytes())?;
        self.content.clear();
        let end = loop {
            if let Some(at) = find(&self.received, b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        let text: Vec<u8> = self.received.drain(..end).collect();
        let text = String::from_utf8(text).map_err(|_| malformed("a head that is no text"))?;
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        let head = ReplyHead { status: status.ok_or_else(|| malformed("no status"))?, text };
        let is_chunked = head.header("transfer-encoding").is_some_and(|coding| coding == "chunked");
        let length = head.header("content-length").and_then(|length| length.parse().ok());
        self.body = match (length, is_chunked) {
            _ if matches!(head.status, 204 | 304) => BodyRest::Done,
            (_, true) => BodyRest::Chunk(0),
            (Some(0), _) => BodyRest::Done,
            (Some(length), _) => BodyRest::Length(length),
            (None, false) => BodyRest::UntilClose,
        };
        Ok(head)
    }

    /// Reads the rest of a body.
    pub(super) fn read_body(&mut self) -> Result<String> {
        while self.read_more()? {}
        String::from_utf8(std::mem::take(&mut self.content)).map_err(|_| malformed("a body that is no text"))
    }

    /// Reads the next event of a stream; `None` at its end. One that times out may be continued.
    pub(super) fn next_event(&mut self) -> Result<Option<StreamMessage>> {
        loop {
            if let Some(end) = find(&self.content, b"\n\n") {
                let event: Vec<u8> = self.content.drain(..end + 2).collect();
                let message = read_event(&String::from_utf8_lossy(&event));
                // A comment alone is no event.
                if message.id.is_some() || !message.data.is_empty() {
                    return Ok(Some(message));
                }
            } else if !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Moves more of the body to the content; returns whether there was more.
    fn read_more(&mut self) -> Result<bool> {
        match self.body {
            BodyRest::Done => return Ok(false),
            BodyRest::Chunk(0) => return self.begin_chunk(),
            BodyRest::Length(_) | BodyRest::Chunk(_) | BodyRest::UntilClose => {}
        }
        if self.received.is_empty() {
            match self.receive() {
                Err(error)
                    if self.body == BodyRest::UntilClose && error.kind() == ErrorKind::UnexpectedEof =>
                {
                    self.body = BodyRest::Done;
                    return Ok(false);
                }
                outcome => outcome?,
            }
        }
        let most = match self.body {
            BodyRest::Length(left) | BodyRest::Chunk(left) => left.min(self.received.len()),
            BodyRest::UntilClose | BodyRest::Done => self.received.len(),
        };
        match &mut self.body {
            BodyRest::Length(left) => {
                self.content.extend(self.received.drain(..most));
                *left -= most;
                if *left == 0 {
                    self.body = BodyRest::Done;
                }
            }
            BodyRest::Chunk(left) => {
                // The last two bytes end the line of the chunk.
                let content = left.saturating_sub(2).min(most);
                *left -= most;
                self.content.extend(self.received.drain(..most).take(content));
            }
            BodyRest::UntilClose | BodyRest::Done => self.content.extend(self.received.drain(..most)),
        }
        if self.content.len() > MAX_BYTES { Err(malformed("an endless event")) } else { Ok(true) }
    }

    /// Reads the size of the next chunk; returns whether it is not the last one.
    fn begin_chunk(&mut self) -> Result<bool> {
        let end = loop {
            if let Some(at) = find(&self.received, b"\r\n") {
                break at;
            }
            self.receive()?;
        };
        let line = String::from_utf8_lossy(self.received.get(..end).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(line.trim(), 16).map_err(|_| malformed("a chunk without a size"))?;
        if size > 0 {
            self.received.drain(..end + 2);
            self.body = BodyRest::Chunk(size + 2);
            return Ok(true);
        }
        while self.received.len() < end + 4 {
            self.receive()?;
        }
        self.received.drain(..end + 4);
        self.body = BodyRest::Done;
        Ok(false)
    }

    fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 8 << 10];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.received.extend(buffer.iter().take(count));
        if self.received.len() > MAX_BYTES { Err(malformed("an endless response")) } else { Ok(()) }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

fn read_event(text: &str) -> StreamMessage {
    let mut message = StreamMessage::default();
    for line in text.lines() {
        match line.split_once(':').map(|(name, value)| (name, value.trim_start())) {
            Some(("id", id)) => message.id = Some(id.to_owned()),
            Some(("data", data)) => message.data.push_str(data),
            _ => {}
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// Reads what a peer sends in pieces.
    fn connection(pieces: &'static [&'static str]) -> HttpConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for piece in pieces {
                stream.write_all(piece.as_bytes()).unwrap();
            }
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            // Unread requests would break the connection before the responses are read.
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        });
        HttpConnection::open(address).unwrap()
    }

    #[test]
    fn events_are_read_from_chunks_however_they_are_cut() {
        let mut connection = connection(&[
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            "13\r\nid: 1-0\ndata:\n\nid: \r\n",
            "10\r\n1-1\ndata: {}\n\n:\n\r\n3\r\n\nid\r\n",
            "0\r\n\r\n",
        ]);
        let head = connection.request("GET", &[], "").unwrap();
        assert!(head.status == 200 && head.is_stream());
        for (id, data) in [("1-0", ""), ("1-1", "{}")] {
            let event = connection.next_event().unwrap().unwrap();
            assert_eq!((event.id.as_deref(), &*event.data), (Some(id), data));
        }
        assert_eq!(connection.next_event().unwrap(), None);
    }

    #[test]
    fn bodies_of_known_length_follow_each_other_and_a_cut_one_is_an_error() {
        let mut connection = connection(&[
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        ]);
        for expected in [Some(""), Some("hello"), None] {
            connection.request("POST", &[], "").unwrap();
            assert_eq!(connection.read_body().ok().as_deref(), expected);
        }
    }
}
