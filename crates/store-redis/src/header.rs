//! What describes a store: its format, and a sealed row that shows whether the keys are the right ones.

use std::fmt;

use trunkline_session::{EventLimits, RecordSealer, RowKind, StateKeysError, StoreError};

use crate::link::RedisLink;
use crate::principal_digest::StoreSalt;
use crate::scripts::{HEADER, ScriptCall};

/// The version of the rows and keys: the newest that this build reads, and the one that it writes.
pub(crate) const FORMAT: u32 = 1;

/// The size of all events that one partition is made for, and the most partitions.
const PARTITION_BYTES: usize = 4 << 20;
const MAX_PARTITIONS: usize = 64;

/// What all processes that use a store have to agree on. The first one decides.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreHeader {
    pub(crate) salt: StoreSalt,
    /// How many parts the events are divided into.
    pub(crate) partitions: u32,
}

/// Leaves out the salt, with which principals can be guessed by their digests.
impl fmt::Debug for StoreHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHeader").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}

/// Why the header cannot be used.
pub(crate) enum StoreHeaderError {
    Unreachable(StoreError),
    WrongKey,
    Newer(u32),
    NoRandomness(StateKeysError),
}

impl StoreHeader {
    fn new(events: &EventLimits) -> Result<Self, StateKeysError> {
        let mut salt = StoreSalt::default();
        getrandom::fill(&mut salt).map_err(StateKeysError::NoRandomness)?;
        let partitions = (events.total_bytes / PARTITION_BYTES).clamp(1, MAX_PARTITIONS);
        Ok(Self { salt, partitions: u32::try_from(partitions).unwrap_or(1) })
    }

    fn to_bytes(&self) -> Vec<u8> {
        [&self.salt[..], &self.partitions.to_le_bytes()].concat()
    }

    fn from_bytes(plain: &[u8]) -> Option<Self> {
        let (salt, rest) = plain.split_first_chunk::<16>()?;
        let partitions = u32::from_le_bytes(*rest.first_chunk::<4>()?);
        Some(Self { salt: *salt, partitions: partitions.max(1) })
    }

    /// Reads the header, or writes it if the store is new.
    pub(crate) async fn open(
        link: &RedisLink,
        key: &str,
        sealer: &RecordSealer,
        events: &EventLimits,
    ) -> Result<Self, StoreHeaderError> {
        let fresh = Self::new(events).map_err(StoreHeaderError::NoRandomness)?;
        fresh.agree(link, key, sealer).await
    }

    /// Returns the header that the store has, which becomes this one if there is none. The key of an old header is replaced.
    pub(crate) async fn agree(
        &self,
        link: &RedisLink,
        key: &str,
        sealer: &RecordSealer,
    ) -> Result<Self, StoreHeaderError> {
        let sealed = self.seal(key, sealer)?;
        let call = ScriptCall::new(&HEADER, &[key.to_owned()]).arg(FORMAT).arg(sealed);
        let found: (Option<u32>, Vec<u8>) = link.call(&call).await.map_err(StoreHeaderError::Unreachable)?;
        let (format, seal) = found;
        if let Some(newer) = format.filter(|format| *format > FORMAT) {
            return Err(StoreHeaderError::Newer(newer));
        }
        let opened = RowKind::Header.open(sealer, key.as_bytes(), &seal).ok_or(StoreHeaderError::WrongKey)?;
        let header = Self::from_bytes(&opened.plain).ok_or(StoreHeaderError::WrongKey)?;
        if !opened.by_first_key {
            header.save(link, key, sealer).await?;
        }
        Ok(header)
    }

    /// Seals the header with the first key.
    pub(crate) async fn save(
        &self,
        link: &RedisLink,
        key: &str,
        sealer: &RecordSealer,
    ) -> Result<(), StoreHeaderError> {
        let sealed = self.seal(key, sealer)?;
        let mut command = redis::cmd("HSET");
        command.arg(key).arg("seal").arg(sealed);
        link.command::<()>(&command).await.map_err(StoreHeaderError::Unreachable)
    }

    fn seal(&self, key: &str, sealer: &RecordSealer) -> Result<Vec<u8>, StoreHeaderError> {
        let sealed = RowKind::Header.seal(sealer, key.as_bytes(), &self.to_bytes());
        let no_randomness =
            || StoreError::Unavailable("the operating system gives no random bytes".to_owned());
        sealed.ok_or_else(|| StoreHeaderError::Unreachable(no_randomness()))
    }
}
