use std::task::{Context, Poll, Waker};

use super::client_connection::ClientConnection;
use super::connect::ClientStream;
use crate::{BodyFraming, BodyRead};

/// How many bytes of a response are discarded. Many servers send `Accepted` as the body of a 202.
const MAX_DISCARDED_BYTES: usize = 1024;

/// A response of which all that matters was read, and the end has not arrived.
///
/// A stream of events ends after its last one, in a packet of its own as often as not. Closing the connection would be
/// simpler, and every call that is answered by a stream would cost a new one.
#[derive(Debug)]
pub(super) struct DrainingResponse<S> {
    framing: BodyFraming,
    connection: Box<ClientConnection<S>>,
    /// The bytes that were discarded.
    discarded: usize,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainStatus {
    /// It is over, and the connection is free.
    Done,
    /// The end is not here yet.
    Pending,
    /// There is too much left, or the connection broke.
    Failed,
}

impl<S: ClientStream> DrainingResponse<S> {
    pub(super) fn new(framing: BodyFraming, connection: Box<ClientConnection<S>>) -> Self {
        Self { framing, connection, discarded: 0 }
    }

    /// Looks whether the end is here.
    pub(super) fn check(&mut self) -> DrainStatus {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match self.framing.read(self.connection.buffered()) {
                Ok(BodyRead::End) => return DrainStatus::Done,
                Ok(BodyRead::NeedMore)
                    if self.framing.min_remaining() > (MAX_DISCARDED_BYTES - self.discarded) as u64 =>
                {
                    return DrainStatus::Failed;
                }
                Ok(BodyRead::NeedMore) => match self.connection.poll_read_available(&mut cx) {
                    Poll::Pending => return DrainStatus::Pending,
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return DrainStatus::Failed,
                },
                Ok(BodyRead::Data(data)) if self.discarded + data.len() <= MAX_DISCARDED_BYTES => {
                    self.discarded += data.len();
                }
                Ok(BodyRead::Data(_)) | Err(_) => return DrainStatus::Failed,
            }
        }
    }

    /// Returns the connection, once it is free.
    pub(super) fn into_connection(self) -> Box<ClientConnection<S>> {
        self.connection
    }

    /// Gives back the room that a large response needed, since its end may be long in coming.
    pub(super) fn shrink(&mut self) {
        self.connection.shrink();
    }
}
