use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use trunkline_hub::events::EventSubscription;
use trunkline_server::Shutdown;

use crate::limits::{CHUNK_BYTES, KEEP_ALIVE};
use crate::line_body::LineBody;
use crate::sessions::ConsoleSession;

/// The streams that are open, up to a limit.
#[derive(Clone, Debug)]
pub(crate) struct OpenStreams {
    open: Arc<AtomicUsize>,
    most: usize,
}

/// A stream that counts, until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit(Arc<AtomicUsize>);

impl OpenStreams {
    pub(crate) fn new(most: usize) -> Self {
        Self { open: Arc::default(), most }
    }

    /// Counts a further stream; `None` beyond the limit.
    pub(crate) fn admit(&self) -> Option<StreamPermit> {
        let permit = StreamPermit(self.open.clone());
        (self.open.fetch_add(1, Ordering::Relaxed) < self.most).then_some(permit)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes a response of events, one line of JSON each, until the session ends or the hub shuts down.
pub(crate) fn event_lines(
    subscription: EventSubscription,
    session: ConsoleSession,
    shutdown: Shutdown,
    permit: StreamPermit,
) -> LineBody {
    let end = Box::pin(async move {
        tokio::select! {
            () = session.over() => {}
            () = shutdown.draining() => {}
        }
    });
    LineBody::new(stream::unfold((subscription, end, permit), async |(mut subscription, mut end, permit)| {
        let chunk = tokio::select! {
            biased;
            () = &mut end => return None,
            first = subscription.next() => gather(&first, &mut subscription),
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b"\n"),
        };
        Some((chunk, (subscription, end, permit)))
    }))
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
