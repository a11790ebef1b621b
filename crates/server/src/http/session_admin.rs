use trunkline_session::{Principal, SessionId, StoreError};

use super::endpoint::HttpService;
use crate::edge::legacy::SessionSummary;

impl HttpService {
    /// Returns up to `most` legacy sessions of the store and of channels, in no order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list_sessions(&self, most: usize) -> Result<Vec<SessionSummary>, StoreError> {
        let mut summaries = self.inner.sessions.summaries(most).await?;
        let room = most.saturating_sub(summaries.len());
        summaries.extend(self.inner.core.channel_sessions.summaries(room));
        Ok(summaries)
    }

    /// Ends a session of a principal; returns whether there was one. The connection of a channel is closed; a session over stdio
    /// ends only with its client.
    ///
    /// # Errors
    /// The store cannot be changed.
    pub async fn end_session(&self, id: SessionId, principal: &Principal) -> Result<bool, StoreError> {
        Ok(self.inner.core.channel_sessions.end(id, principal)
            || self.inner.sessions.end(id, principal).await?)
    }

    /// Returns the kind of the store of sessions.
    pub fn session_store_kind(&self) -> &'static str {
        self.inner.sessions.store_kind()
    }
}
