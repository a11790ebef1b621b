use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::Client;
use trunkline_protocol::model::{ClientCapabilities, Root};
use trunkline_protocol::{Era, Level};
use trunkline_server::Listener;
use trunkline_session::{Principal, SessionId};

use super::input::InputSet;
use super::listing_key::ListingKey;
use super::pages::Pages;
use super::party::{ClientKey, Place};
use super::room::Use;
use super::roots::{KnownRoots, RootsDigest, SessionRoots};
use super::running_calls::RunningCalls;
use super::wait_list::WaitList;
use crate::options::AnonymousClients;
use crate::scope::SharingScope;

/// How long a connection that was made for a call may wait to be used for the first time.
pub(super) const UNCLAIMED: Duration = Duration::from_secs(5);

/// Whose a connection is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// Nobody's yet: it was made to learn what the server offers, and the first who fits may have it.
    Nobody,
    /// Everybody's.
    Everybody,
    /// One principal's.
    Principal(Principal),
    /// That of one client, by its session or connection.
    Session(SessionId),
    /// That of one call.
    Call,
}

impl Who {
    /// Reports whether a listener hears of changes over connections of this kind.
    pub(crate) fn is(&self, listener: &Listener, anonymous: AnonymousClients) -> bool {
        match self {
            Self::Principal(principal) => {
                let scope = SharingScope::of_listener(listener, anonymous);
                *principal == listener.principal && !matches!(scope, SharingScope::Client(_))
            }
            Self::Session(client) => listener.client_id() == Some(*client),
            Self::Everybody => true,
            Self::Nobody | Self::Call => false,
        }
    }
}

/// One connection to a server: a process, or a session, or for a server without sessions simply the way to it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) input: InputSet,
    /// The era that is spoken over it.
    pub(crate) era: Era,
    pub(crate) roots: Arc<SessionRoots>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) calls_running: Arc<RunningCalls>,
    pub(super) began: Instant,
    who: Mutex<Who>,
    owner: Mutex<Option<ClientKey>>,
    /// Whether a question comes with the call that it is about, so that any number of calls may be asked at one time.
    attributes_questions: bool,
    asking: Mutex<Asking>,
    /// The calls that wait for a connection of the same server.
    waiting: Arc<WaitList>,
    /// How often it was used.
    leases: AtomicU64,
    uses: AtomicUsize,
    /// Those of them that are the hub's own.
    uses_by_hub: AtomicUsize,
    was_used: AtomicBool,
    unused_since: Mutex<Instant>,
    level: AtomicU8,
    is_closing: AtomicBool,
    is_over: AtomicBool,
    /// Told when the connection is to be looked at or ended.
    stirred: Notify,
    minder: Mutex<Option<AbortHandle>>,
}

/// The client that may be asked something over a connection on which nothing says to which call a question belongs.
#[derive(Debug, Default)]
struct Asking {
    /// How many of its calls run.
    calls: usize,
    /// The client, or the last one if no call runs.
    client: Option<ClientKey>,
    /// The number under which its calls are made.
    number: u64,
}

impl Asking {
    /// Reports whether a client is certainly the same that may be asked, or was last.
    fn is_client(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.is_client(client))
    }

    /// Reports whether a call of a client may be asked something beside those that run.
    fn is_shared_with(&self, client: &ClientKey) -> bool {
        self.client.as_ref().is_some_and(|known| known.shares_with(client))
    }
}

/// What the server of a connection asks outside of calls, or tells of afterwards.
#[derive(Clone, Debug)]
pub(super) struct Asides {
    pub(super) roots: Arc<SessionRoots>,
    pub(super) pages: Arc<Pages>,
    pub(super) calls: Arc<RunningCalls>,
}

/// A use of a connection, which is not ended meanwhile.
#[derive(Debug)]
pub(crate) struct Lease {
    /// The number under which the call is made; calls of different clients have different ones.
    number: u64,
    turn: Option<Arc<AskingTurn>>,
    connection: Arc<Connection>,
    caller: Caller,
}

/// The right of a call to be asked something, over a connection on which nothing says to which call a question belongs. Only the
/// calls of one session may have it at one time.
#[derive(Debug)]
pub(crate) struct AskingTurn(Arc<Connection>);

impl Drop for AskingTurn {
    fn drop(&mut self) {
        self.0.asking().calls -= 1;
        self.0.waiting.wake_for(&self.0);
    }
}

/// Who uses a connection, as far as its roots go.
#[derive(Clone, Copy, Debug)]
enum Caller {
    /// Somebody whom the roots have taken in.
    TakenIn(Option<RootsDigest>),
    /// The hub itself.
    Hub,
}

