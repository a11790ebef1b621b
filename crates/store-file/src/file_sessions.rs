use std::sync::Arc;
use std::time::Duration;

use trunkline_session::{
    BoxFuture, EventStore as _, Principal, SessionId, SessionRecord, SessionStore, StoreError, Timestamp,
};

use crate::clock_granularity;
use crate::store_core::{OpenStore, StoreCore};

/// The sessions in a file.
///
/// A change is acknowledged when it is on disk. The time of a session's last use is written at most once per sixteenth of
/// the idle limit, and never waited for; after a restart a session is given that much more time.
#[derive(Clone, Debug)]
pub struct FileSessions {
    store: Arc<OpenStore>,
}

impl FileSessions {
    pub(crate) fn new(store: Arc<OpenStore>) -> Self {
        Self { store }
    }

    fn core(&self) -> &StoreCore {
        &self.store.core
    }

    async fn save(&self, id: SessionId) -> Result<(), StoreError> {
        self.core().queue.mark(|dirty| dirty.sessions.extend([id]));
        self.core().queue.commit().await
    }

    /// Marks the row of a session with a time of use that has moved on by more than the granularity.
    fn mark_used(&self, id: SessionId, before: Option<Timestamp>, now: Timestamp) {
        let period =
            |at: Timestamp| at.since(Timestamp(0)).as_millis() / self.granularity().as_millis().max(1);
        if before.is_some_and(|before| period(before) < period(now)) {
            self.core().queue.mark(|dirty| dirty.sessions.extend([id]));
        }
    }

    fn granularity(&self) -> Duration {
        clock_granularity(self.core().memory.sessions.limits().idle)
    }

    /// Drops the events of removed sessions in the transaction that removes the sessions.
    fn mark_removed(&self, removed: &[SessionId]) {
        for id in removed {
            self.core().memory.events.forget(*id);
        }
        self.core().mark_journals();
        self.core().queue.mark(|dirty| dirty.sessions.extend(removed));
    }
}

impl SessionStore for FileSessions {
    fn create(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.core().queue.check()?;
            let (id, principal) = (record.id, record.principal.clone());
            self.core().memory.sessions.create(record, now).await?;
            let saved = self.save(id).await;
            if saved.is_err() {
                // The client never learns of the session.
                self.core().memory.sessions.delete(id, &principal).await?;
            }
            saved
        })
    }

    fn get<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>, StoreError>> {
        Box::pin(async move {
            let sessions = &self.core().memory.sessions;
            let before = sessions.used_at(id);
            let found = sessions.get(id, principal, now).await?;
            if found.is_some() {
                self.mark_used(id, before, now);
            }
            Ok(found)
        })
    }

    fn update(&self, record: SessionRecord, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            self.core().queue.check()?;
            let id = record.id;
            let updated = self.core().memory.sessions.update(record, now).await?;
            if updated {
                self.save(id).await?;
            }
            Ok(updated)
        })
    }

    fn touch(&self, id: SessionId, now: Timestamp) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let sessions = &self.core().memory.sessions;
            let before = sessions.used_at(id);
            let touched = sessions.touch(id, now).await?;
            if touched {
                self.mark_used(id, before, now);
            }
            Ok(touched)
        })
    }

    fn delete<'a>(
        &'a self,
        id: SessionId,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.core().queue.check()?;
            let deleted = self.core().memory.sessions.delete(id, principal).await?;
            if deleted {
                self.mark_removed(&[id]);
                self.core().queue.commit().await?;
            }
            Ok(deleted)
        })
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move {
            let expired = self.core().memory.sessions.expire(now).await?;
            // Not waited for: a session that is over stays over, whether or not its row is gone.
            if !expired.is_empty() {
                self.mark_removed(&expired);
            }
            Ok(expired)
        })
    }

    fn count(&self) -> usize {
        self.core().memory.sessions.count()
    }

    fn kind(&self) -> &'static str {
        "file"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<SessionRecord>, StoreError>> {
        self.core().memory.sessions.list(principal, now)
    }

    fn list_all(&self, most: usize, now: Timestamp) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.core().memory.sessions.list_all(most, now)
    }
}
