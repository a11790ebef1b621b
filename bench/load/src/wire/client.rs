//! A blocking HTTP client for all that is not timed: handshakes, sessions, standing streams.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;

use super::answer::check_call_answer;
use super::call::Call;
use super::http::{Place, Target, post};
use super::message::{self, Era, FIRST_ID};
use super::response::{Head, Response};

/// No answer may take longer than this; a server under callgrind is some fifty times slower than alone.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a single response may weigh.
const MAX_RESPONSE: usize = 1024 * 1024;

/// One keep-alive connection.
pub(crate) struct Client {
    place: Place,
    socket: TcpStream,
    received: Vec<u8>,
}

impl Client {
    /// Connects without Nagle's delay.
    pub(crate) fn connect(place: impl Into<Place>) -> Result<Self> {
        let place = place.into();
        let socket = TcpStream::connect_timeout(&place.address, PATIENCE).context("connect")?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { place, socket, received: Vec::new() })
    }

    /// Opens a legacy session and gives its id.
    pub(crate) fn open_session(&mut self) -> Result<String> {
        self.send_initialize()?;
        let session = self.receive_session()?;
        self.send_initialized(&session)?;
        self.receive_accepted()?;
        Ok(session)
    }

    /// Sends `initialize`; the steps are apart so that many connections can be kept busy from one thread.
    pub(crate) fn send_initialize(&mut self) -> Result<()> {
        let target = self.target(Era::Legacy, None);
        self.send(&post(&target, "initialize", None, &message::initialize(FIRST_ID))?)
    }

    /// Receives the answer to `initialize`.
    pub(crate) fn receive_session(&mut self) -> Result<String> {
        let response = self.receive()?;
        ensure!(response.status == 200, "initialize: {}", told(&response));
        response.header("mcp-session-id").map(str::to_owned).context("initialize gave no session id")
    }

    /// Sends the end of the handshake.
    pub(crate) fn send_initialized(&mut self, session: &str) -> Result<()> {
        let target = self.target(Era::Legacy, Some(session));
        self.send(&post(&target, "notifications/initialized", None, &message::initialized())?)
    }

    /// Receives the empty answer to a notification.
    pub(crate) fn receive_accepted(&mut self) -> Result<()> {
        let response = self.receive()?;
        ensure!(response.status == 202, "a notification was not accepted: {}", told(&response));
        Ok(())
    }

    /// Makes one call and checks its answer.
    pub(crate) fn call(&mut self, call: &mut Call, id: u32, text: &str) -> Result<()> {
        self.send(call.with_id(id))?;
        check_call_answer(&self.receive()?, id, text)
    }

    /// Makes one call in a session and gives the status, whatever it is.
    pub(crate) fn probe_session(&mut self, session: &str) -> Result<u16> {
        self.send_probe(session)?;
        self.receive_status()
    }

    /// Sends a call in a session.
    pub(crate) fn send_probe(&mut self, session: &str) -> Result<()> {
        let mut call = Call::http(&self.target(Era::Legacy, Some(session)), "probe")?;
        self.send(call.with_id(FIRST_ID))
    }

    /// Receives the status of a response, whatever it is.
    pub(crate) fn receive_status(&mut self) -> Result<u16> {
        Ok(self.receive()?.status)
    }

    /// Opens the standing stream of a legacy session and waits for its head.
    pub(crate) fn open_legacy_stream(&mut self, session: &str) -> Result<()> {
        let request = self.target(Era::Legacy, Some(session)).get_stream();
        self.send(&request)?;
        self.receive_stream_start(None)
    }

    /// Opens a modern subscription and waits for its acknowledgement.
    pub(crate) fn open_modern_stream(&mut self) -> Result<()> {
        let target = self.target(Era::Modern, None);
        self.send(&post(&target, "subscriptions/listen", None, &message::listen(FIRST_ID))?)?;
        self.receive_stream_start(Some("notifications/subscriptions/acknowledged"))
    }

    /// Gives the socket up, once nothing is unread on it.
    pub(crate) fn into_socket(self) -> TcpStream {
        self.socket
    }

    fn target<'a>(&self, era: Era, session: Option<&'a str>) -> Target<'a> {
        Target { place: self.place, era, session }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.received.clear();
        self.socket.write_all(bytes).context("send")
    }

    fn receive(&mut self) -> Result<Response<'_>> {
        while Response::parse(&self.received)?.is_none() {
            self.read_more()?;
        }
        Response::parse(&self.received)?.context("a complete response became incomplete")
    }

    fn receive_stream_start(&mut self, first_event: Option<&str>) -> Result<()> {
        loop {
            if let Some(head) = Head::parse(&self.received)? {
                ensure!(head.status == 200, "the stream was refused with status {}", head.status);
                let seen =
                    first_event.is_none_or(|event| memmem::find(head.after, event.as_bytes()).is_some());
                if seen {
                    // A standing stream keeps no buffer here: thousands of them share this process.
                    self.received = Vec::new();
                    return Ok(());
                }
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<()> {
        let mut chunk = [0; 16 * 1024];
        let count = self.socket.read(&mut chunk).context("receive")?;
        let Some(fresh) = chunk.get(..count).filter(|fresh| !fresh.is_empty()) else {
            bail!("the server closed the connection")
        };
        ensure!(self.received.len() + count <= MAX_RESPONSE, "a response exceeds {MAX_RESPONSE} bytes");
        self.received.extend_from_slice(fresh);
        Ok(())
    }
}

fn told(response: &Response<'_>) -> String {
    format!("status {}: {}", response.status, String::from_utf8_lossy(&response.body))
}
