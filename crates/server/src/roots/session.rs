use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use trunkline_protocol::model::{InputRequest, InputResponse, Root};
use trunkline_protocol::{JsonObject, RawJson};

use super::MAX_ROOTS;

/// How long a request counts as open; after that another may be sent.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The known roots of a legacy session's client.
///
/// The first call that needs them sends the request, and after every change again. With `at_start` the session itself
/// requests them after the handshake and after every change: over a channel, and over HTTP on a standalone stream.
#[derive(Debug)]
pub(crate) struct ClientRoots {
    declared: bool,
    /// Whether roots are requested before a call needs them.
    at_start: bool,
    /// The roots in `clientInfo`, where these count.
    client_info_roots: Vec<Root>,
    state: Mutex<RootsState>,
    /// Whether the session itself should send a request; outside of the lock, since it is read with every message.
    should_request: AtomicBool,
    changed: Notify,
    request_wanted: Notify,
    /// The task of a channel, which sends requests that were scheduled outside of it.
    channel_waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct RootsState {
    listed: Option<Vec<Root>>,
    /// Counts the changes that the client has reported.
    change: u64,
    /// The change that `listed` is not older than.
    known_change: Option<u64>,
    request: Option<RootsRequest>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct RootsRequest {
    change: u64,
    at: Instant,
}

/// The state of a session's roots.
pub(crate) enum RootsLookup<'a> {
    Known(Vec<Root>),
    Pending,
    Request(RootsRequestGuard<'a>),
}

/// A request that a call is about to send. When it is dropped without a response, others may send theirs.
pub(crate) struct RootsRequestGuard<'a>(&'a ClientRoots, RootsRequest);

impl Drop for RootsRequestGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.request == Some(self.1) {
            state.request = None;
        }
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl ClientRoots {
    pub(crate) fn new(declared: bool, at_start: bool, client_info_roots: Vec<Root>) -> Self {
        Self {
            declared,
            at_start,
            client_info_roots,
            state: Mutex::default(),
            should_request: AtomicBool::new(false),
            changed: Notify::new(),
            request_wanted: Notify::new(),
            channel_waker: AtomicWaker::new(),
        }
    }

    /// Records that the client can be sent requests from now on, or that its roots have changed.
    pub(crate) fn refresh(&self) {
        if !self.declared {
            return;
        }
        self.lock().change += 1;
        if self.at_start {
            self.schedule_request();
        }
    }

    fn schedule_request(&self) {
        self.should_request.store(true, Ordering::Release);
        self.request_wanted.notify_waiters();
        self.channel_waker.wake();
    }

    /// Registers the task of a channel to be woken for scheduled requests; false if there will be none.
    pub(crate) fn register_if_declared(&self, waker: &Waker) -> bool {
        if self.declared {
            self.channel_waker.register(waker);
        }
        self.declared
    }

    /// Returns the client's roots, and has the session request them if they are not known.
    pub(super) async fn request_in_session(&self) -> Vec<Root> {
        loop {
            let changed = self.changed.notified();
            let (fresh, requesting) = {
                let state = self.lock();
                (state.is_fresh(), state.is_requesting())
            };
            if fresh {
                return self.best_known();
            }
            if !requesting {
                self.schedule_request();
            }
            changed.await;
        }
    }

    /// Waits until the session itself should send a request.
    pub(crate) async fn wait_until_wanted(&self) {
        loop {
            let wants = self.request_wanted.notified();
            if self.should_request.load(Ordering::Acquire) {
                return;
            }
            wants.await;
        }
    }

    /// Returns the number of changes that the client has reported.
    pub(crate) fn change(&self) -> u64 {
        self.lock().change
    }

    /// Decides whether the session itself sends a request now; a caller that gets the number of the latest change
    /// must send it.
    pub(crate) fn begin_request(&self) -> Option<u64> {
        if !self.should_request.load(Ordering::Acquire) || !self.should_request.swap(false, Ordering::AcqRel)
        {
            return None;
        }
        let mut state = self.lock();
        // If the response to the open request turns out to be outdated, it schedules another request.
        if state.is_fresh() || state.is_requesting() {
            return None;
        }
        Some(state.start_request().change)
    }

    /// Reports whether the client has declared roots.
    pub(crate) fn is_declared(&self) -> bool {
        self.declared
    }

    /// Looks up the roots for a call.
    pub(crate) fn lookup(&self) -> RootsLookup<'_> {
        let mut state = self.lock();
        if state.is_fresh() || (!self.declared && !self.client_info_roots.is_empty()) {
            return RootsLookup::Known(self.merged(&state));
        }
        if state.is_requesting() {
            return RootsLookup::Pending;
        }
        let request = state.start_request();
        drop(state);
        self.should_request.store(false, Ordering::Release);
        RootsLookup::Request(RootsRequestGuard(self, request))
    }

