use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use trunkline_protocol::sse;

use super::Listed;
use super::inbox::SseChannel;
use crate::channel::ChannelServer;
use crate::http::stream::{KeepAlive, Polled, frame};
use crate::tally::Share;

/// The body of a stream: it owns the channel's driver and polls it.
///
/// A client that does not read is not polled for either: its calls stand still, its inbox fills, and what it posts is
/// refused.
pub(super) struct SessionStream {
    server: Option<ChannelServer<SseChannel>>,
    /// The event that says where to post; always the first.
    endpoint: Vec<u8>,
    keep_alive: KeepAlive,
    listed: Listed,
    _share: Share,
}

impl SessionStream {
    pub(super) fn new(
        server: ChannelServer<SseChannel>,
        endpoint: &str,
        keep_alive: Duration,
        (listed, share): (Listed, Share),
    ) -> Self {
        let mut first = Vec::new();
        sse::write_event(&mut first, Some("endpoint"), None, endpoint.as_bytes());
        Self {
            server: Some(server),
            endpoint: first,
            keep_alive: KeepAlive::new(keep_alive),
            listed,
            _share: share,
        }
    }
}

impl Body for SessionStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if !this.endpoint.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.endpoint).into()))));
        }
        let Some(server) = &mut this.server else { return Poll::Ready(None) };
        let over = Pin::new(&mut *server).poll(cx).is_ready();
        if let Some(revision) = server.revision() {
            this.listed.spoken.set(revision);
        }
        let mut out = server.channel_mut().take();
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
