//! The HTTP loop: one request under way on each of many connections, one thread, one epoll.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::wire::{Call, Client, Era, FIRST_ID, Place, Response, Target, check_call_answer};

use super::window::{Sample, Window};

/// A server that answers nothing for this long is stuck.
const STALL: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Room for an answer of 64 KiB with its head, or for several reads of a longer one.
const INBOX: usize = 160 * 1024;

/// Keeps `connections` requests under way until the window closes.
///
/// # Errors
/// An answer is wrong, a connection breaks, or the server stalls.
pub(crate) fn drive_http(
    place: impl Into<Place>,
    era: Era,
    text: &str,
    connections: usize,
    mut window: Window,
) -> Result<Sample> {
    let place = place.into();
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut open = Vec::with_capacity(connections);
    for index in 0..connections {
        let connection = Connection::open(place, era, text)?;
        epoll::add(&epoll, &connection.socket, EventData::new_u64(index as u64), EventFlags::IN)?;
        open.push(connection);
    }
    for (index, connection) in open.iter_mut().enumerate() {
        connection.start_next()?;
        connection.watch(&epoll, index)?;
    }
    let mut events: Vec<Event> = Vec::with_capacity(connections);
    let mut sample = None;
    let mut under_way = connections;
    // Once the window has closed nothing new is sent, so that no server is left with work in another one's time.
    while under_way > 0 {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&STALL))?;
        ensure!(!events.is_empty(), "no answer for {} s with {under_way} requests under way", STALL.tv_sec);
        for event in &events {
            let index = usize::try_from(event.data.u64())?;
            let connection = open.get_mut(index).context("an event for no connection")?;
            if connection.advance(text)? {
                window.count(1);
                if sample.is_none() { connection.start_next()? } else { under_way -= 1 }
            }
            connection.watch(&epoll, index)?;
        }
        if sample.is_none() {
            sample = window.poll()?;
        }
    }
    sample.context("the window never closed")
}

struct Connection {
    socket: TcpStream,
    call: Call,
    id: u32,
    /// How much of the request is sent; a long one may not fit into the socket at once.
    sent: usize,
    inbox: Vec<u8>,
    filled: usize,
    watched: EventFlags,
}

impl Connection {
    fn open(place: Place, era: Era, text: &str) -> Result<Self> {
        let mut client = Client::connect(place)?;
        let session = match era {
            Era::Legacy => Some(client.open_session()?),
            Era::Modern => None,
        };
        let call = Call::http(&Target { place, era, session: session.as_deref() }, text)?;
        let socket = client.into_socket();
        socket.set_nonblocking(true)?;
        let sent = call.bytes().len();
        let inbox = vec![0; INBOX];
        Ok(Self { socket, call, id: FIRST_ID, sent, inbox, filled: 0, watched: EventFlags::IN })
    }

    fn start_next(&mut self) -> Result<()> {
        self.id += 1;
        self.call.with_id(self.id);
        self.call.renew_proof()?;
        self.sent = 0;
        self.send()
    }

    /// Sends and receives what it can; true when the answer is complete and right.
    fn advance(&mut self, text: &str) -> Result<bool> {
        if self.is_sending() {
            self.send()?;
        }
        let space = self.inbox.get_mut(self.filled..).unwrap_or_default();
        ensure!(!space.is_empty(), "an answer exceeds {INBOX} bytes");
        match self.socket.read(space) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("receive"),
        }
        let received = self.inbox.get(..self.filled).unwrap_or_default();
        let Some(response) = Response::parse(received)? else { return Ok(false) };
        ensure!(!self.is_sending(), "the answer came before the request was sent");
        check_call_answer(&response, self.id, text)?;
        self.filled = 0;
        Ok(true)
    }

    fn send(&mut self) -> Result<()> {
        while let Some(rest) = self.call.bytes().get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("send"),
            }
        }
        Ok(())
    }

    fn is_sending(&self) -> bool {
        self.sent < self.call.bytes().len()
    }

    /// Waits for room to send only while something is unsent.
    fn watch(&mut self, epoll: &OwnedFd, index: usize) -> Result<()> {
        let wanted = if self.is_sending() { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        if wanted != self.watched {
            epoll::modify(epoll, &self.socket, EventData::new_u64(index as u64), wanted)?;
            self.watched = wanted;
        }
        Ok(())
    }
}
