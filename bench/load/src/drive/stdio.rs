//! The stdio loop: many requests under way in one pair of pipes, answered in any order.

use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::servers::StdioServer;
use crate::wire::{Call, Era, FIRST_ID, check_answer};

use super::window::{Sample, Window};

const STALL: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// What one read may bring, beyond the line that an earlier read left unfinished.
const INBOX: usize = 1024 * 1024;

/// Keeps `in_flight` requests under way until the window closes.
///
/// # Errors
/// An answer is wrong, the server ends, or it stalls.
pub(crate) fn drive_stdio(
    server: &mut StdioServer,
    era: Era,
    text: &str,
    in_flight: usize,
    mut window: Window,
) -> Result<Sample> {
    for flags_of in [rustix::fd::AsFd::as_fd(&server.input), rustix::fd::AsFd::as_fd(&server.output.pipe)] {
        fcntl_setfl(flags_of, fcntl_getfl(flags_of)? | OFlags::NONBLOCK)?;
    }
    let mut slots = Slots::new(in_flight)?;
    let mut outbox = Outbox { call: Call::line(era, text)?, bytes: Vec::new(), sent: 0 };
    let mut inbox = Inbox { bytes: vec![0; INBOX], filled: 0, read: 0, searched: 0 };
    for id in slots.first_ids() {
        outbox.push(id);
    }
    let mut sample = None;
    let mut under_way = in_flight;
    while under_way > 0 {
        outbox.send(&mut server.input)?;
        wait(server, !outbox.is_empty())?;
        inbox.receive(&mut server.output.pipe)?;
        while let Some(line) = inbox.next_line() {
            let next = slots.answered(check_answer(line, text)?)?;
            window.count(1);
            if sample.is_none() { outbox.push(next) } else { under_way -= 1 }
        }
        inbox.keep_unfinished();
        if sample.is_none() {
            sample = window.poll()?;
        }
    }
    sample.context("the window never closed")
}

fn wait(server: &StdioServer, sending: bool) -> Result<()> {
    let readable = PollFd::new(&server.output.pipe, PollFlags::IN);
    let writable = PollFd::new(&server.input, PollFlags::OUT);
    let ready = if sending {
        poll(&mut [readable, writable], Some(&STALL))?
    } else {
        poll(&mut [readable], Some(&STALL))?
    };
    ensure!(ready > 0, "no answer for {} s", STALL.tv_sec);
    Ok(())
}

/// Requests waiting for room in the pipe.
struct Outbox {
    call: Call,
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    fn push(&mut self, id: u32) {
        self.bytes.extend_from_slice(self.call.with_id(id));
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn send(&mut self, pipe: &mut ChildStdin) -> Result<()> {
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match pipe.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("write to the server"),
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(())
    }
}

/// Answers as they come, complete lines first.
struct Inbox {
    bytes: Vec<u8>,
    filled: usize,
    /// Where the first line that was not yet given begins.
    read: usize,
    /// Up to where no further line end can be, so that a long line is searched once.
    searched: usize,
}

impl Inbox {
    fn receive(&mut self, pipe: &mut ChildStdout) -> Result<()> {
        let space = self.bytes.get_mut(self.filled..).unwrap_or_default();
        ensure!(!space.is_empty(), "an answer exceeds {INBOX} bytes");
        match pipe.read(space) {
            Ok(0) => bail!("the server closed its output"),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("read from the server"),
        }
        Ok(())
    }

    fn next_line(&mut self) -> Option<&[u8]> {
        let fresh = self.bytes.get(self.searched..self.filled)?;
        let Some(end) = memchr::memchr(b'\n', fresh) else {
            self.searched = self.filled;
            return None;
        };
        let line = self.read..self.searched + end;
        self.read = line.end + 1;
        self.searched = self.read;
        self.bytes.get(line)
    }

    fn keep_unfinished(&mut self) {
        self.bytes.copy_within(self.read..self.filled, 0);
        self.filled -= self.read;
        self.searched -= self.read;
        self.read = 0;
    }
}

/// The ids under way. An id names its slot, so an answer finds it without a search, in whatever order it comes.
struct Slots {
    current: Vec<u32>,
}

/// More than the largest number in flight.
const SLOTS: u32 = 512;

impl Slots {
    fn new(in_flight: usize) -> Result<Self> {
        let count = u32::try_from(in_flight)?;
        ensure!(count <= SLOTS, "at most {SLOTS} requests can be in flight");
        Ok(Self { current: (0..count).map(|slot| FIRST_ID + slot).collect() })
    }

    fn first_ids(&self) -> Vec<u32> {
        self.current.clone()
    }

    /// Takes the answer to `id`, and gives the id of the request that follows it.
    fn answered(&mut self, id: u32) -> Result<u32> {
        let slot = id.checked_sub(FIRST_ID).context("an id that was never sent")? % SLOTS;
        let current = self.current.get_mut(slot as usize).context("an id that was never sent")?;
        ensure!(*current == id, "an answer to {id}, which is not under way");
        *current = id + SLOTS;
        ensure!(*current <= 999_999_999, "the ids are used up");
        Ok(*current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_takes_each_response_once_and_in_any_order() {
        let mut slots = Slots::new(3).unwrap();
        let ids = slots.first_ids();
        let next = slots.answered(ids[2]).unwrap();
        assert_eq!(next, ids[2] + SLOTS);
        slots.answered(ids[2]).expect_err("the same answer twice");
        slots.answered(ids[0]).unwrap();
        slots.answered(next).unwrap();
        slots.answered(ids[0] + 3).expect_err("an id of no slot");
        slots.answered(1).expect_err("an id before the first");
    }

    #[test]
    fn lines_are_given_once_complete_and_the_rest_is_kept() {
        let mut inbox = Inbox { bytes: b"one\ntwo\nthr_____".to_vec(), filled: 11, read: 0, searched: 0 };
        assert_eq!(inbox.next_line(), Some(&b"one"[..]));
        assert_eq!(inbox.next_line(), Some(&b"two"[..]));
        assert_eq!(inbox.next_line(), None);
        inbox.keep_unfinished();
        assert_eq!((&inbox.bytes[..3], inbox.filled), (&b"thr"[..], 3));
        inbox.bytes[3..6].copy_from_slice(b"ee\n");
        inbox.filled = 6;
        assert_eq!(inbox.next_line(), Some(&b"three"[..]));
    }
}
