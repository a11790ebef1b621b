use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Notify, OnceCell};
use trunkline_protocol::model::Root;
use trunkline_server::SessionRoots;

/// Identifies a set of roots.
pub(crate) type RootsDigest = [u8; 16];

/// Roots with their digest.
pub(crate) type KnownRoots = (RootsDigest, Vec<Root>);

/// Computes the digest of roots; their order and names do not matter.
pub(crate) fn roots_digest(roots: &[Root]) -> RootsDigest {
    let mut uris: Vec<&str> = roots.iter().map(|root| root.uri.as_str()).collect();
    uris.sort_unstable();
    uris.dedup();
    let mut hash = Sha256::new();
    for uri in uris {
        hash.update((uri.len() as u64).to_le_bytes());
        hash.update(uri.as_bytes());
    }
    let mut digest = RootsDigest::default();
    digest.iter_mut().zip(hash.finalize()).for_each(|(byte, hashed)| *byte = hashed);
    digest
}

/// The roots of one session with a server.
///
/// Some servers treat the roots as the only folders that they may access, and each new list replaces the previous
/// one. So a session that was sent roots serves only callers with the same ones.
#[derive(Debug)]
pub(crate) struct UpstreamRoots {
    state: Mutex<UpstreamRootsState>,
    /// Notified when the server requests roots that are not known.
    requested: Notify,
    provided: Notify,
    /// Set once the server has the roots that it requests at the start of the session, if it does.
    pub(super) settled: OnceCell<()>,
    pub(super) answer_timeout: Duration,
    /// Shared by all sessions of the server: whether it has ever requested roots.
    server_asks: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct UpstreamRootsState {
    provided: Option<KnownRoots>,
    /// The session of the first caller, in which they can be requested while no call is running.
    source: Option<SessionRoots>,
    sent: Option<RootsDigest>,
    is_waiting: bool,
    /// The number of roots in the last answer outside of a call.
    answered: usize,
    /// The roots of the running calls' callers, as far as they are known.
    callers: Vec<Option<RootsDigest>>,
    /// Whether a call was served before, so that the session is past its beginning.
    has_served_call: bool,
    /// Callers with different roots were active when the server requested them, so that it was sent none; or it was
    /// sent the roots of a caller that cannot be recognised by them in its next call; or none came in time.
    is_tainted: bool,
}

impl UpstreamRoots {
    pub(crate) fn new(known: Option<Vec<Root>>, within: Duration, server_asks: Arc<AtomicBool>) -> Arc<Self> {
        let state = UpstreamRootsState {
            provided: known.map(|roots| (roots_digest(&roots), roots)),
            ..UpstreamRootsState::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            requested: Notify::new(),
            provided: Notify::new(),
            settled: OnceCell::new(),
            answer_timeout: within,
            server_asks,
        })
    }

    /// Continues a session that was sent these roots, if any, in an earlier run.
    pub(super) fn resumed(
        sent: Option<RootsDigest>,
        within: Duration,
        server_asks: Arc<AtomicBool>,
    ) -> Arc<Self> {
        let roots = Self::new(None, within, server_asks);
        roots.lock().sent = sent;
        // The session is past its beginning, at which a server requests roots.
        let _ = roots.settled.set(());
        roots
    }

    /// Returns the roots that the server was sent.
    pub(super) fn sent(&self) -> Option<RootsDigest> {
        self.lock().sent
    }

    /// Answers the server's roots request outside of a call.
    pub(crate) async fn answer(&self) -> Vec<Root> {
        let roots = self.find_answer().await;
        self.lock().answered = roots.len();
        roots
    }

    async fn find_answer(&self) -> Vec<Root> {
        self.server_asks.store(true, Ordering::Release);
        if let Some(roots) = self.lock().answer_now() {
            return roots;
        }
        let provided = async {
            loop {
                let provided = self.provided.notified();
                // Notified on each turn, since a listener may register after the request.
                self.requested.notify_waiters();
                if let Some(roots) = self.lock().answer_now() {
                    return roots;
                }
                provided.await;
            }
        };
        // Without a running call, which provides them, the session of the first caller does.
        let source = {
            let state = self.lock();
            state.source.clone().filter(|_| state.callers.is_empty())
        };
        let providing = async {
            if let Some(source) = source
                && let Some(roots) = source.list().await
            {
                self.provide(roots);
            }
            std::future::pending().await
        };
        let provided = async {
            tokio::select! {
                biased;
                roots = provided => roots,
                roots = providing => roots,
            }
        };
        let roots = tokio::time::timeout(self.answer_timeout, provided).await;
        let mut state = self.lock();
        // Roots that come with a call came too late, and would never be requested again in this session.
        state.is_tainted |= roots.is_err() && state.source.is_none();
        let roots = roots.unwrap_or_default();
        state.is_waiting = false;
        state.sent.get_or_insert(roots_digest(&roots));
        roots
    }

