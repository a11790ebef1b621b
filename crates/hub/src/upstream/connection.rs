use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::Client;
use trunkline_protocol::model::{ClientCapabilities, Root};
use trunkline_protocol::{Era, LoggingLevel};
use trunkline_server::ChangeSubscriber;
use trunkline_session::{Principal, SessionId};

use super::caller_profile::{ClientKey, PoolKey};
use super::eviction::SlotUse;
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::roots::{KnownRoots, RootsDigest, UpstreamRoots};
use super::running_calls::RunningCalls;
use super::url_elicitations::UrlElicitations;
use super::wait_list::WaitList;
use crate::options::AnonymousClients;
use crate::scope::SharingScope;

/// How long a connection that was made for a call may wait to be used for the first time.
pub(super) const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// Whose a connection is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionScope {
    /// Nobody's yet: it was made to learn what the server offers, and the first who fits may have it.
    Unassigned,
    /// Everybody's.
    Shared,
    /// One principal's.
    Principal(Principal),
    /// That of one client, by its session or connection.
    Session(SessionId),
    /// That of one call.
    Call,
}

impl ConnectionScope {
    /// Reports whether a listener hears of changes over connections of this kind.
    pub(crate) fn includes(&self, listener: &ChangeSubscriber, anonymous: AnonymousClients) -> bool {
        match self {
            Self::Principal(principal) => {
                let scope = SharingScope::of_listener(listener, anonymous);
                *principal == listener.principal && !matches!(scope, SharingScope::Client(_))
            }
            Self::Session(client) => listener.client_id() == Some(*client),
            Self::Shared => true,
            Self::Unassigned | Self::Call => false,
        }
    }
}

/// One connection to a server: a process, or a session, or for a server without sessions simply the way to it.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    pub(crate) client: Client,
    pub(crate) input: InputSet,
    /// The era that is spoken over it.
    pub(crate) era: Era,
    pub(crate) roots: Arc<UpstreamRoots>,
    pub(crate) url_elicitations: Arc<UrlElicitations>,
    pub(crate) running_calls: Arc<RunningCalls>,
    pub(super) started_at: Instant,
    scope: Mutex<ConnectionScope>,
    owner: Mutex<Option<ClientKey>>,
    /// Whether a question comes with the call that it is about, so that any number of calls may be asked at one time.
    attributes_requests: bool,
    input_turn: Mutex<InputTurnState>,
    /// The calls that wait for a connection of the same server.
    wait_list: Arc<WaitList>,
    /// How often it was used.
    leases: AtomicU64,
    use_count: AtomicUsize,
    /// Those of them that are the hub's own.
    hub_use_count: AtomicUsize,
    was_used: AtomicBool,
    unused_since: Mutex<Instant>,
    log_level: AtomicU8,
    is_closing: AtomicBool,
    is_closed: AtomicBool,
    /// Told when the connection is to be looked at or ended.
    wakeup: Notify,
    supervisor: Mutex<Option<AbortHandle>>,
}

/// The client that may be asked something over a connection on which nothing says to which call a question belongs.
#[derive(Debug, Default)]
struct InputTurnState {
    /// How many of its calls run.
    calls: usize,
    /// The client, or the last one if no call runs.
    client: Option<ClientKey>,
    /// The number under which its calls are made.
    number: u64,
}

impl InputTurnState {
    /// Reports whether a client is certainly the same that may be asked, or was last.
    fn is_client(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.is_same_client(client))
    }

    /// Reports whether a call of a client may be asked something beside those that run.
    fn may_share_with(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.may_share_with(client))
    }
}

/// What the server of a connection asks outside of calls, or tells of afterwards.
#[derive(Clone, Debug)]
pub(super) struct ConnectionCallbacks {
    pub(super) roots: Arc<UpstreamRoots>,
    pub(super) url_elicitations: Arc<UrlElicitations>,
    pub(super) calls: Arc<RunningCalls>,
}

/// A use of a connection, which is not ended meanwhile.
#[derive(Debug)]
pub(crate) struct ConnectionLease {
    /// The number under which the call is made; calls of different clients have different ones.
    caller_id: u64,
    input_turn: Option<Arc<InputTurn>>,
    connection: Arc<UpstreamConnection>,
    holder: LeaseHolder,
}

/// The right of a call to be asked something, over a connection on which nothing says to which call a question belongs. Only the
/// calls of one session may have it at one time.
#[derive(Debug)]
pub(crate) struct InputTurn(Arc<UpstreamConnection>);

impl Drop for InputTurn {
    fn drop(&mut self) {
        self.0.lock_input_turn().calls -= 1;
        self.0.wait_list.wake_for(&self.0);
    }
}

