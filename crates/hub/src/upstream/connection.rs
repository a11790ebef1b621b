use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use trunkline_client::Client;
use trunkline_protocol::model::{ClientCapabilities, Root};
use trunkline_protocol::{Era, LoggingLevel};

use super::caller_profile::{ClientKey, PoolKey};
use super::caller_variables::CallerVariables;
use super::connection_scope::ConnectionScope;
use super::eviction::{SlotOwner, SlotUse};
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::roots::{KnownRoots, RootsDigest, UpstreamRoots};
use super::running_calls::RunningCalls;
use super::url_elicitations::UrlElicitations;
use super::wait_list::WaitList;

/// How long a connection opened for a call may stay unused before its first use.
pub(super) const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection to a server: a process, a session, or for a stateless server its endpoint.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    pub(crate) client: Client,
    pub(crate) input: InputSet,
    /// The variables that the server got of its callers.
    variables: CallerVariables,
    /// The era that was negotiated.
    pub(crate) era: Era,
    pub(crate) roots: Arc<UpstreamRoots>,
    pub(crate) url_elicitations: Arc<UrlElicitations>,
    pub(crate) running_calls: Arc<RunningCalls>,
    pub(super) started_at: Instant,
    scope: Mutex<ConnectionScope>,
    owner: Mutex<Option<SlotOwner<ClientKey>>>,
    /// Whether an input request identifies its call, so that any number of calls may require input at the same time.
    attributes_requests: bool,
    input_turn: Mutex<InputTurnState>,
    /// The calls that wait for a connection of the same server.
    wait_list: Arc<WaitList>,
    /// The number of leases so far.
    leases: AtomicU64,
    use_count: AtomicUsize,
    /// The current uses by the hub itself.
    hub_use_count: AtomicUsize,
    was_used: AtomicBool,
    /// Whether its first lists were fetched, if it had to fetch any.
    has_listed: AtomicBool,
    unused_since: Mutex<Instant>,
    log_level: AtomicU8,
    pub(super) is_closing: AtomicBool,
    pub(super) is_closed: AtomicBool,
    /// Notified when the connection has to be checked or closed.
    pub(super) wakeup: Notify,
}

/// The client that receives the input requests of a connection on which they do not identify their call.
#[derive(Debug, Default)]
struct InputTurnState {
    /// The number of its running calls.
    calls: usize,
    /// The client, or the last one if no call is running.
    client: Option<ClientKey>,
    /// The caller id of its calls.
    number: u64,
}

impl InputTurnState {
    /// Reports whether a client is certainly the one that has, or last had, the input turn.
    fn is_client(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.is_same_client(client))
    }

    /// Reports whether a call of a client may require input beside the running ones.
    fn may_share_with(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.may_share_with(client))
    }
}

/// The handlers of a server's requests and notifications outside of calls.
#[derive(Clone, Debug)]
pub(super) struct ConnectionCallbacks {
    pub(super) roots: Arc<UpstreamRoots>,
    pub(super) url_elicitations: Arc<UrlElicitations>,
    pub(super) calls: Arc<RunningCalls>,
}

/// A use of a connection, which is not closed meanwhile.
#[derive(Debug)]
pub(crate) struct ConnectionLease {
    /// The caller id of the call; calls of different clients have different ids.
    caller_id: u64,
    input_turn: Option<Arc<InputTurn>>,
    connection: Arc<UpstreamConnection>,
    holder: LeaseHolder,
}

/// The permit to receive input requests over a connection on which they do not identify their call. Only the calls of
/// one session may hold it at the same time.
#[derive(Debug)]
pub(crate) struct InputTurn(Arc<UpstreamConnection>);

impl Drop for InputTurn {
    fn drop(&mut self) {
        self.0.lock_input_turn().calls -= 1;
        self.0.wait_list.wake_for(&self.0);
    }
}

/// The holder of a lease, as far as it matters to the roots.
#[derive(Clone, Copy, Debug)]
enum LeaseHolder {
    /// A caller that was added to the connection's roots.
    Client(Option<RootsDigest>),
    /// The hub itself.
    Hub,
}

impl UpstreamConnection {
    pub(super) fn new(
        client: Client,
        key: PoolKey,
        callbacks: ConnectionCallbacks,
        waiting: Arc<WaitList>,
    ) -> Arc<Self> {
        let (
            ConnectionCallbacks { roots, url_elicitations, calls },
            PoolKey { scope, owner, input, variables, .. },
        ) = (callbacks, key);
        let now = Instant::now();
        Arc::new(Self {
            input,
            variables,
            roots,
            url_elicitations,
            running_calls: calls,
            started_at: now,
            scope: Mutex::new(scope),
            owner: Mutex::new(owner),
            era: client.revision().era(),
            attributes_requests: client.server().attributes_requests(),
            client,
            input_turn: Mutex::default(),
            wait_list: waiting,
            leases: AtomicU64::new(0),
            use_count: AtomicUsize::new(0),
            hub_use_count: AtomicUsize::new(0),
            was_used: AtomicBool::new(false),
            has_listed: AtomicBool::new(false),
            unused_since: Mutex::new(now),
            log_level: AtomicU8::new(u8::MAX),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            wakeup: Notify::new(),
        })
    }

