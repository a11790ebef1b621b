use std::sync::Arc;

use tokio::time::Instant;
use trunkline_protocol::sse;
use trunkline_session::{EventId, StreamEvent as StoredEvent};

use super::endpoint::HttpServiceInner;
use super::legacy::render_events;
use super::stream::write_message;
use crate::bus::{FollowEnd, FollowedStream};
use crate::edge::legacy::LiveSession;

/// The stream of a call that a client has resumed: stored events first, and what its call stores later.
pub(super) struct ResumedStream {
    inner: Arc<HttpServiceInner>,
    session: Arc<LiveSession>,
    /// The last event that the client has.
    last: EventId,
    /// The events after it that are known.
    events: Vec<StoredEvent>,
    is_over: bool,
    /// The stream of the call, if another process runs it.
    followed: Option<FollowedStream>,
    /// When the client was last sent anything.
    sent_at: Instant,
}

impl ResumedStream {
    pub(super) fn new(
        inner: Arc<HttpServiceInner>,
        session: Arc<LiveSession>,
        last: EventId,
        events: Vec<StoredEvent>,
    ) -> Self {
        Self { inner, session, last, events, is_over: false, followed: None, sent_at: Instant::now() }
    }

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
                self.sent_at = Instant::now();
                return Some((chunk, self));
            }
            let keep_alive = self.inner.core.limits.keep_alive;
            let Some(state) = self.session.stream(self.last.stream) else {
                // The call is over, or another process runs it; its last message may have been stored between two replays.
                let is_running = self.is_running_elsewhere().await;
                self.events = self.inner.replay(&self.session, self.last).await.ok()?;
                if self.events.is_empty() && !is_running {
                    self.is_over = true;
                    let error = self.inner.lost_call_error(&self.session, self.last.stream).await?;
                    let mut chunk = Vec::new();
                    write_message(&mut chunk, None, &error);
                    return Some((chunk, self));
                }
                if self.events.is_empty() && self.sent_at.elapsed() >= keep_alive {
                    return Some(self.comment());
                }
                continue;
            };
            let grown = state.appended.notified();
            self.events = self.inner.replay(&self.session, self.last).await.ok()?;
            if self.events.is_empty() && tokio::time::timeout(keep_alive, grown).await.is_err() {
                return Some(self.comment());
            }
        }
    }

    fn comment(mut self) -> (Vec<u8>, Self) {
        let mut comment = Vec::new();
        sse::write_comment(&mut comment, "");
        self.sent_at = Instant::now();
        (comment, self)
    }

    /// Waits until the stream of a call on another process may have grown; returns false if there is no such call any more.
    async fn is_running_elsewhere(&mut self) -> bool {
        let Some(link) = &self.inner.core.bus else { return false };
        if self.session.is_ended() {
            return false;
        }
        if let Some(followed) = &self.followed {
            return !followed.is_over() && followed.wait().await == FollowEnd::Grown;
        }
        let (session, stream) = (&self.session, self.last.stream);
        let Some(owner) = self.inner.owner_of_stream(session, stream).await else { return false };
        self.followed = FollowedStream::begin(link, session.id(), stream, owner).await;
        self.followed.is_some()
    }
}
