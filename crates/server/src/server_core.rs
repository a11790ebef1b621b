use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use tokio::sync::Notify;
use trunkline_protocol::codec::{self, Dialect, ServerResult};
use trunkline_protocol::{
    JsonObject, JsonWriter, Method, Params, RawJson, Refusal, RequestId, Revision, RevisionSet, emit,
};
use trunkline_session::{StateKeys, Timestamp};

use crate::admission::{ByteBudget, BytePermit, KeyPermit, KeyQuota, WriteBudget};
use crate::bus::BusLink;
use crate::call::Handler;
use crate::caller_identity::CallerIdentity;
use crate::channel::ChannelSessions;
use crate::env::EnvSources;
use crate::host::HostOptions;
use crate::input_round::{StateSealer, SuspendedCalls};
use crate::limits::ServerLimits;
use crate::metrics::{CallTimer, MetricOutcome, Metrics};
use crate::open_input::OpenInputRequests;
use crate::party::ClientParty;
use crate::request_memory;
use crate::shutdown::{DrainPolicy, Shutdown};
use crate::state::StateStores;
use crate::wire_tap::ClientWireObserver;

/// The state that every edge of one server shares.
pub(crate) struct ServerCore {
    pub(crate) handler: Arc<dyn Handler>,
    /// The server's description of itself, rendered once for the modern edge, which repeats it in every result.
    pub(crate) server_info: RawJson,
    /// The supported revisions.
    pub(crate) revisions: RevisionSet,
    pub(crate) limits: ServerLimits,
    pub(crate) suspended_calls: SuspendedCalls,
    pub(crate) sealer: StateSealer,
    pub(crate) shutdown: Shutdown,
    pub(crate) subscription_quota: KeyQuota<ClientParty>,
    pub(crate) write_budget: Arc<WriteBudget>,
    request_memory: Arc<ByteBudget>,
    pub(crate) watched_uris: Arc<ByteBudget>,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) states: Arc<StateStores>,
    /// The connection to the other processes that share the sessions, if any do.
    pub(crate) bus: Option<Arc<BusLink>>,
    /// The legacy sessions of channels, which are in no store.
    pub(crate) channel_sessions: ChannelSessions,
    pub(crate) env: EnvSources,
    /// Whether roots are read from `clientInfo` too.
    pub(crate) client_info_roots: bool,
    /// Whether a legacy client has to send `notifications/initialized` before any request.
    pub(crate) require_initialized: bool,
    /// Whether the response to `initialize` has the session's id.
    pub(crate) session_in_meta: bool,
    /// Whether sessions request roots before a handler needs them.
    pub(crate) roots_at_start: bool,
    /// Observes the messages of all clients.
    pub(crate) observer: Option<ClientWireObserver>,
    /// The input requests that legacy clients were sent.
    pub(crate) open_input: Arc<OpenInputRequests>,
    calls: AtomicUsize,
    call_quota: KeyQuota<ClientParty>,
    idle: Notify,
}

impl ServerCore {
    pub(crate) fn new(handler: Arc<dyn Handler>, keys: &StateKeys, options: HostOptions) -> Arc<Self> {
        let HostOptions {
            revisions,
            limits,
            shutdown,
            metrics,
            state_limits,
            state_store,
            bus,
            env,
            client_info_roots,
            require_initialized: strict,
            session_in_meta,
            roots_at_start,
            observer,
            ..
        } = options;
        let mut writer = JsonWriter::with_capacity(96);
        handler.identity().write(Dialect::of(Revision::NEWEST), &mut writer);
        let core = Arc::new(Self {
            handler,
            revisions,
            server_info: writer.into_raw(),
            subscription_quota: KeyQuota::new(limits.subscriptions_per_principal)
                .with_total(limits.subscriptions),
            write_budget: WriteBudget::new(limits.unread_bytes),
            request_memory: ByteBudget::new(limits.request_memory_bytes),
            watched_uris: ByteBudget::new(limits.watched_uri_bytes),
            call_quota: KeyQuota::new(limits.calls_per_principal),
            suspended_calls: SuspendedCalls::new(&limits, shutdown.clone()),
            limits,
            sealer: StateSealer::new(keys),
            shutdown,
            metrics,
            states: Arc::new(StateStores::new(&state_limits, state_store)),
            bus: bus.map(BusLink::new),
            channel_sessions: ChannelSessions::default(),
            env: EnvSources::new(&env),
            client_info_roots,
            require_initialized: strict,
            session_in_meta,
            roots_at_start,
            observer,
            open_input: Arc::default(),
            calls: AtomicUsize::new(0),
            idle: Notify::new(),
        });
        if let Some(metrics) = &core.metrics {
            metrics.attach(&core);
        }
        if let Some(bus) = &core.bus {
            if let Some(changes) = core.handler.changes() {
                changes.also_publish_to(bus);
            }
            bus.start(&core);
        }
        core
    }

