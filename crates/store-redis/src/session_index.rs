//! The index of all sessions: their limits, their principals, and when they are next checked for expiry.

use std::time::Duration;

use redis::cmd;
use trunkline_session::{Principal, RowKind, SessionId, SessionLimits, SessionRecord, StoreError, Timestamp};

use crate::clock::milliseconds;
use crate::scripts::{INDEX_DUE, INDEX_RELEASE, INDEX_RESERVE, INDEX_RESIZE, INDEX_SETTLE, ScriptCall};
use crate::store::{RedisCore, hexadecimal};

/// How many sessions one script lists or checks.
pub(crate) const INDEX_BATCH: usize = 500;

/// How much longer than any session Redis keeps an index that nothing is added to.
const INDEX_MARGIN: Duration = Duration::from_secs(60 * 60);

/// When a new session is first checked, unless it expires before. Later than any creation takes; if its row was not stored, as when
/// Redis does not respond, the entry is removed then, and otherwise the check sets the expiry of the row.
const FIRST_CHECK: Duration = Duration::from_secs(30);

/// The digest of a session's id.
pub(crate) type SessionKey = [u8; 16];

/// The index, with the number of sessions as it is after each operation.
pub(crate) struct SessionIndex<'a> {
    pub(crate) core: &'a RedisCore,
    pub(crate) limits: &'a SessionLimits,
}

/// A session as the index has it.
pub(crate) struct IndexEntry {
    pub(crate) key: SessionKey,
    pub(crate) owner: [u8; 16],
    pub(crate) size: u32,
}

impl IndexEntry {
    pub(crate) fn new(core: &RedisCore, record: &SessionRecord) -> Self {
        let size = record.raw_bytes() + record.subscription_bytes();
        Self {
            key: record.id.row_key(),
            owner: core.principal(&record.principal),
            size: u32::try_from(size).unwrap_or(u32::MAX),
        }
    }
}

