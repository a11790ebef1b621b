//! A peer that closes its side of the connection behind a request, and may still read.
//!
//! A peer that is gone has closed its side too, and its call has to be cancelled. A write shows the difference: the system of
//! a peer that is gone resets the connection. So something is written that means nothing to a client.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep};

use super::connection_io::{ConnectionIo, PeerEnd};
use super::response_head::ResponseLength;
use super::server_stream::ServerStream;

/// How long a half-closed connection is left alone: most requests are answered before.
const FIRST_PROBE: Duration = Duration::from_millis(100);

/// The interval between probes grows up to this.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How many of the first probes are interim responses, and every how many later: some clients refuse more than a few, and
/// at the probes between it is only checked whether the peer has reset the connection.
const FREQUENT_INTERIM_RESPONSES: u32 = 3;
const PROBES_PER_INTERIM_RESPONSE: u32 = 10;

/// What can be written to a half-closed connection without a meaning for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LivenessProbe {
    /// Nothing, and so the peer counts as gone.
    Unavailable,
    /// Nothing at this time: an event is only half written.
    Postponed,
    /// An interim response (RFC 9110, section 15.2), before the response begins.
    InterimResponse,
    /// A comment between two events of a stream.
    EventComment(ResponseLength),
}

impl LivenessProbe {
    /// Returns the bytes of a probe, after so many others.
    fn bytes(self, sent: u32) -> &'static [u8] {
        match self {
            Self::InterimResponse
                if sent < FREQUENT_INTERIM_RESPONSES || sent.is_multiple_of(PROBES_PER_INTERIM_RESPONSE) =>
            {
                b"HTTP/1.1 100 Continue\r\n\r\n"
            }
            Self::EventComment(ResponseLength::Chunked) => b"3\r\n:\n\n\r\n",
            Self::EventComment(_) => b":\n\n",
            Self::InterimResponse | Self::Postponed | Self::Unavailable => b"",
        }
    }
}

/// The state of a peer while a request of it is answered.
#[derive(Debug, Default)]
pub(super) struct PeerWatch {
    /// Goes off at the next probe; there is one from the half-close on.
    timer: Option<Pin<Box<Sleep>>>,
    probes: u32,
}

impl PeerWatch {
    /// Polls for the end of the peer, of which a half-closed connection alone is no sign.
    pub(super) fn poll_gone<K: ServerStream>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut ConnectionIo<K>,
        probe: LivenessProbe,
    ) -> Poll<()> {
        if self.timer.is_none() {
            let end = ready!(io.poll_closed(cx));
            if end == PeerEnd::Broken || probe == LivenessProbe::Unavailable {
                return Poll::Ready(());
            }
        } else if probe == LivenessProbe::Unavailable {
            // It was probed until the response began; nothing can be written from now on.
            return Poll::Ready(());
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(FIRST_PROBE)));
        loop {
            // See `ConnectionDeadlines::poll_expired`.
            ready!(pin!(unconstrained(timer.as_mut())).poll(cx));
            if io.probe(cx, probe.bytes(self.probes)) {
                return Poll::Ready(());
            }
            let interval = FIRST_PROBE.saturating_mul(1 << self.probes.min(10)).min(MAX_PROBE_INTERVAL);
            timer.as_mut().reset(Instant::now() + interval);
            self.probes = self.probes.saturating_add(1);
        }
    }
}
