//! Changes to a session's record that several processes may make at once.

use trunkline_protocol::LoggingLevel;

use crate::SessionRecord;

/// One change to a session's record, which leaves the others alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordChange {
    /// The client has set its log level.
    LogLevel(LoggingLevel),
    /// The client subscribes to a resource.
    Subscribe(String),
    /// The client no longer subscribes to a resource.
    Unsubscribe(String),
}

impl SessionRecord {
    /// Applies a change.
    pub fn apply(&mut self, change: &RecordChange) {
        match change {
            RecordChange::LogLevel(level) => self.log_level = Some(*level),
            RecordChange::Subscribe(uri) => {
                self.subscriptions.insert(uri.clone());
            }
            RecordChange::Unsubscribe(uri) => {
                self.subscriptions.remove(uri);
            }
        }
    }
}

/// Names one form of a record: two forms have the same version only if they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordVersion(pub u64);

/// A session that was found in its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRefresh {
    /// The record; `None` if it has the version that the caller knows.
    pub record: Option<SessionRecord>,
    /// The version of the record, in a store that has versions.
    pub version: Option<RecordVersion>,
}