    /// Answers the server's roots request within a call; `None` if they have to be fetched from the caller first.
    pub(crate) fn answer_in_call(&self) -> Option<Vec<Root>> {
        self.server_asks.store(true, Ordering::Release);
        let mut state = self.lock();
        let was_waiting = state.is_waiting;
        let answer = state.answer_now();
        // The call itself fetches the roots, so that no other task needs to.
        state.is_waiting = was_waiting;
        answer
    }

    /// Reports whether a roots request within a call is certainly that of the call, and not of the session:
    /// `is_attributed` if the server identifies the call. A server requests roots at the start of a session, and a
    /// call may be running by then.
    pub(crate) fn belongs_to_call(&self, is_attributed: bool) -> bool {
        let state = self.lock();
        is_attributed || (state.has_served_call && state.callers.len() == 1)
    }

    /// Records that a caller's roots were sent within its call, and that the server may remember them. `known` are
    /// the roots by which the caller's next call is recognised; without any, that call may be of any caller.
    pub(crate) fn note_sent_in_call(&self, known: Option<&[Root]>) {
        let mut state = self.lock();
        match known.map(roots_digest) {
            Some(digest) if state.sent.is_none_or(|sent| sent == digest) => state.sent = Some(digest),
            _ => state.is_tainted = true,
        }
    }

    /// Reports whether a caller may use the session of a server that does not request roots at its start.
    pub(crate) fn accepts_caller(&self, caller: Option<RootsDigest>) -> bool {
        let state = self.lock();
        !state.is_tainted && state.sent.is_none_or(|sent| caller == Some(sent))
    }

    /// Waits until the server requests roots that are not known.
    pub(crate) async fn requested(&self) {
        loop {
            let requested = self.requested.notified();
            if self.lock().is_waiting {
                return;
            }
            requested.await;
        }
    }

    /// Returns the number of roots that the server was last sent outside of a call.
    pub(super) fn answered(&self) -> usize {
        self.lock().answered
    }

    /// Sets the roots of the session; reports whether the server has to be notified of a change.
    pub(crate) fn provide(&self, roots: Vec<Root>) -> bool {
        let digest = roots_digest(&roots);
        let mut state = self.lock();
        state.provided = Some((digest, roots));
        let has_changed = state.sent.is_some_and(|sent| sent != digest);
        drop(state);
        self.provided.notify_waiters();
        has_changed
    }

    /// Reports whether the session serves callers with these roots; a session without roots adopts those of its first
    /// caller.
    pub(crate) fn matches_caller(&self, caller: Option<RootsDigest>) -> bool {
        let state = self.lock();
        match (state.sent, &state.provided, caller) {
            _ if state.is_tainted => false,
            (Some(sent), _, Some(digest)) => sent == digest,
            // The roots of the caller are not known yet, so that only a session without roots can be its own.
            (Some(sent), _, None) => sent == roots_digest(&[]),
            (None, Some((provided, _)), Some(digest)) => *provided == digest,
            _ => true,
        }
    }

    /// Adds a running call's caller, with roots that match or make no difference.
    pub(crate) fn add_caller(&self, caller: Option<&KnownRoots>, source: Option<&SessionRoots>) {
        self.lock().add_caller(caller, source);
    }

    /// Removes the caller of a finished call.
    pub(crate) fn remove_caller(&self, caller: Option<RootsDigest>) {
        let mut state = self.lock();
        if let Some(at) = state.callers.iter().position(|known| *known == caller) {
            state.callers.swap_remove(at);
        }
        state.has_served_call = true;
    }

    /// Reports whether the roots that the session was sent match no caller, so that it can serve no further calls.
    pub(crate) fn is_tainted(&self) -> bool {
        self.lock().is_tainted
    }

    fn lock(&self) -> MutexGuard<'_, UpstreamRootsState> {
        self.state.lock()
    }
}

impl UpstreamRootsState {
    fn add_caller(&mut self, caller: Option<&KnownRoots>, source: Option<&SessionRoots>) {
        if self.source.is_none() && self.callers.is_empty() && !self.has_served_call {
            self.source = source.cloned();
        }
        if self.callers.is_empty() && self.sent.is_none() {
            // The session may have been opened for another caller, and its roots are not this one's.
            self.provided = caller.cloned();
        } else if let (None, Some(known)) = (&self.provided, caller) {
            self.provided = Some(known.clone());
        }
        self.callers.push(caller.map(|(digest, _)| *digest));
    }

