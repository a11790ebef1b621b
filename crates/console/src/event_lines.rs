use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream;
use http_body::{Body, Frame};
use trunkline_hub::events::EventSubscription;
use trunkline_server::Shutdown;

use crate::limits::{CHUNK_BYTES, KEEP_ALIVE, MAX_STREAMS};
use crate::sessions::ConsoleSession;

/// The event streams that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenStreams(Arc<AtomicUsize>);

/// A stream that counts, until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit(Arc<AtomicUsize>);

impl OpenStreams {
    /// Counts a further stream; `None` beyond the limit.
    pub(crate) fn admit(&self) -> Option<StreamPermit> {
        let permit = StreamPermit(self.0.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < MAX_STREAMS).then_some(permit)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response of events, one line of JSON each, until the session ends or the hub shuts down.
pub(crate) struct EventLinesBody(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl EventLinesBody {
    pub(crate) fn new(
        subscription: EventSubscription,
        session: ConsoleSession,
        shutdown: Shutdown,
        permit: StreamPermit,
    ) -> Self {
        let end = Box::pin(async move {
            tokio::select! {
                () = session.over() => {}
                () = shutdown.draining() => {}
            }
        });
        let lines =
            stream::unfold((subscription, end, permit), async |(mut subscription, mut end, permit)| {
                let chunk = tokio::select! {
                    biased;
                    () = &mut end => return None,
                    first = subscription.next() => gather(&first, &mut subscription),
                    () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b"\n"),
                };
                Some((chunk, (subscription, end, permit)))
            });
        // The response begins at once, even if nothing happens for a while.
        let begin = stream::iter([Bytes::from_static(b"\n")]);
        Self(Box::pin(stream::StreamExt::chain(begin, lines)))
    }
}

/// Joins an event with those that are there already, so that a busy hub costs the page few reads.
fn gather(first: &Bytes, subscription: &mut EventSubscription) -> Bytes {
    let mut chunk = BytesMut::with_capacity(first.len() + 1);
    chunk.extend_from_slice(first);
    chunk.extend_from_slice(b"\n");
    while chunk.len() < CHUNK_BYTES {
        let Some(event) = subscription.try_next() else { break };
        chunk.extend_from_slice(event.to_line().as_bytes());
        chunk.extend_from_slice(b"\n");
    }
    chunk.freeze()
}

impl Body for EventLinesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.as_mut().poll_next(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
