//! The connection that all stores share: it is opened again after it fails, and every operation ends in time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::Instant;
use trunkline_session::StoreError;

use crate::connection::{OpenConnection, RedisServer};
use crate::scripts::ScriptCall;

/// How long one round trip may take, with a reconnection.
pub(crate) const DEADLINE: Duration = Duration::from_millis(1800);

/// How long operations fail at once after a connection could not be opened.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What is sent to Redis, perhaps twice.
#[derive(Clone, Copy)]
enum RedisOperation<'a> {
    Script(&'a ScriptCall),
    Command(&'a Cmd),
}

impl RedisOperation<'_> {
    async fn run(self, mut connection: OpenConnection) -> RedisResult<Value> {
        match self {
            Self::Script(call) => call.invocation().invoke_async(&mut connection).await,
            Self::Command(command) => command.query_async(&mut connection).await,
        }
    }
}

/// The connection to Redis.
pub(crate) struct RedisLink {
    server: RedisServer,
    state: Mutex<LinkState>,
    /// The runtime that opened the store. Operations run there, whichever thread waits for them.
    runtime: Handle,
}

#[derive(Default)]
struct LinkState {
    open: Option<OpenConnection>,
    /// Counts the connections, so that an operation discards only the one that failed it.
    generation: u64,
    /// When opening a connection failed last, and why.
    failure: Option<(Instant, String)>,
}

impl RedisLink {
    pub(crate) fn new(server: RedisServer) -> Self {
        Self { server, state: Mutex::default(), runtime: Handle::current() }
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Opens a connection that no operation uses.
    pub(crate) async fn open_another(&self) -> RedisResult<OpenConnection> {
        self.server.connect().await
    }

    /// Calls a script. A call that meets a broken connection is repeated once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: the call may or may not have had its effect.
    pub(crate) async fn call<T: FromRedisValue>(&self, call: &ScriptCall) -> Result<T, StoreError> {
        self.run(RedisOperation::Script(call)).await
    }

    /// Runs a command that has no effect, or the same effect when it is repeated.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(crate) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.run(RedisOperation::Command(command)).await
    }

    async fn run<T: FromRedisValue>(&self, operation: RedisOperation<'_>) -> Result<T, StoreError> {
        let generation = AtomicU64::new(0);
        let Ok(value) = tokio::time::timeout(DEADLINE, self.attempt_twice(operation, &generation)).await
        else {
            // A connection without responses may be one that the network has lost.
            self.discard(generation.load(Ordering::Relaxed)).await;
            let cause = format!("Redis did not respond within {} ms", DEADLINE.as_millis());
            return Err(StoreError::Unavailable(cause));
        };
        T::from_redis_value(value?).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Runs an operation, once more if its connection is broken. `generation` is set to that of the connection in use.
    async fn attempt_twice(
        &self,
        operation: RedisOperation<'_>,
        generation: &AtomicU64,
    ) -> Result<Value, StoreError> {
        let (connection, first) = self.connection().await?;
        generation.store(first, Ordering::Relaxed);
        let error = match operation.run(connection).await {
            Err(error) if is_broken(&error) => error,
            outcome => return outcome.map_err(|error| StoreError::Unavailable(reason(&error))),
        };
        tracing::debug!(%error, "the connection to the session store is opened again");
        self.discard(first).await;
        let (connection, second) = self.connection().await?;
        generation.store(second, Ordering::Relaxed);
        operation.run(connection).await.map_err(|error| StoreError::Unavailable(reason(&error)))
    }

    async fn connection(&self) -> Result<(OpenConnection, u64), StoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.open {
            return Ok((connection.clone(), state.generation));
        }
        if let Some((at, cause)) = &state.failure
            && at.elapsed() < RECONNECT_PAUSE
        {
            return Err(StoreError::Unavailable(cause.clone()));
        }
        match self.server.connect().await {
            Ok(connection) => {
                if state.failure.take().is_some() {
                    tracing::info!("connected to the session store again");
                }
                state.generation += 1;
                state.open = Some(connection.clone());
                Ok((connection, state.generation))
            }
            Err(error) => {
                let cause = reason(&error);
                if state.failure.is_none() {
                    tracing::error!(error = %cause, "the session store cannot be reached");
                }
                state.failure = Some((Instant::now(), cause.clone()));
                Err(StoreError::Unavailable(cause))
            }
        }
    }

    /// Drops a connection that failed, unless another has replaced it already.
    async fn discard(&self, generation: u64) {
        let mut state = self.state.lock().await;
        if state.generation == generation {
            state.open = None;
        }
    }
}

/// Describes an error in one line.
fn reason(error: &RedisError) -> String {
    match error.kind() {
        // The parser lists what it expected, on a line each.
        ErrorKind::Parse => "what is there does not speak the protocol of Redis".to_owned(),
        _ => error.to_string(),
    }
}

/// Reports whether another connection may succeed where this one failed.
fn is_broken(error: &RedisError) -> bool {
    use redis::ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly | TryAgain)
        )
}

impl fmt::Debug for RedisLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLink").finish_non_exhaustive()
    }
}