    /// Returns the roots to send now; `None` if they are not known yet.
    fn answer_now(&mut self) -> Option<Vec<Root>> {
        let known = self.provided.as_ref().map(|(digest, _)| *digest);
        let are_one = match self.callers.as_slice() {
            [] | [_] => true,
            several => known.is_some() && several.iter().all(|caller| *caller == known),
        };
        if !are_one {
            // The request cannot be attributed to one caller, and one caller's roots must not be used for the others.
            self.is_tainted = true;
            self.sent = Some(roots_digest(&[]));
            self.is_waiting = false;
            return Some(Vec::new());
        }
        self.is_waiting = known.is_none();
        self.sent = known.or(self.sent);
        self.provided.as_ref().map(|(_, roots)| roots.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(uris: &[&str]) -> Vec<Root> {
        uris.iter().map(|uri| Root { uri: (*uri).to_owned(), ..Root::default() }).collect()
    }

    fn known(uri: &str) -> KnownRoots {
        (roots_digest(&roots(&[uri])), roots(&[uri]))
    }

    fn session(known: Option<&[&str]>) -> Arc<UpstreamRoots> {
        UpstreamRoots::new(known.map(roots), Duration::from_secs(10), Arc::default())
    }

    #[test]
    fn roots_digest_depends_only_on_the_set_of_uris() {
        assert_eq!(roots_digest(&roots(&["a", "b"])), roots_digest(&roots(&["b", "a", "a"])));
        assert_ne!(roots_digest(&roots(&["a", "b"])), roots_digest(&roots(&["ab"])));
        assert_ne!(roots_digest(&roots(&[])), roots_digest(&roots(&["a"])));
    }

    #[test]
    fn session_opened_for_one_caller_never_sends_its_roots_for_the_first_other_one() {
        for other in [None, Some(known("b"))] {
            let opened = session(Some(&["a"]));
            opened.add_caller(other.as_ref(), None);
            let expected = other.as_ref().map(|(_, roots)| roots.clone());
            assert_eq!(opened.answer_in_call(), expected, "not those of the caller that it was opened for");
        }
        let sent = session(Some(&["a"]));
        assert_eq!(sent.answer_in_call(), Some(roots(&["a"])));
        assert!(!sent.matches_caller(None), "a caller whose roots are not known may have others");
        assert!(sent.matches_caller(Some(known("a").0)) && !sent.matches_caller(Some(known("b").0)));
    }

    #[tokio::test(start_paused = true)]
    async fn roots_request_gets_known_roots_or_waits_or_gets_none() {
        assert_eq!(session(Some(&["a"])).answer().await, roots(&["a"]));

        let waits = session(None);
        waits.add_caller(None, None);
        let answer = {
            let waits = waits.clone();
            tokio::spawn(async move { waits.answer().await })
        };
        waits.requested().await;
        assert!(!waits.provide(roots(&["b"])), "it is told now for the first time");
        assert_eq!(answer.await.unwrap(), roots(&["b"]));

        let no_caller = session(None);
        assert_eq!(no_caller.answer().await, roots(&[]));
        assert!(no_caller.provide(roots(&["c"])), "what comes too late is told as a change");
        assert!(no_caller.is_tainted(), "its next call gets a session that is sent them");
    }

    #[tokio::test]
    async fn session_sent_roots_serves_only_callers_with_equal_roots() {
        let session = session(Some(&["a"]));
        let [a, b] = ["a", "b"].map(known);
        assert_eq!(session.answer().await, roots(&["a"]));
        assert_eq!((session.matches_caller(Some(a.0)), session.matches_caller(Some(b.0))), (true, false));
    }

    #[tokio::test]
    async fn session_without_roots_adopts_those_of_its_first_caller() {
        let session = session(None);
        let [a, b] = ["a", "b"].map(known);
        assert!(session.matches_caller(Some(a.0)) && session.matches_caller(Some(b.0)));
        session.add_caller(Some(&a), None);
        assert_eq!((session.matches_caller(Some(a.0)), session.matches_caller(Some(b.0))), (true, false));
        assert_eq!(session.answer().await, roots(&["a"]));
    }

    #[tokio::test]
    async fn roots_are_not_sent_while_callers_with_other_roots_are_active() {
        for (first, second) in [(Some("a"), Some("b")), (Some("a"), None), (None, None)] {
            let session = session(Some(&["a"]));
            for caller in [first, second] {
                session.add_caller(caller.map(known).as_ref(), None);
            }
            assert_eq!(session.answer().await, roots(&[]), "{first:?} {second:?}");
            assert!(session.is_tainted());
            assert!(!session.matches_caller(None));
        }
    }

    #[test]
    fn session_sent_roots_in_a_call_serves_only_callers_with_known_equal_roots() {
        let [a, b] = ["a", "b"].map(known);
        let known_caller = session(None);
        known_caller.note_sent_in_call(Some(&roots(&["a"])));
        for (caller, serves) in [(Some(a.0), true), (Some(b.0), false), (None, false)] {
            assert_eq!(known_caller.accepts_caller(caller), serves, "{caller:?}");
        }
        let unknown_caller = session(None);
        assert!(unknown_caller.accepts_caller(None));
        unknown_caller.note_sent_in_call(None);
        assert!(!unknown_caller.accepts_caller(None) && unknown_caller.is_tainted());
    }

    #[test]
    fn roots_request_belongs_to_a_call_if_attributed_or_after_the_first_call() {
        let session = session(None);
        session.add_caller(None, None);
        assert!(session.belongs_to_call(true) && !session.belongs_to_call(false));
        session.remove_caller(None);
        session.add_caller(None, None);
        assert!(session.belongs_to_call(false));
        session.add_caller(None, None);
        assert!(!session.belongs_to_call(false), "it may be that of another call");
    }
}
