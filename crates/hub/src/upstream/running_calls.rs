use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_client::LogMessage;
use trunkline_config::ServerName;
use trunkline_protocol::shorten;
use trunkline_server::{Caller, Context, UpstreamItem};
use trunkline_session::SessionId;

/// The running calls of one connection.
///
/// A log message of a legacy server does not identify its call. It is forwarded only if all calls that it may belong
/// to are of one client; otherwise it goes to the hub's own log.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<RunningCallTable>);

#[derive(Debug, Default)]
struct RunningCallTable {
    next: u64,
    running: Vec<RunningCallEntry>,
    /// The clients of abandoned calls that the server may still be working on. Two different clients are enough to
    /// decide, so that no more are stored.
    abandoned: Vec<Option<SessionId>>,
}

#[derive(Debug)]
struct RunningCallEntry {
    number: u64,
    /// Its client, if it can be recognised from one call to the next.
    client: Option<SessionId>,
    context: Context,
}

/// A call that counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: Arc<RunningCalls>,
    number: u64,
    is_answered: bool,
}

impl RunningCalls {
    /// Registers a running call.
    pub(crate) fn begin(self: &Arc<Self>, context: &Context) -> RunningCall {
        let client = context.with_caller(Caller::client_id);
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.running.push(RunningCallEntry { number, client, context: context.clone() });
        RunningCall { calls: self.clone(), number, is_answered: false }
    }

    /// Forwards a log message that does not identify its call; `is_abandoned` if it may belong to an abandoned call.
    pub(super) fn log(&self, server: &ServerName, message: &LogMessage, is_abandoned: bool) {
        match self.only_client(is_abandoned) {
            Some(context) => context.forward_log(message.level, message.logger.clone(), message.data.clone()),
            None => {
                UpstreamItem::LogUnattributed.count(1);
                tracing::debug!(
                %server,
                level = message.level.as_str(),
                logger = message.logger.as_deref(),
                data = shorten(message.data.as_str()),
                "a log message that belongs to no one client"
                );
            }
        }
    }

    /// Returns the context of a call, if all calls are of one client.
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
    /// Records that the server has answered the call, and so does not work on it any more.
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