impl Connection {
    pub(super) fn new(client: Client, place: Place, asides: Asides, waiting: Arc<WaitList>) -> Arc<Self> {
        let (Asides { roots, pages, calls }, Place { who, owner, input, .. }) = (asides, place);
        let now = Instant::now();
        Arc::new(Self {
            input,
            roots,
            pages,
            calls_running: calls,
            began: now,
            who: Mutex::new(who),
            owner: Mutex::new(owner),
            era: client.revision().era(),
            attributes_questions: client.server().attributes_questions(),
            client,
            asking: Mutex::default(),
            waiting,
            leases: AtomicU64::new(0),
            uses: AtomicUsize::new(0),
            uses_by_hub: AtomicUsize::new(0),
            was_used: AtomicBool::new(false),
            unused_since: Mutex::new(now),
            level: AtomicU8::new(u8::MAX),
            is_closing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            stirred: Notify::new(),
            minder: Mutex::default(),
        })
    }

    pub(super) fn who(&self) -> Who {
        self.who.lock().clone()
    }

    /// Reports whether it is whose it should be, without making another of that.
    pub(super) fn is_whose(&self, is: impl FnOnce(&Who) -> bool) -> bool {
        is(&self.who.lock())
    }

    /// Reports whether something is to be done as soon as nobody uses the connection any more.
    fn is_due_after_use(&self) -> bool {
        let ends_with_use = |who: &Who| matches!(who, Who::Nobody | Who::Call);
        self.is_closing() || self.is_whose(ends_with_use) || self.roots.is_spoilt() || self.is_unsettled()
    }

    /// Returns what a caller can be asked over the connection, by a server that asks by requests of its own: what the
    /// connection has declared where that counts for all of its calls, whatever the caller declares itself.
    pub(crate) fn declared(&self, caller: ClientCapabilities) -> ClientCapabilities {
        if self.attributes_questions { caller } else { self.input.capabilities() }
    }

    /// Makes the connection somebody's.
    pub(super) fn claim(&self, place: &Place) {
        *self.who.lock() = place.who.clone();
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
    pub(super) fn is_at(&self, place: &Place) -> bool {
        self.input == place.input && self.era == place.era && self.is_whose(|who| *who == place.who)
    }

    /// Begins a use by somebody whom the roots have taken in.
    pub(super) fn lease(self: &Arc<Self>, caller: Option<&KnownRoots>) -> Lease {
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.was_used.store(true, Ordering::SeqCst);
        let caller = Caller::TakenIn(caller.map(|(digest, _)| *digest));
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        Lease { number, turn: None, connection: self.clone(), caller }
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.asking.lock()
    }

    /// Reports whether a call of a client may be asked something over the connection now, so that no question of another
    /// client's call can reach it.
    ///
    /// A call that was given up may go on at the server and ask, until the server answers it: what is asked meanwhile could
    /// be its question, and may only reach its own client.
    pub(super) fn may_be_asked(&self, client: &ClientKey) -> bool {
        if self.attributes_questions {
            return true;
        }
        let asking = self.asking();
        match asking.calls {
            0 => asking.is_client(client) || self.client.abandoned_calls() == 0,
            _ => asking.is_shared_with(client),
        }
    }

    /// Reports whether a client was the last that could be asked something over the connection.
    pub(super) fn was_asked(&self, client: &ClientKey) -> bool {
        self.asking().is_client(client)
    }

    /// Reports whether no call may be asked anything over the connection until the server answers one that was given up, by
    /// a client that is not known by its next call.
    pub(super) fn is_unsettled(&self) -> bool {
        let is_unknown = || matches!(self.asking().client, Some(ClientKey::Principal(_)));
        self.client.abandoned_calls() > 0 && is_unknown()
    }

    /// Begins a use by the hub itself.
    pub(super) fn lease_to_hub(self: &Arc<Self>) -> Lease {
        self.uses_by_hub.fetch_add(1, Ordering::SeqCst);
        self.uses.fetch_add(1, Ordering::SeqCst);
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        Lease { number, turn: None, connection: self.clone(), caller: Caller::Hub }
    }

    /// Reports whether anybody has ever used the connection.
    pub(super) fn was_used(&self) -> bool {
        self.was_used.load(Ordering::SeqCst)
    }

    pub(super) fn uses(&self) -> usize {
        self.uses.load(Ordering::SeqCst)
    }

    /// Returns how many calls run over the connection.
    pub(super) fn calls(&self) -> usize {
        self.uses().saturating_sub(self.uses_by_hub.load(Ordering::SeqCst))
    }

    /// Returns since when nobody uses the connection.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let since = *self.unused_since.lock();
        (self.uses() == 0).then_some(since)
    }

