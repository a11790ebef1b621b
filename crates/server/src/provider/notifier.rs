use std::fmt;
use std::sync::Weak;

use crate::server::{ServerHandle, ServerInner};

/// Lets a provider report changes. Clones belong to the same provider.
///
/// It does nothing once the server is dropped.
#[derive(Clone)]
pub struct ChangeNotifier {
    server: Weak<ServerInner>,
    source: usize,
}

impl ChangeNotifier {
    pub(crate) fn new(server: Weak<ServerInner>, source: usize) -> Self {
        Self { server, source }
    }

    /// Reports that the provider's list has changed: the server lists it again, and notifies subscribers.
    ///
    /// The provider is listed before this returns, so that it must not hold a lock that its list needs. A part that
    /// collides with an existing one is left out, with a warning in the log that names both sources.
    pub fn list_changed(&self) {
        let Some(server) = ServerHandle::upgrade(&self.server) else { return };
        let left_out = server.refresh(self.source);
        for problem in left_out.unusable.iter().chain(&left_out.collisions) {
            tracing::warn!("left out: {problem}");
        }
    }

    /// Reports that the content of a resource has changed.
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
