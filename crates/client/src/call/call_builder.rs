use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use trunkline_protocol::model::{
    CallToolResult, CompleteResult, GetPromptResult, MalformedModel, ReadResourceResult,
};
use trunkline_protocol::{LoggingLevel, RawJson};

use super::{ClientCall, LogMessage, ProgressUpdate};
use crate::cache::{CacheKey, CacheReservation};
use crate::client::{Client, ClientInner};
use crate::error::Error;
use crate::with_raw::WithRaw;

/// A call that is sent when it is awaited; dropping the future cancels it, also at the server.
///
/// ```no_run
/// # async fn example(client: trunkline_client::Client) -> Result<(), trunkline_client::Error> {
/// let answer = client
///     .call("convert", serde_json::json!({ "file": "a.png" }))
///     .progress(|progress| println!("{} of {:?}", progress.progress, progress.total))
///     .await?;
/// # let _ = answer; Ok(()) }
/// ```
#[must_use = "a call is made by awaiting it"]
pub struct CallBuilder<T> {
    client: Client,
    call: ClientCall,
    read: PhantomData<fn() -> T>,
}

impl<T> CallBuilder<T> {
    pub(crate) fn new(client: Client, call: ClientCall) -> Self {
        Self { client, call, read: PhantomData }
    }

    /// Calls a function for every progress notification.
    pub fn progress(self, callback: impl Fn(&ProgressUpdate) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_progress(callback), ..self }
    }

    /// Calls a function for the log messages of this call, where they can be attributed to it.
    pub fn log(self, callback: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_log(callback), ..self }
    }

    /// Requests log messages of this level and above, in revisions where the level is sent with each call.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        Self { call: self.call.log_level(level), ..self }
    }

    /// Sets the timeout without any progress; every progress notification restarts it, up to
    /// [`ClientLimits::max_total_timeout`](crate::ClientLimits::max_total_timeout).
    pub fn timeout(self, silent_for: Duration) -> Self {
        Self { call: self.call.timeout(silent_for), ..self }
    }

    /// Adds a member to `_meta`, such as `traceparent`.
    pub fn meta(self, key: impl Into<String>, value: RawJson) -> Self {
        Self { call: self.call.meta(key, value), ..self }
    }
}

/// A typed result of a call.
trait CallResult: Sized {
    /// Parses the result.
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel>;

    /// Returns the cache reservation, if results of this kind may be cached.
    fn cache_reservation(_: &ClientInner, _: &ClientCall) -> Option<CacheReservation> {
        None
    }

    /// Validates the result, and caches it if that is allowed.
    fn check(
        &self,
        _: &RawJson,
        _: &ClientInner,
        _: &ClientCall,
        _: Option<CacheReservation>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

impl CallResult for CallToolResult {
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn check(
        &self,
        _: &RawJson,
        inner: &ClientInner,
        call: &ClientCall,
        _: Option<CacheReservation>,
    ) -> Result<(), Error> {
        inner.tools.check(call, self)
    }
}

impl CallResult for GetPromptResult {
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }
}

impl CallResult for CompleteResult {
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }
}

impl CallResult for ReadResourceResult {
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn cache_reservation(inner: &ClientInner, call: &ClientCall) -> Option<CacheReservation> {
        let is_plain = call.supplied_input.is_none() && call.meta.is_empty() && call.capabilities.is_none();
        call.name.as_ref().filter(|_| is_plain).map(|uri| inner.cache.reserve(CacheKey::Read(uri.clone())))
    }

    fn check(
        &self,
        raw: &RawJson,
        inner: &ClientInner,
        _: &ClientCall,
        reservation: Option<CacheReservation>,
    ) -> Result<(), Error> {
        if let Some(reservation) = reservation {
            // Copied out of the message, which may be much larger.
            inner.cache.put(reservation, self.cache, raw.as_str().len(), || Arc::new(raw.to_owned_buffer()));
        }
        Ok(())
    }
}

async fn run_call<T: CallResult>(client: Client, mut call: ClientCall) -> Result<WithRaw<T>, Error> {
    let inner = client.inner();
    let reservation = T::cache_reservation(inner, &call);
    if let Some(cached) =
        reservation.as_ref().and_then(|reservation| inner.cache.get::<RawJson>(&reservation.key))
    {
        return read(RawJson::clone(&cached));
    }
    let supplied_input = call.supplied_input.take();
    let received: WithRaw<T> = read(inner.run(&call, supplied_input).await?)?;
    received.check(received.raw(), inner, &call, reservation)?;
    Ok(received)
}

fn read<T: CallResult>(raw: RawJson) -> Result<WithRaw<T>, Error> {
    let value = T::parse_result(&raw).map_err(|problem| Error::Malformed(problem.to_string()))?;
    Ok(WithRaw::new(value, raw))
}

macro_rules! awaited {
    ($($result:ty),*) => {
        $(impl IntoFuture for CallBuilder<$result> {
            type Output = Result<WithRaw<$result>, Error>;
            type IntoFuture = BoxFuture<'static, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(run_call(self.client, self.call))
            }
        })*
    };
}

awaited!(CallToolResult, ReadResourceResult, GetPromptResult, CompleteResult);

impl<T> fmt::Debug for CallBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallBuilder").field(&self.call).finish()
    }
}
