mod calls;
mod client_requests;
mod outbox;
mod saved_record;
mod streams;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::{LoggingLevel, RawJson, RequestId, Revision};
use trunkline_session::{Principal, ProcessId, RecordChange, SessionId, SessionRecord, StreamId, Timestamp};

use self::client_requests::OpenClientRequest;
use self::outbox::SessionOutbox;
use self::saved_record::SavedRecord;
pub(crate) use self::streams::ResumableStream;
use super::standalone_stream::StandaloneStreamState;
use crate::call::{CallState, Caller, SessionState};
use crate::change::{ChangeSubscriber, ChangeSubscription};
use crate::metrics::process::GaugeGuard;
use crate::party::ClientParty;
use crate::wire_tap::{ClientWireObserver, ObservedClient};

/// The level of a session without one set by its client; no [`LoggingLevel`] has this number.
const NO_LEVEL: u8 = u8::MAX;

/// A session on this node: its record, and its current activity.
///
/// Idle, it holds empty tables that have allocated nothing.
pub(crate) struct LiveSession {
    record: SessionRecord,
    remote_address: Option<IpAddr>,
    /// The name of the transport.
    transport: &'static str,
    observer: Option<ClientWireObserver>,
    party: ClientParty,
    level: AtomicU8,
    last_used: AtomicU64,
    store_touched: AtomicU64,
    /// The client has sent `notifications/initialized`.
    initialized: AtomicBool,
    saved: Option<SavedRecord>,
    /// Where several processes share the session.
    outbox: Option<SessionOutbox>,
    state: Arc<SessionState>,
    activity: Mutex<SessionActivity>,
    _gauge: GaugeGuard,
}

/// The current activity of a session.
#[derive(Default)]
struct SessionActivity {
    /// The number that was assigned last, to a request or a stream; `None` before the first.
    number: Option<u64>,
    standalone_streams: HashMap<StreamId, Arc<StandaloneStreamState>>,
    ended: bool,
    /// The client sends no more, so that it cannot respond.
    input_closed: bool,
    open_requests: HashMap<RequestId, OpenClientRequest>,
    own_request: Option<RequestId>,
    calls: HashMap<RequestId, Arc<CallState>>,
    /// Cancellations of unregistered calls: one may have begun, and not be registered yet.
    cancelled: VecDeque<RequestId>,
    streams: HashMap<StreamId, Arc<ResumableStream>>,
    subscription: Option<Arc<ChangeSubscription>>,
}

impl SessionActivity {
    fn is_busy(&self) -> bool {
        !self.standalone_streams.is_empty() || !self.calls.is_empty()
    }

    /// Returns a number that is unused in the session.
    ///
    /// Numbers start at random: a session that is restored, here or on another node, does not know the earlier ones,
    /// and a late response or `Last-Event-ID` must not match a newer request or stream. The highest bits stay free.
    fn next_number(&mut self) -> u64 {
        let number = match self.number {
            Some(last) => last + 1,
            None => getrandom::u64().unwrap_or_default() >> 2,
        };
        *self.number.insert(number)
    }
}

impl LiveSession {
    pub(crate) fn new(record: SessionRecord, state: SessionState, now: Timestamp) -> Self {
        // No log messages before the client sets a level; the specification leaves that to the server.
        let level = record.log_level.map_or(NO_LEVEL, |level| level as u8);
        Self {
            remote_address: None,
            transport: "channel",
            observer: None,
            party: ClientParty::new(&record.principal, None),
            record,
            level: AtomicU8::new(level),
            last_used: AtomicU64::new(now.0),
            store_touched: AtomicU64::new(now.0),
            initialized: AtomicBool::new(false),
            saved: None,
            outbox: None,
            state: Arc::new(state),
            activity: Mutex::default(),
            _gauge: GaugeGuard::session(),
        }
    }

    /// Sets the address that it was opened from.
    pub(crate) fn with_address(mut self, address: Option<IpAddr>) -> Self {
        self.remote_address = address;
        self.party = ClientParty::new(&self.record.principal, address);
        self
    }

    /// Notifies an observer of the session's begin and end.
    pub(crate) fn observed_by(
        mut self,
        observer: Option<&ClientWireObserver>,
        transport: &'static str,
    ) -> Self {
        self.transport = transport;
        if let Some(observer) = observer {
            observer.connected(&self);
            self.observer = Some(observer.clone());
        }
        self
    }

    /// Describes the client for an observer.
    pub(crate) fn observed(&self) -> ObservedClient {
        ObservedClient::of_record(&self.record, self.transport)
    }

