use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_hub::events::EventViewer;
use trunkline_server::AccessGrant;
use trunkline_server::session::SessionId;

use crate::limits::{MAX_SESSIONS, MAX_SESSIONS_OF_USER, SESSION_IDLE};
use crate::tokens::{SecretDigest, random_token, token_digest};

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleRole {
    /// See everything, and change what the console can change.
    Operator,
    /// See, and change nothing.
    Viewer,
}

/// A session, as long as one request needs it.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleSession {
    pub(crate) role: ConsoleRole,
    pub(crate) viewer: EventViewer,
    /// The client that its requests come from.
    pub(crate) client: SessionId,
    /// The access token that began it, unless a link did.
    pub(crate) grant: Option<Arc<AccessGrant>>,
    /// Closed when the session ends.
    pub(crate) ended: watch::Receiver<()>,
}

/// The two secrets of a new session.
pub(crate) struct SessionSecrets {
    pub(crate) cookie: String,
    pub(crate) header_token: String,
}

/// The sessions, by the digest of their cookie.
#[derive(Debug, Default)]
pub(crate) struct ConsoleSessions(Mutex<HashMap<SecretDigest, StoredSession>>);

#[derive(Debug)]
struct StoredSession {
    header: SecretDigest,
    session: ConsoleSession,
    used: Instant,
    /// Dropped with the session, which ends its streams.
    _alive: watch::Sender<()>,
}

impl ConsoleSessions {
    /// Begins a session; the one that was used least recently makes room.
    pub(crate) fn begin(
        &self,
        role: ConsoleRole,
        viewer: EventViewer,
        grant: Option<Arc<AccessGrant>>,
    ) -> Option<SessionSecrets> {
        let secrets = SessionSecrets { cookie: random_token()?, header_token: random_token()? };
        let (alive, ended) = watch::channel(());
        let session = ConsoleSession { role, viewer, client: SessionId::random(), grant, ended };
        let header = token_digest(&secrets.header_token);
        let stored = StoredSession { header, session, used: Instant::now(), _alive: alive };
        let mut sessions = self.0.lock();
        make_room(&mut sessions, &stored.session.viewer);
        sessions.insert(token_digest(&secrets.cookie), stored);
        Some(secrets)
    }

    /// Returns the session of a request: both secrets are needed.
    pub(crate) fn find(&self, cookie: &str, header_token: &str) -> Option<ConsoleSession> {
        let digest = token_digest(cookie);
        let mut sessions = self.0.lock();
        let stored = sessions.get_mut(&digest)?;
        if stored.header != token_digest(header_token) {
            return None;
        }
        if stored.used.elapsed() >= SESSION_IDLE || stored.session.is_over() {
            sessions.remove(&digest);
            return None;
        }
        stored.used = Instant::now();
        Some(stored.session.clone())
    }

    /// Ends the session of a cookie.
    pub(crate) fn end(&self, cookie: &str) {
        self.0.lock().remove(&token_digest(cookie));
    }
}

/// Ends the session that was used least recently where there is no room for a further one: of a user with as many as one may
/// have, else of users before operators, so that users cannot end the sessions of operators.
fn make_room(sessions: &mut HashMap<SecretDigest, StoredSession>, viewer: &EventViewer) {
    let is_user = |viewer: &EventViewer| matches!(viewer, EventViewer::Principal(_));
    let is_own = |stored: &StoredSession| is_user(viewer) && stored.session.viewer == *viewer;
    let own = sessions.values().filter(|stored| is_own(stored)).count();
    let surplus = if own >= MAX_SESSIONS_OF_USER {
        let own = sessions.iter().filter(|(_, stored)| is_own(stored));
        own.min_by_key(|(_, stored)| stored.used).map(|(digest, _)| *digest)
    } else if sessions.len() >= MAX_SESSIONS {
        let order = |stored: &StoredSession| (!is_user(&stored.session.viewer), stored.used);
        sessions.iter().min_by_key(|(_, stored)| order(stored)).map(|(digest, _)| *digest)
    } else {
        None
    };
    surplus.and_then(|digest| sessions.remove(&digest));
}

impl ConsoleSession {
    /// Reports whether the access token that began the session has expired or was revoked.
    fn is_over(&self) -> bool {
        self.grant.as_deref().is_some_and(|grant| {
            grant.expires_at.is_some_and(|at| at <= SystemTime::now())
                || grant.revocation.as_ref().is_some_and(trunkline_server::RevocationSignal::is_revoked)
        })
    }

    /// Waits until the session ends, or the access token that began it.
    pub(crate) async fn over(mut self) {
        let grant = self.grant.take();
        let expiry = async {
            match grant.as_deref().and_then(|grant| grant.expires_at) {
                Some(at) => {
                    tokio::time::sleep(at.duration_since(SystemTime::now()).unwrap_or_default()).await;
                }
                None => std::future::pending().await,
            }
        };
        let revocation = async {
            match grant.as_deref().and_then(|grant| grant.revocation.clone()) {
                Some(signal) => signal.revoked().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Nothing is ever sent: it is closed.
            _ = self.ended.changed() => {}
            () = expiry => {}
            () = revocation => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_server::session::Principal;

    use super::*;

    fn begin(sessions: &ConsoleSessions) -> SessionSecrets {
        sessions.begin(ConsoleRole::Viewer, EventViewer::Operator, None).unwrap()
    }

    #[test]
    fn session_needs_both_of_its_own_secrets() {
        let sessions = ConsoleSessions::default();
        let (a, b) = (begin(&sessions), begin(&sessions));
        assert!(sessions.find(&a.cookie, &a.header_token).is_some());
        assert!(sessions.find(&a.cookie, &b.header_token).is_none());
        assert!(sessions.find(&a.cookie, "").is_none());
        assert!(sessions.find(&a.header_token, &a.cookie).is_none());
        sessions.end(&a.cookie);
        assert!(sessions.find(&a.cookie, &a.header_token).is_none());
        assert!(sessions.find(&b.cookie, &b.header_token).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_and_surplus_sessions_end_with_their_streams() {
        let sessions = ConsoleSessions::default();
        let first = begin(&sessions);
        let session = sessions.find(&first.cookie, &first.header_token).unwrap();
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        for _ in 0..MAX_SESSIONS {
            begin(&sessions);
        }
        assert!(sessions.find(&first.cookie, &first.header_token).is_none());
        session.over().await;
        let idle = begin(&sessions);
        tokio::time::advance(SESSION_IDLE).await;
        assert!(sessions.find(&idle.cookie, &idle.header_token).is_none());
    }

    #[test]
    fn users_cannot_end_sessions_of_operators() {
        let sessions = ConsoleSessions::default();
        let operator = begin(&sessions);
        let user = |name: &str| EventViewer::Principal(Principal::Named(name.into()));
        let sign_in = |name: &str| sessions.begin(ConsoleRole::Viewer, user(name), None).unwrap();
        let other = sign_in("bob");
        let first = sign_in("ann");
        for _ in 0..MAX_SESSIONS {
            sign_in("ann");
        }
        assert!(sessions.find(&first.cookie, &first.header_token).is_none());
        assert!(sessions.find(&other.cookie, &other.header_token).is_some());
        for number in 0..2 * MAX_SESSIONS {
            sign_in(&format!("user-{number}"));
        }
        assert!(sessions.find(&operator.cookie, &operator.header_token).is_some());
    }
}
