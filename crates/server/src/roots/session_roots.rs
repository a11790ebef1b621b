use std::sync::{Arc, Weak};

use trunkline_protocol::model::Root;

use crate::call::{Context, SessionState};

/// The roots of a legacy session, for a handler that needs them after the call.
///
/// A gateway needs them when an upstream sends `roots/list` while no call is running.
#[derive(Clone, Debug)]
pub struct SessionRoots(Weak<SessionState>);

impl SessionRoots {
    /// Returns the client's roots, and requests them from the client if they are not known; `None` if the session is
    /// gone. A client that never responds, or that cannot be sent requests now, is waited for without end.
    pub async fn list(&self) -> Option<Vec<Root>> {
        let session = self.0.upgrade()?;
        Some(session.roots.request_in_session().await)
    }
}

impl Context {
    /// Returns the roots of the caller's legacy session, if it has one and the client has declared roots.
    pub fn session_roots(&self) -> Option<SessionRoots> {
        let session = self.shared().scope().session()?;
        session.roots.is_declared().then(|| SessionRoots(Arc::downgrade(session)))
    }
}
