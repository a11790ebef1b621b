use std::sync::Arc;

use super::{Upstream, UpstreamConnectionState};
use crate::events::{HubEvents, ServerStateEvent, transport_name};
use crate::figures::CallFigures;

/// The state that was published last, with its reason; `None` before the first.
pub(super) type PublishedState = Option<(UpstreamConnectionState, Option<String>)>;

impl Upstream {
    /// Publishes the state if it differs from the last.
    pub(super) fn publish_state(&self) {
        // A server within this process is part of the hub.
        if self.in_process.is_some() {
            return;
        }
        let (state, reason, known) = {
            let state = self.lock();
            let reason = state.lifecycle().failure().map(|failure| failure.reason.clone());
            (state.connection_state(), reason, state.known_server.clone())
        };
        let mut published = self.published_state.lock();
        let now = Some((state, reason));
        if *published == now {
            return;
        }
        published.clone_from(&now);
        self.events.server_state(ServerStateEvent {
            server: self.name.to_string(),
            state: state.as_str().to_owned(),
            reason: now.and_then(|(_, reason)| reason),
            revision: known.as_ref().map(|known| known.revision.as_str().to_owned()),
            transport: known
                .map(|known| transport_name(known.transport).to_owned())
                .filter(|name| !name.is_empty()),
        });
    }

    /// Returns the event stream of the hub.
    pub(crate) fn events(&self) -> &HubEvents {
        &self.events
    }

    /// Returns where its calls are counted.
    pub(crate) fn figures(&self) -> &Arc<CallFigures> {
        &self.figures
    }
}
