use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use trunkline_protocol::model::{Answer, Question, Root};
use trunkline_protocol::{Members, Raw};

use super::MOST_ROOTS;

/// How long a question counts as being on its way; after that somebody else may ask.
const UNANSWERED: Duration = Duration::from_secs(10);

/// What a legacy session knows of its client's roots.
///
/// Over a channel the session asks by itself after the handshake and after every change. Over HTTP it does so on a
/// standing stream, and where there is none the first call that wants to know asks for it, as it does wherever nobody is to be
/// asked before.
#[derive(Debug)]
pub(crate) struct SessionRoots {
    declared: bool,
    /// Whether nobody asks before a call wants to know.
    on_demand: bool,
    /// What `clientInfo` said, where that counts.
    introduced: Vec<Root>,
    state: Mutex<State>,
    /// Whether the session itself should ask; beside the lock, since it is looked at with every message.
    wanted: AtomicBool,
    changed: Notify,
    wants: Notify,
}

#[derive(Debug, Default)]
struct State {
    listed: Option<Vec<Root>>,
    /// Counts the changes that the client has told of.
    change: u64,
    /// The change that `listed` is not older than.
    known: Option<u64>,
    asked: Option<Asked>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Asked {
    change: u64,
    at: Instant,
}

/// How a session's roots stand.
pub(crate) enum Look<'a> {
    Known(Vec<Root>),
    Coming,
    Ask(Asking<'a>),
}

/// A question that a call is about to put. When it is dropped without an answer, others may ask.
pub(crate) struct Asking<'a>(&'a SessionRoots, Asked);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.asked == Some(self.1) {
            state.asked = None;
        }
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl SessionRoots {
    pub(crate) fn new(declared: bool, on_demand: bool, introduced: Vec<Root>) -> Self {
        Self {
            declared,
            on_demand,
            introduced,
            state: Mutex::default(),
            wanted: AtomicBool::new(false),
            changed: Notify::new(),
            wants: Notify::new(),
        }
    }

    /// Notes that the client may be asked from now on, or that its roots have changed.
    pub(crate) fn refresh(&self) {
        if !self.declared {
            return;
        }
        self.lock().change += 1;
        if !self.on_demand {
            self.want();
        }
    }

    fn want(&self) {
        self.wanted.store(true, Ordering::Release);
        self.wants.notify_waiters();
    }

    /// Waits until the session itself should ask.
    pub(crate) async fn wants_to_ask(&self) {
        loop {
            let wants = self.wants.notified();
            if self.wanted.load(Ordering::Acquire) {
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
    pub(crate) fn begin(&self) -> Option<u64> {
        if !self.wanted.load(Ordering::Acquire) || !self.wanted.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut state = self.lock();
        // The answer that is on its way wakes the wish again, if it turns out to be too old.
        if state.is_fresh() || state.is_asking() {
            return None;
        }
        Some(state.ask().change)
    }

    /// Looks for the roots on behalf of a call.
    pub(crate) fn look(&self) -> Look<'_> {
        let mut state = self.lock();
        if state.is_fresh() || (!self.declared && !self.introduced.is_empty()) {
            return Look::Known(self.merged(&state));
        }
        if state.is_asking() {
            return Look::Coming;
        }
        let asked = state.ask();
        drop(state);
        self.wanted.store(false, Ordering::Release);
        Look::Ask(Asking(self, asked))
    }

    /// Takes the client's answer, or that there is none.
    pub(crate) fn learn(&self, change: u64, answer: Option<&Raw>) {
        let answer = answer.and_then(|raw| Question::Roots.read_answer(raw).ok());
        let mut state = self.lock();
        if state.known.is_some_and(|known| known > change) {
            return;
        }
        if state.asked.is_some_and(|asked| asked.change <= change) {
            state.asked = None;
        }
        if let Some(Answer::Roots(mut roots)) = answer {
            roots.truncate(MOST_ROOTS);
            state.listed = Some(roots);
        }
        // A client that refuses will refuse again, so that its answer counts too.
        state.known = Some(change);
        let outdated = !state.is_fresh();
        drop(state);
        if outdated {
            self.want();
        }
        self.changed.notify_waiters();
    }

    /// Waits until nothing is on its way.
    pub(crate) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            let (fresh, asking) = {
                let state = self.lock();
                (state.is_fresh(), state.is_asking())
            };
            if fresh || !asking {
                return;
            }
            changed.await;
        }
    }

    /// Returns the roots as far as they are known.
    pub(crate) fn best(&self) -> Vec<Root> {
        self.merged(&self.lock())
    }

    /// Returns the roots, if the client has ever said which they are.
    pub(crate) fn listed(&self) -> Option<Vec<Root>> {
        let state = self.lock();
        state.listed.is_some().then(|| self.merged(&state))
    }

    fn merged(&self, state: &State) -> Vec<Root> {
        let mut merged: Vec<Root> = Vec::new();
        for root in state.listed.iter().flatten().chain(&self.introduced) {
            if !merged.iter().any(|known| known.uri == root.uri) {
                merged.push(root.clone());
            }
        }
        merged
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn is_fresh(&self) -> bool {
        self.known == Some(self.change)
    }

    fn is_asking(&self) -> bool {
        self.asked.is_some_and(|asked| asked.at.elapsed() < UNANSWERED)
    }

    fn ask(&mut self) -> Asked {
        *self.asked.insert(Asked { change: self.change, at: Instant::now() })
    }
}

/// The member of a root's `_meta` that says where it is from, if not from an answer to `roots/list`.
const ROOT_SOURCE: &str = "trunkline/source";

/// Reads the roots that a few clients put into their description of themselves, where no revision has them.
pub(crate) fn introduced(client: Option<&Raw>) -> Vec<Root> {
    let roots = client.and_then(|client| client.members().ok()).and_then(|mut client| client.take("roots"));
    let Some(roots) = roots else { return Vec::new() };
    let mut members = Members::new();
    members.set("roots", roots);
    match Question::Roots.read_answer(&members.to_raw()) {
        Ok(Answer::Roots(mut roots)) => {
            roots.truncate(MOST_ROOTS);
            for root in &mut roots {
                // Whoever uses one can tell it from those that the client was asked for.
                root.meta.get_or_insert_with(Members::new).set(ROOT_SOURCE, Raw::from_text("clientInfo"));
            }
            roots
        }
        _ => Vec::new(),
    }
}