impl SessionIndex<'_> {
    fn keys(&self) -> [String; 3] {
        ["due", "entries", "size"].map(|name| format!("{{{}}}:{name}", self.core.prefix))
    }

    fn call(&self, script: &'static std::sync::LazyLock<redis::Script>, now: Timestamp) -> ScriptCall {
        self.core.timed(ScriptCall::new(script, &self.keys()), now)
    }

    /// Adds a session; returns the number of sessions.
    pub(crate) async fn reserve(
        &self,
        record: &SessionRecord,
        entry: &IndexEntry,
        now: Timestamp,
    ) -> (Result<(), StoreError>, Option<usize>) {
        let sealed =
            self.core.seal(RowKind::Session, &id_binding(&entry.key), record.id.to_string().as_bytes());
        let sealed = match sealed {
            Ok(sealed) => sealed,
            Err(error) => return (Err(error), None),
        };
        let packed = [&entry.size.to_le_bytes()[..], &entry.owner, &sealed].concat();
        let quota = match record.principal {
            Principal::Named(_) => i64::try_from(self.limits.per_principal).unwrap_or(i64::MAX),
            Principal::Anonymous | Principal::Process => -1,
        };
        let end = now.plus(self.limits.idle).min(record.created.plus(self.limits.absolute));
        let call = self
            .call(&INDEX_RESERVE, now)
            .arg(&entry.key)
            .arg(packed)
            .arg(self.limits.total)
            .arg(self.limits.total_bytes)
            .arg(quota)
            .arg(milliseconds(end.since(now).min(FIRST_CHECK)))
            .arg(milliseconds(self.limits.absolute.saturating_add(INDEX_MARGIN)));
        match self.core.link.call::<(String, usize)>(&call).await {
            Err(error) => (Err(error), None),
            Ok((outcome, count)) => {
                let reserved = match outcome.as_str() {
                    "reserved" => Ok(()),
                    "duplicate" => Err(StoreError::Duplicate),
                    "quota" => Err(StoreError::PrincipalQuotaExceeded),
                    _ => Err(StoreError::Full),
                };
                (reserved, Some(count))
            }
        }
    }

    /// Changes the size of a session's record; returns whether the principal has such a session.
    pub(crate) async fn resize(&self, entry: &IndexEntry, now: Timestamp) -> Result<bool, StoreError> {
        let call = self
            .call(&INDEX_RESIZE, now)
            .arg(&entry.key)
            .arg(&entry.owner)
            .arg(entry.size)
            .arg(self.limits.total_bytes);
        match self.core.link.call::<String>(&call).await?.as_str() {
            "resized" => Ok(true),
            "missing" => Ok(false),
            _ => Err(StoreError::Full),
        }
    }

    /// Removes a session of a principal; returns whether there was one, and the number of sessions.
    pub(crate) async fn release(
        &self,
        key: &SessionKey,
        owner: &[u8; 16],
    ) -> Result<(bool, usize), StoreError> {
        let call = self.call(&INDEX_RELEASE, Timestamp(0)).arg(key).arg(owner);
        let (was_there, count): (u8, usize) = self.core.link.call(&call).await?;
        Ok((was_there == 1, count))
    }

    /// Returns some sessions that are due for a check, and the number of sessions.
    pub(crate) async fn due(&self, now: Timestamp) -> Result<(Vec<SessionKey>, usize), StoreError> {
        let call = self.call(&INDEX_DUE, now).arg(INDEX_BATCH);
        let (due, count): (Vec<Vec<u8>>, usize) = self.core.link.call(&call).await?;
        Ok((session_keys(&due), count))
    }

    /// Records when checked sessions expire, 0 for those that are over. Returns the ids of the sessions that this call
    /// removed, and the number of sessions.
    pub(crate) async fn settle(
        &self,
        checked: &[(SessionKey, u64)],
    ) -> Result<(Vec<SessionId>, usize), StoreError> {
        let mut call = self.call(&INDEX_SETTLE, Timestamp(0));
        for (key, expires) in checked {
            call = call.arg(key).arg(*expires);
        }
        let (removed, count): (Vec<Vec<u8>>, usize) = self.core.link.call(&call).await?;
        let (pairs, _) = removed.as_chunks::<2>();
        let ids = pairs.iter().filter_map(|[key, sealed]| {
            let opened = RowKind::Session.open(&self.core.sealer, &id_binding(key), sealed)?;
            SessionId::parse(&opened.plain)
        });
        Ok((ids.collect(), count))
    }

    /// Returns the sessions of a principal.
    pub(crate) async fn of_principal(&self, principal: &Principal) -> Result<Vec<SessionKey>, StoreError> {
        let owner = hexadecimal(self.core.principal(principal));
        let mut command = cmd("SMEMBERS");
        command.arg(format!("{{{}}}:principal:{owner}", self.core.prefix));
        let members: Vec<Vec<u8>> = self.core.link.command(&command).await?;
        Ok(session_keys(&members))
    }

    /// Returns some sessions of all principals, from a place on.
    pub(crate) async fn range(&self, from: usize) -> Result<Vec<SessionKey>, StoreError> {
        let [due, ..] = self.keys();
        let mut command = cmd("ZRANGE");
        command.arg(due).arg(from).arg(from + INDEX_BATCH - 1);
        let members: Vec<Vec<u8>> = self.core.link.command(&command).await?;
        Ok(session_keys(&members))
    }

    /// Returns the number of sessions.
    pub(crate) async fn count(&self) -> Result<usize, StoreError> {
        let [due, ..] = self.keys();
        let mut command = cmd("ZCARD");
        command.arg(due);
        self.core.link.command(&command).await
    }
}

/// Binds the sealed id of a session to its entry.
fn id_binding(key: &[u8]) -> Vec<u8> {
    [key, b" id"].concat()
}

fn session_keys(members: &[Vec<u8>]) -> Vec<SessionKey> {
    members.iter().filter_map(|member| member.first_chunk().copied()).collect()
}
