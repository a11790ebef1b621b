use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use trunkline_protocol::sse;

use super::SseStreamGuard;
use super::inbox::SseChannel;
use crate::channel::ChannelServer;
use crate::http::open_channels::ChannelPlace;
use crate::http::stream::{PolledFrame, SseKeepAlive, frame};

/// The body of a stream: it owns the channel's driver and polls it.
///
/// While a client does not read, its channel is not polled: its calls pause, its inbox fills, and further posts are
/// refused.
pub(super) struct SseSessionBody {
    server: Option<ChannelServer<SseChannel>>,
    /// The `endpoint` event, with the path for posts; always the first.
    endpoint: Vec<u8>,
    keep_alive: SseKeepAlive,
    guard: SseStreamGuard,
    _place: ChannelPlace,
}

impl SseSessionBody {
    pub(super) fn new(
        server: ChannelServer<SseChannel>,
        endpoint: &str,
        keep_alive: Duration,
        (guard, place): (SseStreamGuard, ChannelPlace),
    ) -> Self {
        let mut first = Vec::new();
        sse::write_event(&mut first, Some("endpoint"), None, endpoint.as_bytes());
        Self {
            server: Some(server),
            endpoint: first,
            keep_alive: SseKeepAlive::new(keep_alive),
            guard,
            _place: place,
        }
    }
}

impl Body for SseSessionBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        if !this.endpoint.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.endpoint).into()))));
        }
        let Some(server) = &mut this.server else { return Poll::Ready(None) };
        let over = Pin::new(&mut *server).poll(cx).is_ready();
        if let Some(revision) = server.revision() {
            this.guard.revision.set(revision);
        }
        let mut out = server.channel_mut().take_events();
        if over {
            this.server = None;
        } else if out.is_empty() {
            std::task::ready!(this.keep_alive.poll(cx));
            sse::write_comment(&mut out, "");
        } else {
            this.keep_alive.reset();
        }
        frame(out)
    }
}
