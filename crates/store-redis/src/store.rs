use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::JoinHandle;
use trunkline_session::{
    BoxFuture, BusLimits, EventLimits, Principal, RecordSealer, RowKind, SessionLimits, StateKeys,
    StateLimits, StoreError, Timestamp,
};

use crate::clock::clock_reading;
use crate::error::RedisStoreError;
use crate::header::{FORMAT, StoreHeader, StoreHeaderError};
use crate::link::{DEADLINE, RedisLink};
use crate::principal_digest::principal_digest;
use crate::scripts::ScriptCall;
use crate::{RedisAddress, RedisBus, RedisEvents, RedisSessions, RedisStates};

/// The limits of the stores in Redis. All processes that share a store should have the same.
#[derive(Clone, Debug, Default)]
pub struct RedisStoreLimits {
    /// The limits of sessions.
    pub sessions: SessionLimits,
    /// The limits of events.
    pub events: EventLimits,
    /// The limits of handler state.
    pub states: StateLimits,
}

/// Legacy sessions, their events and handler state in Redis.
///
/// ```no_run
/// use trunkline_session::StateKeys;
/// use trunkline_store_redis::{RedisAddress, RedisStore, RedisStoreLimits};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let address: RedisAddress = "rediss://hub@redis.example.com/0?password_file=/run/secrets/redis".parse()?;
/// let keys = StateKeys::from_files(["state.key"])?;
/// let store = RedisStore::open(&address, &keys, RedisStoreLimits::default()).await?;
/// let (sessions, events, states) = (store.sessions(), store.events(), store.states());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisStore {
    core: Arc<RedisCore>,
    sessions: RedisSessions,
    events: RedisEvents,
    states: RedisStates,
}

impl RedisStore {
    /// Connects to Redis, and begins a store there if there is none. The runtime of the caller runs all operations.
    ///
    /// Every record is sealed with the first of the keys. Records that are sealed with another of them are not sealed
    /// again, but end within the absolute limits of sessions and states: an old key is needed until then.
    ///
    /// # Errors
    /// [`RedisStoreError`]: the address cannot be used, Redis cannot be reached, the store is sealed with another key, or
    /// a newer build wrote it.
    pub async fn open(
        address: &RedisAddress,
        keys: &StateKeys,
        limits: RedisStoreLimits,
    ) -> Result<Self, RedisStoreError> {
        Self::open_with_clock(address, keys, limits, clock_reading).await
    }

    /// Opens a store for a process with another clock.
    pub(crate) async fn open_with_clock(
        address: &RedisAddress,
        keys: &StateKeys,
        limits: RedisStoreLimits,
        clock: fn() -> u64,
    ) -> Result<Self, RedisStoreError> {
        let (link, sealer) = (RedisLink::new(address.server()?), RecordSealer::new(keys));
        let prefix = address.prefix().to_owned();
        let header = StoreHeader::open(&link, &header_key(&prefix), &sealer, &limits.events).await;
        let header = header.map_err(|error| describe(address, error))?;
        let mut process = [0; 8];
        getrandom::fill(&mut process).map_err(trunkline_session::StateKeysError::NoRandomness)?;
        let core = Arc::new(RedisCore { link, sealer, header: RwLock::new(header), prefix, process, clock });
        let sessions = RedisSessions::new(core.clone(), limits.sessions);
        let events = RedisEvents::new(core.clone(), limits.events);
        let states = RedisStates::new(core.clone(), limits.states);
        // So that the numbers for gauges are known.
        let counted = async {
            sessions.refresh_count().await?;
            states.refresh_count().await
        };
        counted.await.map_err(|error| describe(address, StoreHeaderError::Unreachable(error)))?;
        Ok(Self { core, sessions, events, states })
    }

    /// Returns the store of sessions.
    pub fn sessions(&self) -> RedisSessions {
        self.sessions.clone()
    }

    /// Returns the store of events.
    pub fn events(&self) -> RedisEvents {
        self.events.clone()
    }

    /// Returns the store of handler state.
    pub fn states(&self) -> RedisStates {
        self.states.clone()
    }

    /// Joins the bus between the processes that share the store. A process joins once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn join_bus(&self, limits: BusLimits) -> Result<RedisBus, StoreError> {
        RedisBus::join(self.core.clone(), limits).await
    }

    /// Replaces the keys; returns whether they differ from those before. New records are sealed with the first one.
    pub fn replace_keys(&self, keys: &StateKeys) -> bool {
        let has_changed = self.core.sealer.replace(keys);
        if has_changed {
            let core = self.core.clone();
            self.core.link.runtime().spawn(async move {
                let saved = core.header().save(&core.link, &header_key(&core.prefix), &core.sealer).await;
                if saved.is_err() {
                    tracing::warn!("the header of the session store is still sealed with the previous key");
                }
            });
        }
        has_changed
    }
}

