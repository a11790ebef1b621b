use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_client::LogMessage;
use trunkline_config::ServerName;
use trunkline_protocol::shorten;
use trunkline_server::{Caller, Context};
use trunkline_session::SessionId;

/// The calls that run over one connection.
///
/// A server of the legacy era does not say to which call a log message belongs. It is passed on only if all calls that it may be
/// about are those of one client; otherwise it goes to the log of the hub.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<RunningCallTable>);

#[derive(Debug, Default)]
struct RunningCallTable {
    next: u64,
    running: Vec<RunningCallEntry>,
    /// The clients of calls that were given up, and at which the server may still be at work; two are as many as a thousand.
    abandoned: Vec<Option<SessionId>>,
}

#[derive(Debug)]
struct RunningCallEntry {
    number: u64,
    /// Its client, if that is known from one call to the next.
    client: Option<SessionId>,
    context: Context,
}

/// A call that is counted among those that run, until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: Arc<RunningCalls>,
    number: u64,
    is_answered: bool,
}

impl RunningCalls {
    /// Counts a call among those that run.
    pub(crate) fn begin(self: &Arc<Self>, context: &Context) -> RunningCall {
        let client = context.with_caller(Caller::client_id);
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.running.push(RunningCallEntry { number, client, context: context.clone() });
        RunningCall { calls: self.clone(), number, is_answered: false }
    }

    /// Passes on a log message that names no call, and that may be about one that was given up.
    pub(super) fn log(&self, server: &ServerName, message: &LogMessage, is_abandoned: bool) {
        match self.only_client(is_abandoned) {
            Some(context) => context.forward_log(message.level, message.logger.clone(), message.data.clone()),
            None => tracing::debug!(
                %server,
                level = message.level.as_str(),
                logger = message.logger.as_deref(),
                data = shorten(message.data.as_str()),
                "a log message that belongs to no one client"
            ),
        }
    }

    /// Returns a call of the only client that has any.
    fn only_client(&self, is_abandoned: bool) -> Option<Context> {
        let mut calls = self.lock();
        if !is_abandoned {
            calls.abandoned.clear();
        }
        let (first, others) = calls.running.split_first()?;
        let mut others = others.iter().map(|other| other.client).chain(calls.abandoned.iter().copied());
        others.all(|other| other.is_some() && other == first.client).then(|| first.context.clone())
    }

    fn lock(&self) -> MutexGuard<'_, RunningCallTable> {
        self.0.lock()
    }
}

impl RunningCall {
    /// Notes that the server has answered the call, so that it is not at work on it any more.
    pub(crate) fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        let Some(at) = calls.running.iter().position(|call| call.number == self.number) else { return };
        let client = calls.running.remove(at).client;
        if !self.is_answered && calls.abandoned.len() < 2 && !calls.abandoned.contains(&client) {
            calls.abandoned.push(client);
        }
    }
}
