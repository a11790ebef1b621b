use std::sync::{Arc, Weak};

use dashmap::DashMap;
use trunkline_protocol::RawJson;
use trunkline_session::{Principal, SessionId, SessionRecord};

use super::ChannelActivity;
use crate::edge::legacy::{LiveSession, SessionSummary, SessionTransport};

/// The legacy sessions of the channels of one server, for operators. They are in no store, since each ends with its connection,
/// and so they leave nothing behind when the process ends. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ChannelSessions(Arc<DashMap<SessionId, ChannelSession>>);

struct ChannelSession {
    session: Weak<LiveSession>,
    transport: SessionTransport,
    /// Closes the channel, where its owner counts channels.
    activity: Option<Arc<ChannelActivity>>,
}

/// The place of one session in the list, until it is dropped.
pub(super) struct ListedSession {
    sessions: ChannelSessions,
    id: SessionId,
}

impl ChannelSessions {
    pub(super) fn add(
        &self,
        session: &Arc<LiveSession>,
        transport: SessionTransport,
        activity: Option<Arc<ChannelActivity>>,
    ) -> ListedSession {
        let id = session.id();
        self.0.insert(id, ChannelSession { session: Arc::downgrade(session), transport, activity });
        ListedSession { sessions: self.clone(), id }
    }

    /// Returns up to `most` sessions, in no order.
    pub(crate) fn summaries(&self, most: usize) -> Vec<SessionSummary> {
        self.0.iter().filter_map(|entry| entry.summary()).take(most).collect()
    }

    /// Closes the channel of a session of this principal; returns whether there is one that can be closed.
    pub(crate) fn end(&self, id: SessionId, principal: &Principal) -> bool {
        let Some(entry) = self.0.get(&id) else { return false };
        let is_meant = entry.session.upgrade().is_some_and(|session| session.principal() == principal);
        match entry.activity.clone().filter(|_| is_meant) {
            Some(activity) => {
                // The task of the channel removes the entry.
                drop(entry);
                activity.end();
                true
            }
            None => false,
        }
    }
}

impl ChannelSession {
    fn summary(&self) -> Option<SessionSummary> {
        let session = self.session.upgrade()?;
        let record = SessionRecord {
            // Nothing is negotiated again from a list.
            capabilities: RawJson::EMPTY_OBJECT,
            log_level: session.level(),
            subscriptions: session.watched_uris(),
            ..session.opening_record().clone()
        };
        let activity = self.activity.as_ref();
        let is_busy = session.has_calls();
        let last_used = activity.and_then(|activity| activity.idle_since());
        Some(SessionSummary { record, last_used, is_busy, transport: self.transport })
    }
}

impl Drop for ListedSession {
    fn drop(&mut self) {
        self.sessions.0.remove(&self.id);
    }
}
