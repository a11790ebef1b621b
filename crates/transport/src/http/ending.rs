use std::task::{Context, Poll, Waker};

use super::link::Link;
use crate::http1::{Framing, Taken};

/// What a response may say beyond all that matters. Many servers say `Accepted` once more to what they have accepted.
const MOST_UNREAD: usize = 1024;

/// A response that has said all that matters, and whose end is still on its way.
///
/// A stream of events ends after its last one, in a packet of its own as often as not. Closing the connection would be
/// simpler, and every call that is answered by a stream would cost a new one.
#[derive(Debug)]
pub(super) struct Ending {
    framing: Framing,
    link: Box<Link>,
    /// How much it has said that nobody reads.
    unread: usize,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It is over, and the connection is free.
    Free,
    /// The end is not here yet.
    NotYet,
    /// There is too much left, or the connection broke.
    Wrong,
}

impl Ending {
    pub(super) fn new(framing: Framing, link: Box<Link>) -> Self {
        Self { framing, link, unread: 0 }
    }

    /// Looks whether the end is here.
    pub(super) fn look(&mut self) -> Ended {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match self.framing.take(self.link.incoming()) {
                Ok(Taken::End) => return Ended::Free,
                Ok(Taken::More) if self.framing.at_least() > (MOST_UNREAD - self.unread) as u64 => {
                    return Ended::Wrong;
                }
                Ok(Taken::More) => match self.link.poll_look(&mut cx) {
                    Poll::Pending => return Ended::NotYet,
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Ended::Wrong,
                },
                Ok(Taken::Data(data)) if self.unread + data.len() <= MOST_UNREAD => self.unread += data.len(),
                Ok(Taken::Data(_)) | Err(_) => return Ended::Wrong,
            }
        }
    }

    /// Returns the connection, once it is free.
    pub(super) fn into_link(self) -> Box<Link> {
        self.link
    }

    /// Gives back the room that a large response needed, since its end may be long in coming.
    pub(super) fn rest(&mut self) {
        self.link.rest();
    }
}
