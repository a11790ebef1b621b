use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use trunkline_protocol::model::{InputRequest, InputResponse, Root};
use trunkline_protocol::{JsonObject, RawJson};

use super::MAX_ROOTS;

/// How long a question counts as being on its way; after that somebody else may ask.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What a legacy session knows of its client's roots.
///
/// Over a channel the session asks by itself after the handshake and after every change. Over HTTP it does so on a
/// standing stream, and where there is none the first call that wants to know asks for it, as it does wherever nobody is to be
/// asked before.
#[derive(Debug)]
pub(crate) struct ClientRoots {
    declared: bool,
    /// Whether nobody asks before a call wants to know.
    on_demand: bool,
    /// What `clientInfo` said, where that counts.
    client_info_roots: Vec<Root>,
    state: Mutex<RootsState>,
    /// Whether the session itself should ask; beside the lock, since it is looked at with every message.
    should_request: AtomicBool,
    changed: Notify,
    request_wanted: Notify,
}

#[derive(Debug, Default)]
struct RootsState {
    listed: Option<Vec<Root>>,
    /// Counts the changes that the client has told of.
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

/// How a session's roots stand.
pub(crate) enum RootsLookup<'a> {
    Known(Vec<Root>),
    Pending,
    Request(RootsRequestGuard<'a>),
}

/// A question that a call is about to put. When it is dropped without an answer, others may ask.
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
    pub(crate) fn new(declared: bool, on_demand: bool, introduced: Vec<Root>) -> Self {
        Self {
            declared,
            on_demand,
            client_info_roots: introduced,
            state: Mutex::default(),
            should_request: AtomicBool::new(false),
            changed: Notify::new(),
            request_wanted: Notify::new(),
        }
    }

    /// Notes that the client may be asked from now on, or that its roots have changed.
    pub(crate) fn refresh(&self) {
        if !self.declared {
            return;
        }
        self.lock().change += 1;
        if !self.on_demand {
            self.schedule_request();
        }
    }

    fn schedule_request(&self) {
        self.should_request.store(true, Ordering::Release);
        self.request_wanted.notify_waiters();
    }

    /// Waits until the session itself should ask.
    pub(crate) async fn wait_until_wanted(&self) {
        loop {
            let wants = self.request_wanted.notified();
            if self.should_request.load(Ordering::Acquire) {
                return;
            }
            wants.await;
        }
    }

    /// Returns the number of changes that the client has told of.
    pub(crate) fn change(&self) -> u64 {
        self.lock().change
    }

    /// Decides whether the session itself asks now; whoever is given the number of the latest change must.
    pub(crate) fn begin_request(&self) -> Option<u64> {
        if !self.should_request.load(Ordering::Acquire) || !self.should_request.swap(false, Ordering::AcqRel)
        {
            return None;
        }
        let mut state = self.lock();
        // The answer that is on its way wakes the wish again, if it turns out to be too old.
        if state.is_fresh() || state.is_requesting() {
            return None;
        }
        Some(state.start_request().change)
    }

    /// Looks for the roots on behalf of a call.
    pub(crate) fn lookup(&self) -> RootsLookup<'_> {
        let mut state = self.lock();
        if state.is_fresh() || (!self.declared && !self.client_info_roots.is_empty()) {
            return RootsLookup::Known(self.merged(&state));
        }
        if state.is_requesting() {
            return RootsLookup::Pending;
        }
        let asked = state.start_request();
        drop(state);
        self.should_request.store(false, Ordering::Release);
        RootsLookup::Request(RootsRequestGuard(self, asked))
    }

    /// Takes the client's answer, or that there is none.
    pub(crate) fn store_response(&self, change: u64, answer: Option<&RawJson>) {
        let answer = answer.and_then(|raw| InputRequest::Roots.read_response(raw).ok());
        let mut state = self.lock();
        if state.known_change.is_some_and(|known| known > change) {
            return;
        }
        if state.request.is_some_and(|asked| asked.change <= change) {
            state.request = None;
        }
        if let Some(InputResponse::Roots(mut roots)) = answer {
            roots.truncate(MAX_ROOTS);
            state.listed = Some(roots);
        }
        // A client that refuses will refuse again, so that its answer counts too.
        state.known_change = Some(change);
        let outdated = !state.is_fresh();
        drop(state);
        if outdated {
            self.schedule_request();
        }
        self.changed.notify_waiters();
    }

    /// Waits until nothing is on its way.
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

    /// Returns the roots, if the client has ever said which they are.
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
        self.request.is_some_and(|asked| asked.at.elapsed() < REQUEST_TIMEOUT)
    }

    fn start_request(&mut self) -> RootsRequest {
        *self.request.insert(RootsRequest { change: self.change, at: Instant::now() })
    }
}

/// The member of a root's `_meta` that says where it is from, if not from an answer to `roots/list`.
const ROOT_SOURCE: &str = "trunkline/source";

/// Reads the roots that a few clients put into their description of themselves, where no revision has them.
pub(crate) fn client_info_roots(client: Option<&RawJson>) -> Vec<Root> {
    let roots = client.and_then(|client| client.members().ok()).and_then(|mut client| client.take("roots"));
    let Some(roots) = roots else { return Vec::new() };
    let mut members = JsonObject::new();
    members.set("roots", roots);
    match InputRequest::Roots.read_response(&members.to_raw()) {
        Ok(InputResponse::Roots(mut roots)) => {
            roots.truncate(MAX_ROOTS);
            for root in &mut roots {
                // Whoever uses one can tell it from those that the client was asked for.
                root.meta
                    .get_or_insert_with(JsonObject::new)
                    .set(ROOT_SOURCE, RawJson::from_text("clientInfo"));
            }
            roots
        }
        _ => Vec::new(),
    }
}