/// Who uses a connection, as far as its roots go.
#[derive(Clone, Copy, Debug)]
enum LeaseHolder {
    /// Somebody whom the roots have taken in.
    Client(Option<RootsDigest>),
    /// The hub itself.
    Hub,
}

impl UpstreamConnection {
    pub(super) fn new(
        client: Client,
        place: PoolKey,
        asides: ConnectionCallbacks,
        waiting: Arc<WaitList>,
    ) -> Arc<Self> {
        let (
            ConnectionCallbacks { roots, url_elicitations: pages, calls },
            PoolKey { scope: who, owner, input, .. },
        ) = (asides, place);
        let now = Instant::now();
        Arc::new(Self {
            input,
            roots,
            url_elicitations: pages,
            running_calls: calls,
            started_at: now,
            scope: Mutex::new(who),
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
            unused_since: Mutex::new(now),
            log_level: AtomicU8::new(u8::MAX),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            wakeup: Notify::new(),
            supervisor: Mutex::default(),
        })
    }

    pub(super) fn scope(&self) -> ConnectionScope {
        self.scope.lock().clone()
    }

    /// Reports whether it is whose it should be, without making another of that.
    pub(super) fn matches_scope(&self, is: impl FnOnce(&ConnectionScope) -> bool) -> bool {
        is(&self.scope.lock())
    }

    /// Reports whether something is to be done as soon as nobody uses the connection any more.
    fn needs_check_after_use(&self) -> bool {
        let ends_with_use =
            |who: &ConnectionScope| matches!(who, ConnectionScope::Unassigned | ConnectionScope::Call);
        self.is_closing()
            || self.matches_scope(ends_with_use)
            || self.roots.is_tainted()
            || self.is_blocked_by_abandoned()
    }

    /// Returns what a caller can be asked over the connection, by a server that asks by requests of its own: what the
    /// connection has declared where that counts for all of its calls, whatever the caller declares itself.
    pub(crate) fn declared_capabilities(&self, caller: ClientCapabilities) -> ClientCapabilities {
        if self.attributes_requests { caller } else { self.input.capabilities() }
    }

    /// Makes the connection somebody's.
    pub(super) fn claim(&self, place: &PoolKey) {
        *self.scope.lock() = place.scope.clone();
        self.owner.lock().clone_from(&place.owner);
    }

    /// Returns whose it is when there are too many.
    pub(super) fn owner(&self) -> Option<ClientKey> {
        self.owner.lock().clone()
    }

    /// Returns the key of what the server lists over the connection, if it keeps sessions.
    pub(super) fn listing_key(&self) -> ListingKey {
        ListingKey { era: self.era, input: self.input }
    }

    /// Reports whether it is one of those that serve a party.
    pub(super) fn matches_key(&self, place: &PoolKey) -> bool {
        self.input == place.input && self.era == place.era && self.matches_scope(|who| *who == place.scope)
    }

    /// Begins a use by somebody whom the roots have taken in.
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

    /// Reports whether a call of a client may be asked something over the connection now, so that no question of another
    /// client's call can reach it.
    ///
    /// A call that was given up may go on at the server and ask, until the server answers it: what is asked meanwhile could
    /// be its question, and may only reach its own client.
    pub(super) fn may_be_asked(&self, client: &ClientKey) -> bool {
        if self.attributes_requests {
            return true;
        }
        let asking = self.lock_input_turn();
        match asking.calls {
            0 => asking.is_client(client) || self.client.abandoned_calls() == 0,
            _ => asking.may_share_with(client),
        }
    }

    /// Reports whether a client was the last that could be asked something over the connection.
    pub(super) fn was_last_asked(&self, client: &ClientKey) -> bool {
        self.lock_input_turn().is_client(client)
    }

    /// Reports whether no call may be asked anything over the connection until the server answers one that was given up, by
    /// a client that is not known by its next call.
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