fn header_key(prefix: &str) -> String {
    format!("{{{prefix}}}:header")
}

fn describe(address: &RedisAddress, error: StoreHeaderError) -> RedisStoreError {
    let address = address.to_string();
    match error {
        StoreHeaderError::Unreachable(StoreError::Unavailable(cause)) => {
            RedisStoreError::Unreachable { address, cause }
        }
        StoreHeaderError::Unreachable(other) => {
            RedisStoreError::Unreachable { address, cause: other.to_string() }
        }
        StoreHeaderError::WrongKey => RedisStoreError::WrongKey(address),
        StoreHeaderError::Newer(format) => RedisStoreError::Newer { address, format, supported: FORMAT },
        StoreHeaderError::NoRandomness(error) => RedisStoreError::Randomness(error),
    }
}

/// What the three stores share.
#[derive(Debug)]
pub(crate) struct RedisCore {
    pub(crate) link: RedisLink,
    pub(crate) sealer: RecordSealer,
    header: RwLock<StoreHeader>,
    pub(crate) prefix: String,
    /// Names this process in the rows that it writes.
    pub(crate) process: [u8; 8],
    /// Returns what the clock of this process shows, in milliseconds.
    clock: fn() -> u64,
}

impl RedisCore {
    pub(crate) fn header(&self) -> StoreHeader {
        self.header.read().clone()
    }

    /// Agrees on a header again: one without persistence loses it with everything else when it restarts, and then the first process
    /// to notice decides, whether it runs since before or has just started.
    pub(crate) async fn check_header(&self) -> Result<(), StoreError> {
        let own = self.header();
        match own.agree(&self.link, &header_key(&self.prefix), &self.sealer).await {
            Ok(found) if found == own => {}
            Ok(found) => {
                tracing::warn!("Redis has lost the session store, and another process has begun it again");
                *self.header.write() = found;
            }
            Err(StoreHeaderError::Unreachable(error)) => return Err(error),
            Err(StoreHeaderError::WrongKey) => {
                tracing::error!(
                    "the session store is sealed with another state key now; give all processes the same keys"
                );
            }
            Err(StoreHeaderError::Newer(_) | StoreHeaderError::NoRandomness(_)) => {
                tracing::error!("a newer version of trunkline has begun the session store again");
            }
        }
        Ok(())
    }

    /// Begins a call of a script that needs the time.
    pub(crate) fn timed(&self, call: ScriptCall, now: Timestamp) -> ScriptCall {
        call.arg(now.0).arg((self.clock)())
    }

    pub(crate) fn principal(&self, principal: &Principal) -> [u8; 16] {
        principal_digest(&self.header.read().salt, principal)
    }

    /// Seals the content of a row.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub(crate) fn seal(&self, kind: RowKind, key: &[u8], plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let no_randomness =
            || StoreError::Unavailable("the operating system gives no random bytes".to_owned());
        kind.seal(&self.sealer, key, plain).ok_or_else(no_randomness)
    }
}

/// How long an operation may take, with all its round trips.
const OPERATION_DEADLINE: Duration = Duration::from_millis(1900);

/// A client gets its 503 within 2 s, with the reason that the round trip gives.
const _: () =
    assert!(DEADLINE.as_millis() < OPERATION_DEADLINE.as_millis() && OPERATION_DEADLINE.as_millis() < 2000);

/// Runs an operation on the runtime of the store, whichever thread waits for it. It goes on if the future is dropped.
pub(crate) fn run_on_store<T: Send + 'static>(
    core: &RedisCore,
    operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    run_sweep_on_store(core, async move {
        tokio::time::timeout(OPERATION_DEADLINE, operation).await.unwrap_or_else(|_| {
            let cause = format!("Redis did not respond within {} ms", OPERATION_DEADLINE.as_millis());
            Err(StoreError::Unavailable(cause))
        })
    })
}

/// Does the same for an operation over many rows, of which each round trip is bounded.
pub(crate) fn run_sweep_on_store<T: Send + 'static>(
    core: &RedisCore,
    operation: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    let task: JoinHandle<Result<T, StoreError>> = core.link.runtime().spawn(operation);
    Box::pin(async move {
        task.await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the store's runtime has ended".to_owned())))
    })
}

/// Returns a digest as the name of a key has it.
pub(crate) fn hexadecimal(digest: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(digest))
}
