use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use trunkline_protocol::model::{
    CallToolResult, CompleteResult, GetPromptResult, MalformedModel, ReadResult,
};
use trunkline_protocol::{Level, Raw};

use super::{Call, LogMessage, Progress};
use crate::cache::{Key, Ticket};
use crate::client::{Client, Inner};
use crate::error::Error;
use crate::received::Received;

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
pub struct Calling<T> {
    client: Client,
    call: Call,
    read: PhantomData<fn() -> T>,
}

impl<T> Calling<T> {
    pub(crate) fn new(client: Client, call: Call) -> Self {
        Self { client, call, read: PhantomData }
    }

    /// Tells a function of all progress.
    pub fn progress(self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_progress(tell), ..self }
    }

    /// Tells a function of the log messages of this call, where they can be told apart from those of others.
    pub fn log(self, tell: impl Fn(&LogMessage) + Send + Sync + 'static) -> Self {
        Self { call: self.call.on_log(tell), ..self }
    }

    /// Asks for log messages from a level on, where that is asked with each call.
    pub fn log_level(self, level: Level) -> Self {
        Self { call: self.call.log_level(level), ..self }
    }

    /// Sets how long the server may be silent; progress begins the time anew, up to
    /// [`Limits::call_at_most`](crate::Limits::call_at_most).
    pub fn timeout(self, silent_for: Duration) -> Self {
        Self { call: self.call.timeout(silent_for), ..self }
    }

    /// Adds a member to `_meta`, such as `traceparent`.
    pub fn meta(self, key: impl Into<String>, value: Raw) -> Self {
        Self { call: self.call.meta(key, value), ..self }
    }
}

/// A result that a call can have.
trait Answered: Sized {
    /// Reads the result.
    fn read(raw: &Raw) -> Result<Self, MalformedModel>;

    /// Returns the place where the result is kept, if such results may be kept at all.
    fn keeping(_: &Inner, _: &Call) -> Option<Ticket> {
        None
    }

    /// Checks the result against what else is known, and keeps it if it may be kept.
    fn check(&self, _: &Raw, _: &Inner, _: &Call, _: Option<Ticket>) -> Result<(), Error> {
        Ok(())
    }
}

impl Answered for CallToolResult {
    fn read(raw: &Raw) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn check(&self, _: &Raw, inner: &Inner, call: &Call, _: Option<Ticket>) -> Result<(), Error> {
        inner.tools.check(call, self)
    }
}

impl Answered for GetPromptResult {
    fn read(raw: &Raw) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }
}

impl Answered for CompleteResult {
    fn read(raw: &Raw) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }
}

impl Answered for ReadResult {
    fn read(raw: &Raw) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn keeping(inner: &Inner, call: &Call) -> Option<Ticket> {
        let is_plain = call.given.is_none() && call.meta.is_empty() && call.capabilities.is_none();
        call.name.as_ref().filter(|_| is_plain).map(|uri| inner.cache.ticket(Key::Read(uri.clone())))
    }

    fn check(&self, raw: &Raw, inner: &Inner, _: &Call, ticket: Option<Ticket>) -> Result<(), Error> {
        if let Some(ticket) = ticket {
            // Without the message around it, which may be much larger.
            inner.cache.put(ticket, self.cache, raw.as_str().len(), || Arc::new(raw.detached()));
        }
        Ok(())
    }
}

async fn answered<T: Answered>(client: Client, mut call: Call) -> Result<Received<T>, Error> {
    let inner = client.inner();
    let ticket = T::keeping(inner, &call);
    if let Some(kept) = ticket.as_ref().and_then(|ticket| inner.cache.get::<Raw>(&ticket.key)) {
        return read(Raw::clone(&kept));
    }
    let given = call.given.take();
    let received: Received<T> = read(inner.run(&call, given).await?)?;
    received.check(received.raw(), inner, &call, ticket)?;
    Ok(received)
}

fn read<T: Answered>(raw: Raw) -> Result<Received<T>, Error> {
    let value = T::read(&raw).map_err(|problem| Error::Malformed(problem.to_string()))?;
    Ok(Received::new(value, raw))
}

macro_rules! awaited {
    ($($result:ty),*) => {
        $(impl IntoFuture for Calling<$result> {
            type Output = Result<Received<$result>, Error>;
            type IntoFuture = BoxFuture<'static, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(answered(self.client, self.call))
            }
        })*
    };
}

awaited!(CallToolResult, ReadResult, GetPromptResult, CompleteResult);

impl<T> fmt::Debug for Calling<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calling").field(&self.call).finish()
    }
}
