use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_client::LogMessage;
use trunkline_config::ServerName;
use trunkline_protocol::shorten;
use trunkline_server::{Caller, Context, UpstreamItem};
use trunkline_session::SessionId;

/// The running calls of one connection.
///
/// A log message of a legacy server does not identify its call, and those outside of a single call are handled after
/// they were received: the call that caused one may have been answered meanwhile, and a call of another client have
/// begun. So it is forwarded only over a connection that has served one client alone; otherwise it goes to the hub's own
/// log.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<RunningCallTable>);

#[derive(Debug, Default)]
struct RunningCallTable {
    next: u64,
    running: Vec<RunningCallEntry>,
    served: ServedClients,
}

/// The clients of all calls of a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ServedClients {
    #[default]
    None,
    /// One client; `None` if it cannot be recognised, so that the next call may be of another.
    One(Option<SessionId>),
    Several,
}

impl ServedClients {
    fn with(self, client: Option<SessionId>) -> Self {
        match self {
            Self::None => Self::One(client),
            Self::One(known) if known.is_some() && known == client => self,
            Self::One(_) | Self::Several => Self::Several,
        }
    }
}

#[derive(Debug)]
struct RunningCallEntry {
    number: u64,
    context: Context,
}

/// A call that counts as running until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: Arc<RunningCalls>,
    number: u64,
}

impl RunningCalls {
    /// Registers a running call.
    pub(crate) fn begin(self: &Arc<Self>, context: &Context) -> RunningCall {
        let client = context.with_caller(Caller::client_id);
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.served = calls.served.with(client);
        calls.running.push(RunningCallEntry { number, context: context.clone() });
        RunningCall { calls: self.clone(), number }
    }

    /// Forwards a log message that does not identify its call.
    pub(super) fn log(&self, server: &ServerName, message: &LogMessage) {
        match self.only_client() {
            Some(context) => forward_log(&context, message),
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

    /// Returns the context of a running call, if the connection has served one client alone.
    fn only_client(&self) -> Option<Context> {
        let calls = self.lock();
        let first = calls.running.first().filter(|_| matches!(calls.served, ServedClients::One(_)))?;
        Some(first.context.clone())
    }

    fn lock(&self) -> MutexGuard<'_, RunningCallTable> {
        self.0.lock()
    }
}

/// Forwards a log message to a caller. One with data that some clients cannot parse is repaired or dropped, since such a
/// client may end its whole connection.
pub(crate) fn forward_log(context: &Context, message: &LogMessage) {
    let Some(data) = message.data.without_lone_surrogates() else {
        return UpstreamItem::MessageUnreadable.count(1);
    };
    UpstreamItem::MessageRepaired.count(usize::from(data != message.data));
    context.forward_log(message.level, message.logger.clone(), data);
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.lock().running.retain(|call| call.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_serves_one_client_until_another_or_an_unknown_one_calls() {
        let (one, other) = (SessionId::random(), SessionId::random());
        for (calls, expected) in [
            (&[][..], ServedClients::None),
            (&[Some(one)], ServedClients::One(Some(one))),
            (&[Some(one), Some(one)], ServedClients::One(Some(one))),
            (&[Some(one), Some(other), Some(one)], ServedClients::Several),
            (&[None], ServedClients::One(None)),
            (&[None, None], ServedClients::Several),
            (&[Some(one), None], ServedClients::Several),
        ] {
            let served = calls.iter().fold(ServedClients::None, |served, client| served.with(*client));
            assert_eq!(served, expected, "{calls:?}");
        }
    }
}
