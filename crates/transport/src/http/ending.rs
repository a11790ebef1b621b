use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use hyper::body::{Body as _, Incoming};

use super::link::Link;

/// A response that has said all that matters, and whose end is still on its way.
///
/// A stream of events ends after its last one, in a packet of its own as often as not. Closing the connection would be
/// simpler, and every call that is answered by a stream would cost a new one.
pub(super) struct Ending {
    incoming: Incoming,
    link: Link,
}

/// What became of it.
pub(super) enum Ended {
    /// It is over, and the connection is free.
    Free(Link),
    /// The end is not here yet.
    NotYet(Ending),
    /// There came something else, or the connection broke.
    Wrong,
}

impl Ending {
    pub(super) fn new(incoming: Incoming, link: Link) -> Self {
        Self { incoming, link }
    }

    /// Looks whether the end is here.
    pub(super) fn look(mut self) -> Ended {
        let mut cx = Context::from_waker(Waker::noop());
        let mut frame = Pin::new(&mut self.incoming).poll_frame(&mut cx);
        if frame.is_pending() {
            self.link.drive(&mut cx);
            frame = Pin::new(&mut self.incoming).poll_frame(&mut cx);
        }
        match frame {
            Poll::Pending => Ended::NotYet(self),
            Poll::Ready(None) => Ended::Free(self.link),
            Poll::Ready(Some(_)) => Ended::Wrong,
        }
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ending").field("link", &self.link).finish_non_exhaustive()
    }
}