    /// Returns how it is used, as far as it counts against those that there may be.
    pub(super) fn state(&self) -> Use {
        match self.unused_since() {
            _ if self.is_closing() => Use::Ending,
            Some(since) if !self.is_reserved() => Use::Idle(since),
            _ => Use::Busy,
        }
    }

    /// Reports whether it was made for a call that is about to begin to use it.
    fn is_reserved(&self) -> bool {
        let is_for_call = self.is_whose(|who| *who != Who::Nobody);
        is_for_call && !self.was_used() && self.began.elapsed() < UNCLAIMED
    }

    /// Reports whether it serves callers of some roots; where the server never asked for any when a session begins, only
    /// those that it was told of within a call make a difference.
    pub(super) fn has_roots(&self, caller: Option<RootsDigest>, asks_roots: bool) -> bool {
        if asks_roots && self.input.has_roots() { self.roots.fits(caller) } else { self.roots.serves(caller) }
    }

    /// Asks for the connection to be ended; from here on nobody may begin to use it.
    pub(crate) fn end(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.stir();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Has it looked at whether the connection is still of any use.
    pub(super) fn stir(&self) {
        self.stirred.notify_waiters();
    }

    /// Waits until the connection is to be ended.
    pub(super) async fn closing(&self) {
        loop {
            let stirred = self.stirred.notified();
            if self.is_closing() {
                return;
            }
            stirred.await;
        }
    }

    /// Notes that nothing is left of the connection.
    pub(super) fn set_over(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Waits until the connection is to be looked at or ended.
    pub(super) fn stirred(&self) -> impl Future<Output = ()> {
        self.stirred.notified()
    }

    /// Waits until nobody uses the connection, at most for a time.
    pub(super) async fn drained(&self, within: Duration) {
        let drained = async {
            loop {
                let stirred = self.stirred.notified();
                if self.uses() == 0 {
                    return;
                }
                stirred.await;
            }
        };
        let _ = tokio::time::timeout(within, drained).await;
    }

    /// Reports whether the server has to be asked for milder log messages than before, and notes that it is.
    pub(crate) fn lowers_level(&self, level: Level) -> bool {
        self.level.fetch_min(level as u8, Ordering::Relaxed) > level as u8
    }

    pub(super) fn set_minder(&self, minder: AbortHandle) {
        *self.minder.lock() = Some(minder);
    }

    /// Gives up the task that looks after the connection, and with it the connection.
    pub(super) fn abort_minder(&self) {
        let minder = self.minder.lock().take();
        if let Some(minder) = minder {
            minder.abort();
        }
    }
}

impl Lease {
    /// Takes the right to be asked something, where only one client may have it; [`Connection::may_be_asked`] was so.
    pub(super) fn with_turn(mut self, client: ClientKey) -> Self {
        if !self.connection.attributes_questions {
            let mut asking = self.connection.asking();
            if asking.is_shared_with(&client) {
                self.number = asking.number;
            }
            *asking = Asking { calls: asking.calls + 1, client: Some(client), number: self.number };
            drop(asking);
            self.turn = Some(Arc::new(AskingTurn(self.connection.clone())));
        }
        self
    }

    /// Returns the number under which the call is made.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the right to be asked something, for what goes on after the call.
    pub(crate) fn turn(&self) -> Option<Arc<AskingTurn>> {
        self.turn.clone()
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Reports whether the server's question for roots is about the call that has the lease, and about nothing else.
    pub(crate) fn asks_caller_for_roots(&self) -> bool {
        self.connection.roots.is_calls_own(self.connection.attributes_questions)
    }

    /// Notes that the server was told of the caller's roots; `known` are those that its next call comes with.
    pub(crate) fn told_callers_roots(&self, known: Option<&[Root]>) {
        // What is one session's own serves nobody else anyway.
        if !matches!(self.connection.who(), Who::Session(_)) {
            self.connection.roots.told_in_call(known);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Before the use ends, since calls that wait for either look for both.
        self.turn = None;
        match self.caller {
            Caller::TakenIn(digest) => self.connection.roots.leave(digest),
            Caller::Hub => {
                self.connection.uses_by_hub.fetch_sub(1, Ordering::SeqCst);
            }
        }
        *self.connection.unused_since.lock() = Instant::now();
        // Whoever minds the connection looks by itself whether it was unused for long, and is woken only for what cannot wait.
        if self.connection.uses.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.connection.is_due_after_use() {
                self.connection.stir();
            }
            self.connection.waiting.wake_for(&self.connection);
        }
    }
}
