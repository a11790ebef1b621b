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

/// A call that is about to be made; awaiting it makes it, and dropping the future cancels it, at the server too.
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

    /// Tells a function of all progress.
    pub fn progress(self, tell: impl Fn(&ProgressUpdate) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_progress(tell), ..self }
    }

    /// Tells a function of the log messages of this call, where they can be told apart from those of others.
    pub fn log(self, tell: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_log(tell), ..self }
    }

    /// Asks for log messages from a level on, where that is asked with each call.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        Self { call: self.call.log_level(level), ..self }
    }

    /// Sets how long the server may be silent; progress begins the time anew, up to
    /// [`ClientLimits::max_total_timeout`](crate::ClientLimits::max_total_timeout).
    pub fn timeout(self, silent_for: Duration) -> Self {
        Self { call: self.call.timeout(silent_for), ..self }
    }

    /// Adds a member to `_meta`, such as `traceparent`.
    pub fn meta(self, key: impl Into<String>, value: RawJson) -> Self {
        Self { call: self.call.meta(key, value), ..self }
    }
}

/// A result that a call can have.
trait CallResult: Sized {
    /// Reads the result.
    fn parse_result(raw: &RawJson) -> Result<Self, MalformedModel>;

    /// Returns the place where the result is kept, if such results may be kept at all.
    fn cache_reservation(_: &ClientInner, _: &ClientCall) -> Option<CacheReservation> {
        None
    }

    /// Checks the result against what else is known, and keeps it if it may be kept.
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
        ticket: Option<CacheReservation>,
    ) -> Result<(), Error> {
        if let Some(ticket) = ticket {
            // Without the message around it, which may be much larger.
            inner.cache.put(ticket, self.cache, raw.as_str().len(), || Arc::new(raw.to_owned_buffer()));
        }
        Ok(())
    }
}

async fn run_call<T: CallResult>(client: Client, mut call: ClientCall) -> Result<WithRaw<T>, Error> {
    let inner = client.inner();
    let ticket = T::cache_reservation(inner, &call);
    if let Some(kept) = ticket.as_ref().and_then(|ticket| inner.cache.get::<RawJson>(&ticket.key)) {
        return read(RawJson::clone(&kept));
    }
    let given = call.supplied_input.take();
    let received: WithRaw<T> = read(inner.run(&call, given).await?)?;
    received.check(received.raw(), inner, &call, ticket)?;
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
