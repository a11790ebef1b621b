//! Streams of calls that another process runs: their process reports when they grow, and the events are read from the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use trunkline_session::{BusDelivery, ProcessId, SessionId, StreamId};

use super::link::BusLink;
use super::message::BusMessage;
use super::receive::find_with_sessions;

/// How long a stream that no report comes of is not looked at.
const QUIET: Duration = Duration::from_secs(2);

/// The most streams of this process that others follow at one time. A stream beyond it is read every [`QUIET`].
const MAX_SERVED: usize = 1024;

/// A stream of a session.
type StreamKey = (SessionId, StreamId);

/// The streams that this process follows, and those of its own that others follow.
pub(crate) struct FollowedStreams {
    by_key: Mutex<HashMap<StreamKey, Weak<FollowState>>>,
    serving: Arc<Semaphore>,
}

impl Default for FollowedStreams {
    fn default() -> Self {
        Self { by_key: Mutex::default(), serving: Arc::new(Semaphore::new(MAX_SERVED)) }
    }
}

#[derive(Default)]
struct FollowState {
    grown: Notify,
    is_over: AtomicBool,
}

impl FollowedStreams {
    fn state(&self, key: StreamKey) -> Arc<FollowState> {
        let mut by_key = self.by_key.lock();
        if let Some(state) = by_key.get(&key).and_then(Weak::upgrade) {
            return state;
        }
        let state = Arc::new(FollowState::default());
        by_key.insert(key, Arc::downgrade(&state));
        state
    }

    pub(super) fn mark_grown(&self, key: StreamKey, is_over: bool) {
        let state = self.by_key.lock().get(&key).and_then(Weak::upgrade);
        if let Some(state) = state {
            state.is_over.fetch_or(is_over, Ordering::SeqCst);
            state.grown.notify_waiters();
        }
    }
}

/// A stream that a call on another process writes, until it is dropped.
pub(crate) struct FollowedStream {
    link: Arc<BusLink>,
    key: StreamKey,
    owner: ProcessId,
    state: Arc<FollowState>,
}

/// What happened to a followed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowEnd {
    /// There may be more events.
    Grown,
    /// Nothing writes it any more; the last events may not have been read yet.
    Over,
}

impl FollowedStream {
    /// Begins to follow a stream; `None` if its process has ended.
    pub(crate) async fn begin(
        link: &Arc<BusLink>,
        session: SessionId,
        stream: StreamId,
        owner: ProcessId,
    ) -> Option<Self> {
        let key = (session, stream);
        let followed = Self { link: link.clone(), key, owner, state: link.followed.state(key) };
        let message = BusMessage::Follow {
            session: session.to_string(),
            stream: stream.0,
            from: link.process().to_string(),
        };
        match link.send(owner, &message).await {
            Ok(BusDelivery::ProcessGone) => None,
            // Where the message may not have arrived, the stream is read from time to time.
            Ok(BusDelivery::Delivered) | Err(_) => Some(followed),
        }
    }

    /// Waits for more events, or until it is time to look for them.
    pub(crate) async fn wait(&self) -> FollowEnd {
        let grown = self.state.grown.notified();
        if self.state.is_over.load(Ordering::SeqCst) {
            return FollowEnd::Over;
        }
        if tokio::time::timeout(QUIET, grown).await.is_ok() {
            return FollowEnd::Grown;
        }
        match self.link.is_alive(self.owner).await {
            Ok(false) => FollowEnd::Over,
            Ok(true) | Err(_) => FollowEnd::Grown,
        }
    }

    /// Reports whether the process of the call has reported its end.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::SeqCst)
    }
}

impl Drop for FollowedStream {
    fn drop(&mut self) {
        let mut by_key = self.link.followed.by_key.lock();
        if by_key.get(&self.key).is_some_and(|state| state.strong_count() <= 1) {
            by_key.remove(&self.key);
        }
    }
}

/// Reports the growth of a stream of this process to one that follows it.
pub(super) fn serve(link: &Arc<BusLink>, (session, stream): StreamKey, from: ProcessId) {
    let Ok(permit) = link.followed.serving.clone().try_acquire_owned() else { return };
    let found = find_with_sessions(link, session);
    let link = link.clone();
    tokio::spawn(async move {
        let _permit = permit;
        loop {
            let state = found.as_ref().and_then(|(_, live)| live.stream(stream));
            let grown = state.as_ref().map(|state| state.appended.notified());
            // The stream may have been closed before the waiter was there.
            let is_over = found.as_ref().is_none_or(|(_, live)| live.stream(stream).is_none());
            if let Some((sessions, _)) = &found {
                sessions.events().flush().await;
            }
            let message = BusMessage::Grown { session: session.to_string(), stream: stream.0, is_over };
            let sent = link.send(from, &message).await;
            let (Some(grown), Ok(BusDelivery::Delivered), false) = (grown, sent, is_over) else { return };
            grown.await;
        }
    });
}
