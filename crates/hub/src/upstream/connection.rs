use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use trunkline_client::Client;
use trunkline_protocol::Level;
use trunkline_protocol::model::Root;
use trunkline_server::Listener;
use trunkline_session::{Principal, SessionId};

use super::input::InputSet;
use super::pages::Pages;
use super::roots::{KnownRoots, RootsDigest, SessionRoots};

/// Whose a connection is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// Nobody's yet: it was made to learn what the server offers, and the first who fits may have it.
    Nobody,
    /// Everybody's.
    Everybody,
    /// One principal's.
    Principal(Principal),
    /// One session's.
    Session(SessionId),
    /// That of one call.
    Call,
}

impl Who {
    /// Reports whether somebody is told of changes over connections of this kind.
    pub(crate) fn is(&self, listener: &Listener) -> bool {
        match self {
            Self::Principal(principal) => *principal == listener.principal,
            Self::Session(session) => listener.session == Some(*session),
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
    pub(crate) roots: Arc<SessionRoots>,
    pub(crate) pages: Arc<Pages>,
    /// Held by the one call that may be asked something, where there may be only one.
    pub(crate) turn: Semaphore,
    pub(super) began: Instant,
    who: Mutex<Who>,
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

/// What the server of a connection asks outside of calls, or tells of afterwards.
#[derive(Clone, Debug)]
pub(super) struct Asides {
    pub(super) roots: Arc<SessionRoots>,
    pub(super) pages: Arc<Pages>,
}

/// A use of a connection, which is not ended meanwhile.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Connection>,
    caller: Caller,
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
    pub(super) fn new(client: Client, who: Who, input: InputSet, asides: Asides) -> Arc<Self> {
        let Asides { roots, pages } = asides;
        let now = Instant::now();
        Arc::new(Self {
            client,
            input,
            roots,
            pages,
            turn: Semaphore::new(1),
            began: now,
            who: Mutex::new(who),
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
        self.who.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports whether it is whose it should be, without making another of that.
    pub(super) fn is_whose(&self, is: impl FnOnce(&Who) -> bool) -> bool {
        is(&self.who.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports whether something is to be done as soon as nobody uses the connection any more.
    fn is_due_after_use(&self) -> bool {
        let ends_with_use = |who: &Who| matches!(who, Who::Nobody | Who::Call);
        self.is_closing() || self.is_whose(ends_with_use) || self.roots.is_spoilt()
    }

    /// Makes the connection somebody's.
    pub(super) fn claim(&self, who: Who) {
        *self.who.lock().unwrap_or_else(PoisonError::into_inner) = who;
    }

    /// Begins a use by somebody whom the roots have taken in.
    pub(super) fn lease(self: &Arc<Self>, caller: Option<&KnownRoots>) -> Lease {
        self.uses.fetch_add(1, Ordering::SeqCst);
        self.was_used.store(true, Ordering::SeqCst);
        let caller = Caller::TakenIn(caller.map(|(digest, _)| *digest));
        Lease { connection: self.clone(), caller }
    }

    /// Begins a use by the hub itself.
    pub(super) fn lease_to_hub(self: &Arc<Self>) -> Lease {
        self.uses_by_hub.fetch_add(1, Ordering::SeqCst);
        self.uses.fetch_add(1, Ordering::SeqCst);
        Lease { connection: self.clone(), caller: Caller::Hub }
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
        let since = *self.unused_since.lock().unwrap_or_else(PoisonError::into_inner);
        (self.uses() == 0).then_some(since)
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
        *self.minder.lock().unwrap_or_else(PoisonError::into_inner) = Some(minder);
    }

    /// Gives up the task that looks after the connection, and with it the connection.
    pub(super) fn abort_minder(&self) {
        let minder = self.minder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(minder) = minder {
            minder.abort();
        }
    }
}

impl Lease {
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Reports whether the server's question for roots is about the call that has the lease, and about nothing else.
    pub(crate) fn asks_caller_for_roots(&self) -> bool {
        self.connection.roots.is_calls_own(self.client().server().attributes_questions())
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
        match self.caller {
            Caller::TakenIn(digest) => self.connection.roots.leave(digest),
            Caller::Hub => {
                self.connection.uses_by_hub.fetch_sub(1, Ordering::SeqCst);
            }
        }
        *self.connection.unused_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        // Whoever minds the connection looks by itself whether it was unused for long, and is woken only for what cannot wait.
        if self.connection.uses.fetch_sub(1, Ordering::SeqCst) == 1 && self.connection.is_due_after_use() {
            self.connection.stir();
        }
    }
}
