use std::sync::Arc;

use trunkline_protocol::sse;
use trunkline_session::{EventId, StreamEvent as StoredEvent};

use super::endpoint::HttpServiceInner;
use super::legacy::render_events;
use super::stream::write_message;
use crate::edge::legacy::LiveSession;

/// The stream of a call that a client has resumed: stored events first, and what its call stores later.
pub(super) struct ResumedStream {
    pub(super) inner: Arc<HttpServiceInner>,
    pub(super) session: Arc<LiveSession>,
    /// The last event that the client has.
    pub(super) last: EventId,
    /// The events after it that are known.
    pub(super) events: Vec<StoredEvent>,
    pub(super) is_over: bool,
}

impl ResumedStream {
    /// Waits for the next chunk; `None` after the last.
    pub(super) async fn next_chunk(mut self) -> Option<(Vec<u8>, Self)> {
        loop {
            if self.is_over {
                return None;
            }
            if let Some(newest) = self.events.last() {
                self.last = newest.id;
                let chunk = render_events(&std::mem::take(&mut self.events));
                if chunk.is_empty() {
                    continue;
                }
                return Some((chunk, self));
            }
            let Some(state) = self.session.stream(self.last.stream) else {
                // The call is over; its last message may have been stored between the two replays.
                self.events = self.inner.replay(&self.session, self.last).await.ok()?;
                if self.events.is_empty() {
                    self.is_over = true;
                    let error = self.inner.lost_call_error(&self.session, self.last.stream).await?;
                    let mut chunk = Vec::new();
                    write_message(&mut chunk, None, &error);
                    return Some((chunk, self));
                }
                continue;
            };
            let grown = state.appended.notified();
            self.events = self.inner.replay(&self.session, self.last).await.ok()?;
            let keep_alive = self.inner.core.limits.keep_alive;
            if self.events.is_empty() && tokio::time::timeout(keep_alive, grown).await.is_err() {
                let mut comment = Vec::new();
                sse::write_comment(&mut comment, "");
                return Some((comment, self));
            }
        }
    }
}
