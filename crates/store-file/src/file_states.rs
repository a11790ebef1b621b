use std::sync::Arc;
use std::time::Duration;

use trunkline_protocol::RawJson;
use trunkline_session::{
    BoxFuture, Principal, ReplaceOutcome, StateHandle, StateRecord, StateStore, StoreError, StoredState,
    Timestamp,
};

use crate::clock_granularity;
use crate::store_core::{OpenStore, StoreCore};

/// The handler state in a file, acknowledged and timed as [`FileSessions`](crate::FileSessions) are.
#[derive(Clone, Debug)]
pub struct FileStates {
    store: Arc<OpenStore>,
}

impl FileStates {
    pub(crate) fn new(store: Arc<OpenStore>) -> Self {
        Self { store }
    }

    fn core(&self) -> &StoreCore {
        &self.store.core
    }

    async fn save(&self, handle: StateHandle) -> Result<(), StoreError> {
        self.core().mark_journals();
        self.core().queue.mark(|dirty| dirty.states.extend([handle]));
        self.core().queue.commit().await
    }

    fn granularity(&self) -> Duration {
        clock_granularity(self.core().memory.states.idle_limit())
    }
}

impl StateStore for FileStates {
    fn create(&self, record: StateRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.core().queue.check()?;
            let handle = record.handle;
            self.core().memory.states.create(record, now).await?;
            let saved = self.save(handle).await;
            if saved.is_err() {
                self.core().memory.states.forget(handle);
            }
            saved
        })
    }

    fn get<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredState>, StoreError>> {
        Box::pin(async move {
            let states = &self.core().memory.states;
            let before = states.used_at(handle);
            let found = states.get(handle, principal, now).await?;
            let period =
                |at: Timestamp| at.since(Timestamp(0)).as_millis() / self.granularity().as_millis().max(1);
            if found.is_some() && before.is_some_and(|before| period(before) < period(now)) {
                self.core().queue.mark(|dirty| dirty.states.extend([handle]));
            }
            Ok(found)
        })
    }

    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: RawJson,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<ReplaceOutcome, StoreError>> {
        Box::pin(async move {
            self.core().queue.check()?;
            let outcome = self.core().memory.states.replace(handle, principal, expected, value, now).await?;
            if outcome == ReplaceOutcome::Done {
                self.save(handle).await?;
            }
            Ok(outcome)
        })
    }

    fn forget(&self, handle: StateHandle) {
        self.core().memory.states.forget(handle);
        self.core().mark_journals();
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.core().memory.states.expire(now).await?;
            self.core().mark_journals();
            Ok(())
        })
    }

    fn count(&self) -> usize {
        self.core().memory.states.count()
    }
}