    /// Reports whether anybody has ever used the connection.
    pub(super) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::SeqCst)
    }

    pub(super) fn use_count(&self) -> usize {
        self.use_count.load(Ordering::SeqCst)
    }

    /// Returns how many calls run over the connection.
    pub(super) fn call_count(&self) -> usize {
        self.use_count().saturating_sub(self.hub_use_count.load(Ordering::SeqCst))
    }

    /// Returns since when nobody uses the connection.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let since = *self.unused_since.lock();
        (self.use_count() == 0).then_some(since)
    }

    /// Returns how it is used, as far as it counts against those that there may be.
    pub(super) fn slot_use(&self) -> SlotUse {
        match self.unused_since() {
            _ if self.is_closing() => SlotUse::Ending,
            Some(since) if !self.is_reserved() => SlotUse::Idle(since),
            _ => SlotUse::Busy,
        }
    }

    /// Reports whether it was made for a call that is about to begin to use it.
    fn is_reserved(&self) -> bool {
        let is_for_call = self.matches_scope(|who| *who != ConnectionScope::Unassigned);
        is_for_call && !self.was_used() && self.started_at.elapsed() < CLAIM_TIMEOUT
    }

    /// Reports whether it serves callers of some roots; where the server never asked for any when a session begins, only
    /// those that it was told of within a call make a difference.
    pub(super) fn has_roots(&self, caller: Option<RootsDigest>, asks_roots: bool) -> bool {
        if asks_roots && self.input.has_roots() {
            self.roots.matches_caller(caller)
        } else {
            self.roots.accepts_caller(caller)
        }
    }

    /// Asks for the connection to be ended; from here on nobody may begin to use it.
    pub(crate) fn request_close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.wake_supervisor();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Has it looked at whether the connection is still of any use.
    pub(super) fn wake_supervisor(&self) {
        self.wakeup.notify_waiters();
    }

    /// Waits until the connection is to be ended.
    pub(super) async fn close_requested(&self) {
        loop {
            let stirred = self.wakeup.notified();
            if self.is_closing() {
                return;
            }
            stirred.await;
        }
    }

    /// Notes that nothing is left of the connection.
    pub(super) fn set_closed(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Waits until the connection is to be looked at or ended.
    pub(super) fn woken(&self) -> impl Future<Output = ()> {
        self.wakeup.notified()
    }

    /// Waits until nobody uses the connection, at most for a time.
    pub(super) async fn drained(&self, within: Duration) {
        let drained = async {
            loop {
                let stirred = self.wakeup.notified();
                if self.use_count() == 0 {
                    return;
                }
                stirred.await;
            }
        };
        let _ = tokio::time::timeout(within, drained).await;
    }

    /// Reports whether the server has to be asked for milder log messages than before, and notes that it is.
    pub(crate) fn lowers_log_level(&self, level: LoggingLevel) -> bool {
        self.log_level.fetch_min(level as u8, Ordering::Relaxed) > level as u8
    }

    pub(super) fn set_supervisor(&self, minder: AbortHandle) {
        *self.supervisor.lock() = Some(minder);
    }

    /// Gives up the task that looks after the connection, and with it the connection.
    pub(super) fn abort_supervisor(&self) {
        let minder = self.supervisor.lock().take();
        if let Some(minder) = minder {
            minder.abort();
        }
    }
}

impl ConnectionLease {
    /// Takes the right to be asked something, where only one client may have it; [`UpstreamConnection::may_be_asked`] was so.
    pub(super) fn with_input_turn(mut self, client: ClientKey) -> Self {
        if !self.connection.attributes_requests {
            let mut asking = self.connection.lock_input_turn();
            if asking.may_share_with(&client) {
                self.caller_id = asking.number;
            }
            *asking =
                InputTurnState { calls: asking.calls + 1, client: Some(client), number: self.caller_id };
            drop(asking);
            self.input_turn = Some(Arc::new(InputTurn(self.connection.clone())));
        }
        self
    }

    /// Returns the number under which the call is made.
    pub(crate) fn caller_id(&self) -> u64 {
        self.caller_id
    }

    /// Returns the right to be asked something, for what goes on after the call.
    pub(crate) fn input_turn(&self) -> Option<Arc<InputTurn>> {
        self.input_turn.clone()
    }

    pub(crate) fn connection(&self) -> &Arc<UpstreamConnection> {
        &self.connection
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Reports whether the server's question for roots is about the call that has the lease, and about nothing else.
    pub(crate) fn roots_request_is_own(&self) -> bool {
        self.connection.roots.belongs_to_call(self.connection.attributes_requests)
    }

    /// Notes that the server was told of the caller's roots; `known` are those that its next call comes with.
    pub(crate) fn note_caller_roots_sent(&self, known: Option<&[Root]>) {
        // What is one session's own serves nobody else anyway.
        if !matches!(self.connection.scope(), ConnectionScope::Session(_)) {
            self.connection.roots.note_sent_in_call(known);
        }
    }
}

impl Drop for ConnectionLease {
    fn drop(&mut self) {
        // Before the use ends, since calls that wait for either look for both.
        self.input_turn = None;
        match self.holder {
            LeaseHolder::Client(digest) => self.connection.roots.remove_caller(digest),
            LeaseHolder::Hub => {
                self.connection.hub_use_count.fetch_sub(1, Ordering::SeqCst);
            }
        }
        *self.connection.unused_since.lock() = Instant::now();
        // Whoever minds the connection looks by itself whether it was unused for long, and is woken only for what cannot wait.
        if self.connection.use_count.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.connection.needs_check_after_use() {
                self.connection.wake_supervisor();
            }
            self.connection.wait_list.wake_for(&self.connection);
        }
    }
}
