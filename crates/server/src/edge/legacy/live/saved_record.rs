use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;
use trunkline_protocol::Refusal;
use trunkline_session::{SessionRecord, SessionStore, StoreError};

use super::super::sessions::refuse;
use super::LiveSession;
use crate::server_core::{ServerCore, now};

/// The store of a session's record.
pub(super) struct SavedRecord {
    store: Arc<dyn SessionStore>,
    /// Counts the changes to the record.
    changes: AtomicU64,
    /// Held while the record is written, so that an earlier form never replaces a later one.
    writing: Mutex<()>,
}

/// The record of a session in its store. A session that ends with its connection has none.
impl LiveSession {
    /// Sets the store that the record is saved in.
    pub(crate) fn saved_in(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.saved = Some(SavedRecord { store, changes: AtomicU64::new(0), writing: Mutex::new(()) });
        self
    }

    /// Returns how often the record has changed; a request that changes it saves it before it is answered.
    pub(crate) fn record_changes(&self) -> u64 {
        self.saved.as_ref().map_or(0, |saved| saved.changes.load(Ordering::Relaxed))
    }

    pub(super) fn mark_changed(&self) {
        if let Some(saved) = &self.saved {
            saved.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Saves the record as it is now.
    pub(crate) async fn save(&self) -> Result<(), Refusal> {
        let Some(saved) = &self.saved else { return Ok(()) };
        let _writing = saved.writing.lock().await;
        let updated = saved.store.update(self.current_record(), now()).await;
        updated.map(drop).map_err(|error| match error {
            StoreError::TooLarge => {
                Refusal::INVALID_PARAMS.with_message("the session watches too many resources")
            }
            error => refuse(&error),
        })
    }

    fn current_record(&self) -> SessionRecord {
        let subscription = self.lock().subscription.clone();
        SessionRecord {
            log_level: self.level(),
            subscriptions: subscription
                .map_or_else(BTreeSet::new, |subscription| subscription.watched_uris()),
            ..self.record.clone()
        }
    }

    /// Subscribes the client to a resource and saves that.
    pub(crate) async fn watch_resource(&self, core: &ServerCore, uri: &str) -> Result<(), Refusal> {
        let subscription = self.subscription(&*core.handler);
        subscription.watch_resource(uri, &core.watched_uris)?;
        self.save().await.inspect_err(|_| subscription.unwatch_resource(uri))
    }

    /// Ends the client's subscription to a resource.
    pub(crate) fn unwatch_resource(&self, core: &ServerCore, uri: &str) {
        self.subscription(&*core.handler).unwatch_resource(uri);
        self.mark_changed();
    }

    /// Subscribes the client of a restored session to its resources again. The handler learns of them as of any other
    /// change to what is watched, so that an upstream that is unavailable does not end a subscription.
    pub(crate) fn watch_again(&self, core: &ServerCore, uris: BTreeSet<String>) {
        for uri in uris {
            let watched = self.subscription(&*core.handler).watch_resource(&uri, &core.watched_uris);
            if let Err(refusal) = watched {
                tracing::warn!(session = %self.id().short(), %refusal, "a subscription is not restored");
            }
        }
    }
}