    pub(super) fn scope(&self) -> ConnectionScope {
        self.scope.lock().clone()
    }

    /// Checks the scope without cloning it.
    pub(super) fn matches_scope(&self, is: impl FnOnce(&ConnectionScope) -> bool) -> bool {
        is(&self.scope.lock())
    }

    /// Reports whether the supervisor has to check the connection at the end of its last use.
    fn needs_check_after_use(&self) -> bool {
        let ends_with_use =
            |scope: &ConnectionScope| matches!(scope, ConnectionScope::Unassigned | ConnectionScope::Call);
        self.is_closing()
            || self.matches_scope(ends_with_use)
            || self.roots.is_tainted()
            || self.is_blocked_by_abandoned()
    }

    /// Returns the capabilities to declare for a caller's request. If input requests do not identify their call,
    /// those of the connection count for all of its calls, whatever the caller declares.
    pub(crate) fn declared_capabilities(&self, caller: ClientCapabilities) -> ClientCapabilities {
        if self.attributes_requests { caller } else { self.input.capabilities() }
    }

    /// Assigns the connection to a scope and an owner.
    pub(super) fn claim(&self, key: &PoolKey) {
        *self.scope.lock() = key.scope.clone();
        self.owner.lock().clone_from(&key.owner);
    }

    /// Returns the client that the connection counts against for eviction.
    pub(super) fn owner(&self) -> Option<SlotOwner<ClientKey>> {
        self.owner.lock().clone()
    }

    /// Returns the key of the listing that a stateful server returns over the connection.
    pub(super) fn listing_key(&self) -> ListingKey {
        ListingKey { era: self.era, input: self.input }
    }

    /// Reports whether the server got variables of its callers. What it lists and updates may depend on them, and is for
    /// no other caller.
    pub(crate) fn has_caller_variables(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Reports whether it is of a client without a session, which does not return after a restart.
    pub(super) fn is_of_unstored_client(&self) -> bool {
        matches!(&*self.owner.lock(), Some(SlotOwner { client: ClientKey::Connection(_), .. }))
    }

    /// Records that the first lists were fetched.
    pub(super) fn set_listed(&self) {
        self.has_listed.store(true, Ordering::SeqCst);
    }

    /// Reports whether the first lists were fetched, if it had to fetch any.
    pub(super) fn has_listed(&self) -> bool {
        self.has_listed.load(Ordering::SeqCst)
    }

    /// Reports whether its session is one that a key needs, whatever its scope.
    pub(super) fn matches_session(&self, key: &PoolKey) -> bool {
        self.input == key.input && self.era == key.era && self.variables == key.variables
    }

    /// Reports whether it belongs to the pool of a key.
    pub(super) fn matches_key(&self, key: &PoolKey) -> bool {
        self.matches_session(key) && self.matches_scope(|scope| *scope == key.scope)
    }

    /// Begins a use by a caller that was added to the roots.
    pub(super) fn lease(self: &Arc<Self>, caller: Option<&KnownRoots>) -> ConnectionLease {
        self.use_count.fetch_add(1, Ordering::SeqCst);
        self.was_used.store(true, Ordering::SeqCst);
        let caller = LeaseHolder::Client(caller.map(|(digest, _)| *digest));
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        ConnectionLease { caller_id: number, input_turn: None, connection: self.clone(), holder: caller }
    }

    fn lock_input_turn(&self) -> MutexGuard<'_, InputTurnState> {
        self.input_turn.lock()
    }

    /// Reports whether a call of a client may require input over the connection now, so that no input request of
    /// another client's call can reach it.
    ///
    /// An abandoned call may continue at the server and request input until the server answers it: an input request
    /// meanwhile could be from that call, and may only reach its own client.
    pub(super) fn may_be_asked(&self, client: &ClientKey) -> bool {
        if self.attributes_requests {
            return true;
        }
        let turn = self.lock_input_turn();
        match turn.calls {
            0 => turn.is_client(client) || self.client.abandoned_calls() == 0,
            _ => turn.may_share_with(client),
        }
    }

    /// Reports whether a client was the last with the input turn of the connection.
    pub(super) fn was_last_asked(&self, client: &ClientKey) -> bool {
        self.lock_input_turn().is_client(client)
    }