    /// Stores the client's response, or that there is none.
    pub(crate) fn store_response(&self, change: u64, answer: Option<&RawJson>) {
        let answer = answer.and_then(|raw| InputRequest::Roots.read_response(raw).ok());
        let mut state = self.lock();
        if state.known_change.is_some_and(|known| known > change) {
            return;
        }
        if state.request.is_some_and(|request| request.change <= change) {
            state.request = None;
        }
        if let Some(InputResponse::Roots(mut roots)) = answer {
            roots.truncate(MAX_ROOTS);
            state.listed = Some(roots);
        }
        // A client that refuses will refuse again, so that its response counts too.
        state.known_change = Some(change);
        let outdated = !state.is_fresh();
        drop(state);
        if outdated {
            self.schedule_request();
        }
        self.changed.notify_waiters();
    }

    /// Waits until no request is open.
    pub(crate) async fn wait_settled(&self) {
        loop {
            let changed = self.changed.notified();
            let (fresh, asking) = {
                let state = self.lock();
                (state.is_fresh(), state.is_requesting())
            };
            if fresh || !asking {
                return;
            }
            changed.await;
        }
    }

    /// Returns the roots as far as they are known.
    pub(crate) fn best_known(&self) -> Vec<Root> {
        self.merged(&self.lock())
    }

    /// Returns the roots, if the client has ever listed them.
    pub(crate) fn listed(&self) -> Option<Vec<Root>> {
        let state = self.lock();
        state.listed.is_some().then(|| self.merged(&state))
    }

    fn merged(&self, state: &RootsState) -> Vec<Root> {
        let mut merged: Vec<Root> = Vec::new();
        for root in state.listed.iter().flatten().chain(&self.client_info_roots) {
            if !merged.iter().any(|known| known.uri == root.uri) {
                merged.push(root.clone());
            }
        }
        merged
    }

    fn lock(&self) -> MutexGuard<'_, RootsState> {
        self.state.lock()
    }
}

impl RootsState {
    fn is_fresh(&self) -> bool {
        self.known_change == Some(self.change)
    }

    fn is_requesting(&self) -> bool {
        self.request.is_some_and(|request| request.at.elapsed() < REQUEST_TIMEOUT)
    }

    fn start_request(&mut self) -> RootsRequest {
        *self.request.insert(RootsRequest { change: self.change, at: Instant::now() })
    }
}

/// The key in a root's `_meta` that names its source, if that is not a response to `roots/list`.
const ROOT_SOURCE: &str = "trunkline/source";

/// Reads the roots that a few clients put into their `clientInfo`, where no revision has them.
pub(crate) fn client_info_roots(client: Option<&RawJson>) -> Vec<Root> {
    let roots = client.and_then(|client| client.members().ok()).and_then(|mut client| client.take("roots"));
    let Some(roots) = roots else { return Vec::new() };
    let mut members = JsonObject::new();
    members.set("roots", roots);
    match InputRequest::Roots.read_response(&members.to_raw()) {
        Ok(InputResponse::Roots(mut roots)) => {
            roots.truncate(MAX_ROOTS);
            for root in &mut roots {
                // Lets handlers distinguish it from roots in a response of the client.
                root.meta
                    .get_or_insert_with(JsonObject::new)
                    .set(ROOT_SOURCE, RawJson::from_text("clientInfo"));
            }
            roots
        }
        _ => Vec::new(),
    }
}