    /// Renders a response.
    pub(crate) fn result(&self, id: &RequestId, reply: &ServerResult, revision: Revision) -> String {
        let dialect = Dialect::of(revision);
        emit::result(id, reply.length_hint(), |writer| {
            codec::write_result(reply, dialect, &self.server_info, writer);
        })
    }

    /// Counts a call as running until the guard is dropped.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`] or [`Refusal::SHUTTING_DOWN`].
    pub(crate) fn admit_call(
        self: &Arc<Self>,
        party: ClientParty,
        policy: DrainPolicy,
    ) -> Result<AdmittedCall, Refusal> {
        if self.shutdown.refuses_calls(policy) {
            return Err(Refusal::SHUTTING_DOWN);
        }
        let mut guard = AdmittedCall { core: self.clone(), party, timing: None, permit: None };
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.limits.calls {
            return Err(Refusal::TOO_MANY);
        }
        // For clients that are no party of their own only the total holds, which is counted above.
        if guard.party.is_distinct() {
            let permit = self.call_quota.acquire_for_party(&guard.party, self.limits.calls_per_principal);
            guard.permit = Some(permit.ok_or_else(|| self.too_many_calls())?);
        }
        Ok(guard)
    }

    fn too_many_calls(&self) -> Refusal {
        let most = self.limits.calls_per_principal;
        Refusal::TOO_MANY
            .with_message(format!("at most {most} calls of one caller may run at a time; try again later"))
    }

    /// Reserves memory for a request of a party of which so many bytes have arrived.
    ///
    /// # Errors
    /// [`Refusal::TOO_MANY`]; the oldest large suspended call is evicted then, so that a retry succeeds: one of the
    /// party, unless it shares the whole budget with others.
    pub(crate) fn reserve_memory(
        &self,
        party: &ClientParty,
        reserved: &mut Option<BytePermit>,
        bytes: usize,
    ) -> Result<(), Refusal> {
        request_memory::reserve(&self.request_memory, party, reserved, bytes)
            .inspect_err(|_| self.suspended_calls.evict_oldest_large(party))
    }

    /// Returns how many calls run.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Waits until no call runs, in a server that drains.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.calls() == 0 {
                return;
            }
            notified.await;
        }
    }

    /// Returns the members that describe the server to a new peer.
    pub(crate) fn describe(&self, revision: Revision, caller: CallerIdentity<'_>) -> JsonObject {
        let mut members = JsonObject::new();
        let mut writer = JsonWriter::with_capacity(128);
        self.handler.capabilities().write(Dialect::of(revision), &mut writer);
        members.set("capabilities", writer.into_raw());
        if let Some(instructions) = self.handler.instructions(caller) {
            members.set("instructions", RawJson::from_text(&instructions));
        }
        members
    }
}

/// A call that is counted as running.
pub(crate) struct AdmittedCall {
    core: Arc<ServerCore>,
    party: ClientParty,
    timing: Option<CallTimer>,
    /// Counts it for its party.
    permit: Option<KeyPermit<ClientParty>>,
}

impl AdmittedCall {
    /// Returns the core that counts the call.
    pub(crate) fn core(&self) -> &Arc<ServerCore> {
        &self.core
    }

    /// Returns the party that the call counts for.
    pub(crate) fn party(&self) -> &ClientParty {
        &self.party
    }

    /// Begins to time the call, if there are metrics.
    pub(crate) fn start_timer(&mut self, method: Method, params: &Params, revision: Revision) {
        if let Some(metrics) = &self.core.metrics {
            self.timing = Some(metrics.start_call(&*self.core.handler, method, params, revision));
        }
    }

    /// Records the outcome of the call; a call without a recorded outcome was cancelled.
    pub(crate) fn record_outcome(&mut self, ended: MetricOutcome) {
        if let Some(timing) = &mut self.timing {
            timing.end(ended);
        }
    }
}

impl Drop for AdmittedCall {
    fn drop(&mut self) {
        // Before the last call is reported, so that a drained server counts nothing any more.
        drop(self.permit.take());
        // A task waits for the last call only after draining began, and checks the count again itself. So a call that
        // is the only one, as most are, need not take the lock of the waiters.
        if self.core.calls.fetch_sub(1, Ordering::SeqCst) == 1 && self.core.shutdown.is_draining() {
            self.core.idle.notify_waiters();
        }
    }
}

/// Reads the clock. Lower layers take the time as an argument.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}