    /// Reports whether no call may require input over the connection until the server answers an abandoned call of a
    /// client that cannot be recognised by its next call.
    pub(super) fn is_blocked_by_abandoned(&self) -> bool {
        let is_unknown = || matches!(self.lock_input_turn().client, Some(ClientKey::Principal(_)));
        self.client.abandoned_calls() > 0 && is_unknown()
    }

    /// Begins a use by the hub itself.
    pub(super) fn lease_for_hub(self: &Arc<Self>) -> ConnectionLease {
        self.hub_use_count.fetch_add(1, Ordering::SeqCst);
        self.use_count.fetch_add(1, Ordering::SeqCst);
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        ConnectionLease {
            caller_id: number,
            input_turn: None,
            connection: self.clone(),
            holder: LeaseHolder::Hub,
        }
    }

    /// Reports whether the connection was ever used by a caller.
    pub(super) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::SeqCst)
    }

    pub(super) fn use_count(&self) -> usize {
        self.use_count.load(Ordering::SeqCst)
    }

    /// Returns the number of running calls.
    pub(super) fn call_count(&self) -> usize {
        self.use_count().saturating_sub(self.hub_use_count.load(Ordering::SeqCst))
    }

    /// Returns since when the connection is unused.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let since = *self.unused_since.lock();
        (self.use_count() == 0).then_some(since)
    }

    /// Returns how it counts against the connection limit.
    pub(super) fn slot_use(&self) -> SlotUse {
        match self.unused_since() {
            _ if self.is_closing() => SlotUse::Ending,
            Some(since) if !self.is_reserved() => SlotUse::Idle(since),
            _ => SlotUse::Busy,
        }
    }

    /// Reports whether it was opened for a call that has yet to claim it.
    fn is_reserved(&self) -> bool {
        let is_for_call = self.matches_scope(|scope| *scope != ConnectionScope::Unassigned);
        is_for_call && !self.was_used() && self.started_at.elapsed() < CLAIM_TIMEOUT
    }

    /// Reports whether it serves callers with these roots. If the server never requested roots at the start of a
    /// session, only roots that were sent within a call make a difference.
    pub(super) fn has_roots(&self, caller: Option<RootsDigest>, asks_roots: bool) -> bool {
        if asks_roots && self.input.has_roots() {
            self.roots.matches_caller(caller)
        } else {
            self.roots.accepts_caller(caller)
        }
    }

    /// Lowers the recorded log level; reports whether the server's level has to be lowered too.
    pub(crate) fn lowers_log_level(&self, level: LoggingLevel) -> bool {
        self.log_level.fetch_min(level as u8, Ordering::Relaxed) > level as u8
    }
}

impl ConnectionLease {
    /// Takes the input turn, if only one client may have it. Requires that [`UpstreamConnection::may_be_asked`] is
    /// true.
    pub(super) fn with_input_turn(mut self, client: ClientKey) -> Self {
        if !self.connection.attributes_requests {
            let mut turn = self.connection.lock_input_turn();
            if turn.may_share_with(&client) {
                self.caller_id = turn.number;
            }
            *turn = InputTurnState { calls: turn.calls + 1, client: Some(client), number: self.caller_id };
            drop(turn);
            self.input_turn = Some(Arc::new(InputTurn(self.connection.clone())));
        }
        self
    }

    /// Returns the caller id of the call.
    pub(crate) fn caller_id(&self) -> u64 {
        self.caller_id
    }

    /// Returns the input turn, for work that continues after the call.
    pub(crate) fn input_turn(&self) -> Option<Arc<InputTurn>> {
        self.input_turn.clone()
    }

    pub(crate) fn connection(&self) -> &Arc<UpstreamConnection> {
        &self.connection
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Reports whether a roots request of the server is certainly for the call that holds the lease.
    pub(crate) fn roots_request_is_own(&self) -> bool {
        self.connection.roots.belongs_to_call(self.connection.attributes_requests)
    }

    /// Records that the caller's roots were sent to the server; `known` are those that identify the caller's next
    /// call.
    pub(crate) fn note_caller_roots_sent(&self, known: Option<&[Root]>) {
        // The connection of one session serves no other client anyway.
        if !matches!(self.connection.scope(), ConnectionScope::Session(_)) {
            self.connection.roots.note_sent_in_call(known);
        }
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        // Before the use ends, since a waiting call needs both.
        self.input_turn = None;
        match self.holder {
            LeaseHolder::Client(digest) => self.connection.roots.remove_caller(digest),
            LeaseHolder::Hub => {
                self.connection.hub_use_count.fetch_sub(1, Ordering::SeqCst);
            }
        }
        *self.connection.unused_since.lock() = Instant::now();
        // The supervisor checks the idle timeout by itself, and is woken only for urgent checks.
        if self.connection.use_count.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.connection.needs_check_after_use() {
                self.connection.wake_supervisor();
            }
            self.connection.wait_list.wake_for(&self.connection);
        }
    }
}
