use std::fmt;
use std::sync::Weak;

use crate::server::{ServerHandle, ServerInner};

/// The means by which a provider says that something has changed. Clones speak for the same provider.
///
/// It does nothing once the server is gone.
#[derive(Clone)]
pub struct ChangeNotifier {
    server: Weak<ServerInner>,
    source: usize,
}

impl ChangeNotifier {
    pub(crate) fn new(server: Weak<ServerInner>, source: usize) -> Self {
        Self { server, source }
    }

    /// Says that the provider's list has changed: the server lists it anew, and tells whoever watches.
    ///
    /// The list is asked for before this returns, so that a provider must not hold a lock that its list needs. What
    /// collides with something that is there already is left out, with a warning in the log that names both sources.
    pub fn list_changed(&self) {
        let Some(server) = ServerHandle::upgrade(&self.server) else { return };
        let left_out = server.refresh(self.source);
        for problem in left_out.unusable.iter().chain(&left_out.collisions) {
            tracing::warn!("left out: {problem}");
        }
    }

    /// Says that the content of a resource has changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        if let Some(server) = ServerHandle::upgrade(&self.server) {
            server.notify_updated(uri);
        }
    }
}

impl fmt::Debug for ChangeNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeNotifier").field("source", &self.source).finish_non_exhaustive()
    }
}
