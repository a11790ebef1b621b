use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use trunkline_protocol::Refusal;
use trunkline_session::{RecordChange, RecordVersion, SessionRecord, SessionStore, StoreError};

use super::super::sessions::refuse;
use super::{LiveSession, NO_LEVEL};
use crate::bus::{BusLink, BusMessage};
use crate::server_core::{ServerCore, now};

/// The store of a session's record.
pub(super) struct SavedRecord {
    store: Arc<dyn SessionStore>,
    /// Learns of each change, where other processes share the session.
    link: Option<Arc<BusLink>>,
    /// Counts the changes to the record.
    changes: AtomicU64,
    /// The changes that are not saved yet, one for the log level and one for each resource.
    unsaved: Mutex<Vec<RecordChange>>,
    /// The version of the record that was loaded last.
    version: Mutex<Option<RecordVersion>>,
    /// Held while the record is changed or loaded, so that an earlier form never replaces a later one.
    writing: AsyncMutex<()>,
}

/// The record of a session in its store. A session that ends with its connection has none.
impl LiveSession {
    /// Sets the store that the record is saved in.
    pub(crate) fn saved_in(
        mut self,
        store: Arc<dyn SessionStore>,
        link: Option<&Arc<BusLink>>,
        version: Option<RecordVersion>,
    ) -> Self {
        self.saved = Some(SavedRecord {
            store,
            link: link.cloned(),
            changes: AtomicU64::new(0),
            unsaved: Mutex::default(),
            version: Mutex::new(version),
            writing: AsyncMutex::new(()),
        });
        self.shared_over(link)
    }

    /// Returns how often the record has changed; a request that changes it saves it before it is answered.
    pub(crate) fn record_changes(&self) -> u64 {
        self.saved.as_ref().map_or(0, |saved| saved.changes.load(Ordering::Relaxed))
    }

    pub(super) fn mark_changed(&self, change: RecordChange) {
        if let Some(saved) = &self.saved {
            add_change(&mut saved.unsaved.lock(), change);
            saved.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Saves the changes to the record.
    pub(crate) async fn save(&self) -> Result<(), Refusal> {
        let Some(saved) = &self.saved else { return Ok(()) };
        let _writing = saved.writing.lock().await;
        let changes = std::mem::take(&mut *saved.unsaved.lock());
        if changes.is_empty() {
            return Ok(());
        }
        let changed = saved.store.change(self.id(), self.principal(), &changes, now()).await;
        match changed {
            Ok(_) => {
                if let Some(link) = &saved.link {
                    link.publish_soon(BusMessage::RecordChanged { session: self.id().to_string() });
                }
                Ok(())
            }
            Err(StoreError::TooLarge) => {
                Err(Refusal::INVALID_PARAMS.with_message("the session watches too many resources"))
            }
            Err(error) => {
                // The next change is saved with these.
                let mut unsaved = saved.unsaved.lock();
                let later = std::mem::replace(&mut *unsaved, changes);
                later.into_iter().for_each(|change| add_change(&mut unsaved, change));
                Err(refuse(&error))
            }
        }
    }

    /// Returns the version of the record that was loaded last.
    pub(crate) fn record_version(&self) -> Option<RecordVersion> {
        self.saved.as_ref().and_then(|saved| *saved.version.lock())
    }

    /// Takes over what other processes have changed in the record, unless this process is changing it.
    pub(crate) fn load(&self, core: &ServerCore, record: &SessionRecord, version: Option<RecordVersion>) {
        let Some(saved) = &self.saved else { return };
        let Ok(_loading) = saved.writing.try_lock() else { return };
        if !saved.unsaved.lock().is_empty() {
            return;
        }
        let level = record.log_level.map_or(NO_LEVEL, |level| level as u8);
        self.level.store(level, Ordering::Relaxed);
        let watched = self.watched_uris();
        if watched != record.subscriptions {
            let subscription = self.lock().subscription.clone();
            if let Some(subscription) = &subscription {
                watched.difference(&record.subscriptions).for_each(|uri| subscription.unwatch_resource(uri));
            }
            self.watch_again(core, record.subscriptions.difference(&watched).cloned().collect());
        }
        *saved.version.lock() = version;
    }

    /// Subscribes the client to a resource and saves that.
    pub(crate) async fn watch_resource(&self, core: &ServerCore, uri: &str) -> Result<(), Refusal> {
        let subscription = self.subscription(&*core.handler);
        // Before it is watched, so that a record which is loaded meanwhile does not end that.
        self.mark_changed(RecordChange::Subscribe(uri.to_owned()));
        let watched = subscription.watch_resource(uri, self.party(), &core.watched_uris);
        if let Err(refusal) = watched {
            self.discard_change(uri);
            return Err(refusal);
        }
        self.save().await.inspect_err(|_| {
            self.discard_change(uri);
            subscription.unwatch_resource(uri);
        })
    }

    fn discard_change(&self, uri: &str) {
        if let Some(saved) = &self.saved {
            saved.unsaved.lock().retain(|change| *change != RecordChange::Subscribe(uri.to_owned()));
        }
    }

    /// Ends the client's subscription to a resource.
    pub(crate) fn unwatch_resource(&self, core: &ServerCore, uri: &str) {
        self.mark_changed(RecordChange::Unsubscribe(uri.to_owned()));
        self.subscription(&*core.handler).unwatch_resource(uri);
    }

    /// Subscribes the client of a restored session to its resources again. The handler learns of them as of any other
    /// change to what is watched, so that an upstream that is unavailable does not end a subscription.
    pub(crate) fn watch_again(&self, core: &ServerCore, uris: BTreeSet<String>) {
        for uri in uris {
            let watched =
                self.subscription(&*core.handler).watch_resource(&uri, self.party(), &core.watched_uris);
            if let Err(refusal) = watched {
                tracing::warn!(session = %self.id().short(), %refusal, "a subscription is not restored");
            }
        }
    }
}

/// Adds a change in place of an earlier one of the same kind, so that what is not saved stays bounded.
fn add_change(changes: &mut Vec<RecordChange>, change: RecordChange) {
    let uri = |change: &RecordChange| match change {
        RecordChange::Subscribe(uri) | RecordChange::Unsubscribe(uri) => Some(uri.clone()),
        _ => None,
    };
    changes.retain(|earlier| uri(earlier) != uri(&change));
    if changes.len() >= MAX_UNSAVED {
        changes.remove(0);
    }
    changes.push(change);
}

/// The most changes of a session that wait for its store.
const MAX_UNSAVED: usize = 2048;
