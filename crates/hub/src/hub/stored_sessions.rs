//! Keeps the stored sessions with servers in line with the connections.

use std::sync::{Arc, Weak};

use tokio::time::sleep;

use super::HubInner;
use crate::upstream::Upstream;
use crate::upstream_sessions::{CHECK_INTERVAL, SessionRowKey, UpstreamSession, UpstreamSessions};

/// Stores the sessions whenever one may have changed, until the hub is dropped.
pub(super) async fn record_sessions(inner: Weak<HubInner>, sessions: UpstreamSessions) {
    loop {
        let Some(current) = inner.upgrade().map(|inner| inner.current_sessions()) else { return };
        sessions.record(current).await;
        tokio::select! {
            () = sessions.changed() => {}
            // A session that the server lost was opened again without notice.
            () = sleep(CHECK_INTERVAL) => {}
        }
    }
}

impl HubInner {
    fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.servers().into_iter().chain(self.users.upstreams()).collect()
    }

    fn current_sessions(&self) -> Vec<(SessionRowKey, Vec<UpstreamSession>)> {
        self.upstreams().iter().flat_map(|upstream| upstream.recordable_sessions()).collect()
    }

    /// Stores the sessions for the last time, and leaves them open at the servers; returns where they are stored, if
    /// they are.
    pub(super) async fn keep_sessions(&self) -> Option<UpstreamSessions> {
        let sessions = self.options.upstream_sessions.clone()?;
        sessions.record(self.current_sessions()).await;
        let stored = sessions.close().await;
        self.upstreams().iter().for_each(|upstream| upstream.keep_sessions(&stored));
        Some(sessions)
    }
}
