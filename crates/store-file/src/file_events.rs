use std::sync::Arc;

use trunkline_session::{
    BoxFuture, EventId, EventReplay, EventStore, SessionId, StoreError, StoreReply, StreamEvent, Timestamp,
};

use crate::store_core::{OpenStore, StoreCore};

/// The events in a file. An append is done when the event is on disk; all appends during one commit share the next one.
#[derive(Clone, Debug)]
pub struct FileEvents {
    store: Arc<OpenStore>,
}

impl FileEvents {
    pub(crate) fn new(store: Arc<OpenStore>) -> Self {
        Self { store }
    }

    fn core(&self) -> &StoreCore {
        &self.store.core
    }
}

impl EventStore for FileEvents {
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()> {
        if let Err(error) = self.core().queue.check() {
            return StoreReply::Ready(Err(error));
        }
        let appended = self.core().memory.events.append(session, event, now);
        self.core().mark_journals();
        match appended {
            StoreReply::Ready(Ok(())) => StoreReply::Pending(self.core().queue.commit()),
            other => other,
        }
    }

    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>> {
        Box::pin(async move {
            let replay = self.core().memory.events.replay(session, after, now).await?;
            // An id is sent only after its event is on disk, and an event that is in memory may not be yet.
            if matches!(&replay, EventReplay::Events(events) if !events.is_empty()) {
                self.core().queue.commit().await?;
            }
            Ok(replay)
        })
    }

    fn forget(&self, session: SessionId) {
        self.core().memory.events.forget(session);
        self.core().mark_journals();
    }

    fn expire(&self, now: Timestamp) {
        self.core().memory.events.expire(now);
        self.core().mark_journals();
    }
}