    /// Returns the party that it is counted for.
    pub(crate) fn party(&self) -> &ClientParty {
        &self.party
    }

    pub(crate) fn id(&self) -> SessionId {
        self.record.id
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.record.principal
    }

    pub(crate) fn revision(&self) -> Revision {
        self.record.revision
    }

    /// Returns the session as a recipient of change notifications.
    pub(crate) fn subscriber(&self) -> ChangeSubscriber {
        ChangeSubscriber {
            principal: self.record.principal.clone(),
            session: Some(self.record.id),
            connection: None,
            grant: None,
        }
    }

    /// Returns the state that the session keeps for its calls.
    pub(crate) fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// Returns the record as it was when this node began to serve the session.
    pub(crate) fn opening_record(&self) -> &SessionRecord {
        &self.record
    }

    pub(crate) fn created(&self) -> Timestamp {
        self.record.created
    }

    /// Describes the caller of a request of this session.
    pub(crate) fn caller(&self, request: &RequestId, progress_token: Option<RawJson>) -> Caller {
        Caller {
            principal: self.record.principal.clone(),
            revision: self.record.revision,
            capabilities: self.record.capabilities.clone(),
            client: self.record.client.clone(),
            request_id: Some(request.clone()),
            session: Some(self.record.id),
            connection: None,
            remote_address: self.remote_address,
            transport: self.transport,
            state_id: Some(self.state.states.id()),
            log_level: self.level(),
            progress_token,
            env: self.state.env(),
            grant: None,
        }
    }

    /// Records that the client has sent `notifications/initialized`.
    pub(crate) fn mark_initialized(&self) {
        self.initialized.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        LoggingLevel::ALL.get(usize::from(self.level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        if self.level.swap(level as u8, Ordering::Relaxed) != level as u8 {
            self.mark_changed(RecordChange::LogLevel(level));
        }
    }

    pub(crate) fn touch(&self, now: Timestamp) {
        self.last_used.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn last_used(&self) -> Timestamp {
        Timestamp(self.last_used.load(Ordering::Relaxed))
    }

    /// Records that the store is now notified of the session's use.
    pub(crate) fn touch_store(&self, now: Timestamp) {
        self.store_touched.store(now.0, Ordering::Relaxed);
    }

    /// Returns when the store was last notified of the session's use.
    pub(crate) fn store_touched(&self) -> Timestamp {
        Timestamp(self.store_touched.load(Ordering::Relaxed))
    }

    /// Reports whether a call runs or a standalone stream is open, so that an idle client is not taken for
    /// disconnected.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock().is_busy()
    }

    /// Reports whether a call runs.
    pub(crate) fn has_calls(&self) -> bool {
        !self.lock().calls.is_empty()
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Ends the session: its calls are cancelled and its streams are woken to find it ended.
    pub(crate) fn end(&self) {
        self.end_unless(|_| false);
    }

    /// Ends the session unless it is busy; reports whether it has ended.
    pub(crate) fn end_if_idle(&self) -> bool {
        self.end_unless(SessionActivity::is_busy);
        self.is_ended()
    }

    fn end_unless(&self, exempt: impl FnOnce(&SessionActivity) -> bool) {
        let (calls, streams, questions, subscription) = {
            let mut activity = self.lock();
            if exempt(&activity) || std::mem::replace(&mut activity.ended, true) {
                return;
            }
            (
                std::mem::take(&mut activity.calls),
                std::mem::take(&mut activity.streams),
                std::mem::take(&mut activity.open_requests),
                activity.subscription.take(),
            )
        };
        tracing::info!(session = %self.id().short(), "session ended");
        if let Some(observer) = &self.observer {
            observer.disconnected(self);
        }
        calls.values().for_each(|call| call.cancel());
        streams.values().for_each(|stream| stream.appended.notify_waiters());
        questions.into_values().for_each(OpenClientRequest::fail);
        self.state.states.end();
        if let Some(subscription) = subscription {
            subscription.wake();
        }
    }

    /// Ends the part of the session in this process, if it is not busy, and leaves its state to the other processes that use it.
    pub(crate) fn release(&self) -> bool {
        let mut activity = self.lock();
        if activity.is_busy() {
            return false;
        }
        activity.ended = true;
        true
    }

    /// Returns the process that serves the session here, if several share it.
    pub(crate) fn process(&self) -> Option<ProcessId> {
        self.outbox.as_ref().map(SessionOutbox::process)
    }

    fn lock(&self) -> MutexGuard<'_, SessionActivity> {
        self.activity.lock()
    }
}
