//! Operations on many sessions: expiry and listing.

use std::sync::{Arc, LazyLock};

use redis::Script;
use tokio::task::JoinSet;
use trunkline_session::{Principal, SessionId, SessionRecord, StoreError, Timestamp};

use crate::scripts::{SESSION_CHECK, SESSION_PEEK};
use crate::session_index::{INDEX_BATCH, SessionKey};
use crate::sessions::{FoundRecord, SharedSessions};

impl SharedSessions {
    /// Runs a script on each of some sessions at the same time.
    async fn call_each<T: redis::FromRedisValue + Send + 'static>(
        self: &Arc<Self>,
        script: &'static LazyLock<Script>,
        keys: Vec<SessionKey>,
        now: Timestamp,
    ) -> Result<Vec<(SessionKey, T)>, StoreError> {
        let mut calls = JoinSet::new();
        for key in keys {
            let shared = self.clone();
            calls.spawn(async move {
                let call = shared.call(script, &key, now);
                shared.core.link.call::<T>(&call).await.map(|reply| (key, reply))
            });
        }
        calls.join_all().await.into_iter().collect()
    }

    /// Removes expired sessions. If a later batch fails, those of the batches before it are returned, since no other call returns
    /// them; the next call goes on.
    pub(crate) async fn expire(self: &Arc<Self>, now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        let mut expired = Vec::new();
        loop {
            match self.expire_batch(now).await {
                Ok((ids, is_last)) => {
                    expired.extend(ids);
                    if is_last {
                        return Ok(expired);
                    }
                }
                Err(error) if expired.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "not all expired sessions were removed from Redis; the next sweep goes on");
                    return Ok(expired);
                }
            }
        }
    }

    /// Removes some expired sessions; returns whether no others were due.
    async fn expire_batch(self: &Arc<Self>, now: Timestamp) -> Result<(Vec<SessionId>, bool), StoreError> {
        let (due, count) = self.index().due(now).await?;
        self.note_count(count);
        let is_last = due.len() < INDEX_BATCH;
        if due.is_empty() {
            return Ok((Vec::new(), is_last));
        }
        let checked = self.call_each::<u64>(&SESSION_CHECK, due, now).await?;
        let (ids, count) = self.index().settle(&checked).await?;
        self.note_count(count);
        Ok((ids, is_last))
    }

    /// Returns the unexpired ones of some sessions.
    async fn peek(
        self: &Arc<Self>,
        keys: Vec<SessionKey>,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let found = self.call_each::<FoundRecord>(&SESSION_PEEK, keys, now).await?;
        found.into_iter().filter_map(|(key, found)| self.open(&key, found).transpose()).collect()
    }

    pub(crate) async fn list(
        self: &Arc<Self>,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let keys = self.index().of_principal(principal).await?;
        let mut records = Vec::new();
        for keys in keys.chunks(INDEX_BATCH) {
            records.extend(self.peek(keys.to_vec(), now).await?);
        }
        records.retain(|record| record.principal == *principal);
        Ok(records)
    }

    pub(crate) async fn list_all(
        self: &Arc<Self>,
        most: usize,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let (mut records, mut from) = (Vec::new(), 0);
        while records.len() < most {
            let keys = self.index().range(from).await?;
            let is_last = keys.len() < INDEX_BATCH;
            from += keys.len();
            records.extend(self.peek(keys, now).await?);
            if is_last {
                break;
            }
        }
        records.truncate(most);
        Ok(records)
    }
}
