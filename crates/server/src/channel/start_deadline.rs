//! The time that a peer has to begin: an HTTP+SSE stream or a WebSocket that nothing is requested on takes a place that
//! another client could use.

use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::Sleep;
use trunkline_transport::Channel;

use super::ChannelServer;
use crate::metrics::process;

/// The deadline for the first request; `None` once it was read, or where there is none.
pub(super) type StartDeadline = Option<Pin<Box<Sleep>>>;

impl<C: Channel> ChannelServer<C> {
    /// Sets how long the peer may take to initialize a session, or to send a modern request.
    pub(crate) fn with_start_timeout(mut self, within: Duration) -> Self {
        self.start_deadline = Some(Box::pin(tokio::time::sleep(within)));
        self
    }

    /// Checks that the peer has begun in time.
    ///
    /// # Errors
    /// It has not.
    pub(super) fn check_start(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(deadline) = &mut self.start_deadline else { return Ok(()) };
        if deadline.as_mut().poll(cx).is_pending() {
            return Ok(());
        }
        self.start_deadline = None;
        process::count_unused_channel();
        Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not send a first request in time"))
    }
}
