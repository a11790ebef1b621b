use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use redis::cmd;
use trunkline_protocol::RawJson;
use trunkline_session::{
    BoxFuture, Principal, ReplaceOutcome, StateHandle, StateLifetime, StateLimits, StateRecord, StateStore,
    StoreError, StoredState, Timestamp,
};

use crate::append_queue::{AppendQueue, QueuedWrites};
use crate::clock::milliseconds;
use crate::scripts::{STATES_CREATE, STATES_EXPIRE, STATES_FORGET, STATES_GET, STATES_REPLACE, ScriptCall};
use crate::state_row::{open_value, seal_value};
use crate::store::{RedisCore, run_on_store, run_sweep_on_store};

/// How many states one script checks.
const EXPIRY_BATCH: usize = 500;

/// What a state that is to be removed counts in the queue.
const FORGET_COST: usize = 256;

/// The handler state in Redis. Every operation is one round trip.
#[derive(Clone)]
pub struct RedisStates {
    /// States to be removed, which no caller waits for; every operation waits until those before it are.
    removals: Arc<AppendQueue<SharedStates>>,
}

#[derive(Clone)]
struct SharedStates {
    core: Arc<RedisCore>,
    limits: StateLimits,
    /// The number of states when it was last known.
    count: Arc<AtomicUsize>,
}

impl RedisStates {
    pub(crate) fn new(core: Arc<RedisCore>, limits: StateLimits) -> Self {
        let runtime = core.link.runtime().clone();
        let shared = SharedStates { core, limits, count: Arc::default() };
        Self { removals: Arc::new(AppendQueue::new(shared, runtime)) }
    }

    pub(crate) async fn refresh_count(&self) -> Result<(), StoreError> {
        let states = self.removals.writes();
        let [by_use, _] = states.keys();
        let mut command = cmd("ZCARD");
        command.arg(by_use);
        states.note_count(states.core.link.command(&command).await?);
        Ok(())
    }

    /// Runs an operation on the runtime of the store.
    fn run<T, F>(
        &self,
        operation: impl FnOnce(SharedStates) -> F + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let removals = self.removals.clone();
        run_on_store(&self.removals.writes().core, async move {
            removals.flush().await;
            operation(removals.writes().clone()).await
        })
    }
}

impl SharedStates {
    fn keys(&self) -> [String; 2] {
        ["use", "serial"].map(|name| format!("{{{}:states}}:{name}", self.core.prefix))
    }

    fn call(&self, script: &'static std::sync::LazyLock<redis::Script>, now: Timestamp) -> ScriptCall {
        self.core
            .timed(ScriptCall::new(script, &self.keys()), now)
            .arg(milliseconds(self.limits.idle))
            .arg(milliseconds(self.limits.absolute))
            .arg(&self.core.process)
    }

    fn note_count(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
    }

    async fn create(&self, record: StateRecord, now: Timestamp) -> Result<(), StoreError> {
        let StateRecord { handle, principal, lifetime, value } = record;
        if value.as_str().len() > self.limits.bytes {
            return Err(StoreError::TooLarge);
        }
        let quota = match principal {
            Principal::Named(_) => i64::try_from(self.limits.per_principal).unwrap_or(i64::MAX),
            Principal::Anonymous | Principal::Process => -1,
        };
        let lifetime = match lifetime {
            StateLifetime::Idle => "i",
            StateLifetime::Session => "s",
        };
        let sealed = seal_value(&self.core, handle, &principal, 0, &value)?;
        let call = self
            .call(&STATES_CREATE, now)
            .arg(&handle.row_key())
            .arg(&self.core.principal(&principal))
            .arg(lifetime)
            .arg(self.limits.total)
            .arg(quota)
            .arg(sealed);
        let (is_stored, count): (u8, usize) = self.core.link.call(&call).await?;
        self.note_count(count);
        if is_stored == 1 { Ok(()) } else { Err(StoreError::Duplicate) }
    }

    async fn get(
        &self,
        handle: StateHandle,
        principal: &Principal,
        now: Timestamp,
    ) -> Result<Option<StoredState>, StoreError> {
        let call = self.call(&STATES_GET, now).arg(&handle.row_key()).arg(&self.core.principal(principal));
        let Some((version, sealed)) = self.core.link.call::<Option<(u64, Vec<u8>)>>(&call).await? else {
            return Ok(None);
        };
        open_value(&self.core, handle, principal, version, &sealed)
    }

    async fn replace(
        &self,
        handle: StateHandle,
        principal: &Principal,
        expected: u64,
        value: &RawJson,
        now: Timestamp,
    ) -> Result<ReplaceOutcome, StoreError> {
        if value.as_str().len() > self.limits.bytes {
            return Err(StoreError::TooLarge);
        }
        let sealed = seal_value(&self.core, handle, principal, expected.saturating_add(1), value)?;
        let call = self
            .call(&STATES_REPLACE, now)
            .arg(&handle.row_key())
            .arg(&self.core.principal(principal))
            .arg(expected)
            .arg(sealed);
        Ok(match self.core.link.call::<String>(&call).await?.as_str() {
            "done" => ReplaceOutcome::Done,
            "mismatch" => ReplaceOutcome::VersionMismatch,
            _ => ReplaceOutcome::Missing,
        })
    }

    async fn forget(&self, handle: StateHandle) -> Result<(), StoreError> {
        let call = self.call(&STATES_FORGET, Timestamp(0)).arg(&handle.row_key());
        self.note_count(self.core.link.call(&call).await?);
        Ok(())
    }

    async fn expire(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut from = 0;
        while from >= 0 {
            let call = self.call(&STATES_EXPIRE, now).arg(from).arg(EXPIRY_BATCH);
            let (following, count): (i64, usize) = self.core.link.call(&call).await?;
            self.note_count(count);
            from = following;
        }
        Ok(())
    }
}

impl QueuedWrites for SharedStates {
    type Write = StateHandle;

    fn cost(_: &StateHandle) -> usize {
        FORGET_COST
    }

    async fn send(&self, handles: Vec<StateHandle>) -> Vec<Result<(), StoreError>> {
        join_all(handles.into_iter().map(|handle| self.forget(handle))).await
    }
}

impl StateStore for RedisStates {
    fn create(&self, record: StateRecord, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(move |states| async move { states.create(record, now).await })
    }

    fn get<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredState>, StoreError>> {
        let principal = principal.clone();
        self.run(move |states| async move { states.get(handle, &principal, now).await })
    }

    fn replace<'a>(
        &'a self,
        handle: StateHandle,
        principal: &'a Principal,
        expected: u64,
        value: RawJson,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<ReplaceOutcome, StoreError>> {
        let principal = principal.clone();
        self.run(move |states| async move { states.replace(handle, &principal, expected, &value, now).await })
    }

    fn forget(&self, handle: StateHandle) {
        // Where it fails, the state expires.
        drop(self.removals.push(handle));
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        let states = self.removals.writes().clone();
        run_sweep_on_store(&self.removals.writes().core, async move { states.expire(now).await })
    }

    fn count(&self) -> usize {
        self.removals.writes().count.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for RedisStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStates").field("count", &self.count()).finish_non_exhaustive()
    }
}
