use trunkline_session::{Principal, SessionId, StoreError};

use super::endpoint::HttpService;
use crate::edge::legacy::SessionSummary;

impl HttpService {
    /// Returns up to `most` sessions, in no order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_sessions(&self, most: usize) -> Result<Vec<SessionSummary>, StoreError> {
        self.inner.sessions.summaries(most).await
    }

    /// Ends a session of a principal; returns whether there was one.
    ///
    /// # Errors
    /// The store cannot be changed.
    pub async fn end_session(&self, id: SessionId, principal: &Principal) -> Result<bool, StoreError> {
        self.inner.sessions.end(id, principal).await
    }

    /// Returns the kind of the store of sessions.
    pub fn session_store_kind(&self) -> &'static str {
        self.inner.sessions.store_kind()
    }
}
