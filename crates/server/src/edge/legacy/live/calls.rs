use std::collections::hash_map::Entry;
use std::sync::Arc;

use trunkline_protocol::RequestId;

use super::LiveSession;
use crate::call::CallState;

/// The most cancellations of unregistered calls that one session remembers.
const MAX_CANCELLED: usize = 16;

/// The calls of a session that continue after their first step.
impl LiveSession {
    pub(crate) fn has_call(&self, id: &RequestId) -> bool {
        self.lock().calls.contains_key(id)
    }

    /// Announces a call, which can be cancelled from now on; returns false if another call has its id.
    pub(crate) fn announce_call(&self, id: &RequestId) -> bool {
        let mut activity = self.lock();
        if !activity.cancelled.is_empty() {
            // That was meant for an earlier call with this id.
            activity.cancelled.retain(|cancelled| cancelled != id);
        }
        !activity.calls.contains_key(id)
    }

    /// Registers a call, so that the client can cancel it and the session's end ends it; returns false if another
    /// call has its id.
    pub(crate) fn register_call(&self, id: &RequestId, call: &Arc<CallState>) -> bool {
        let mut activity = self.lock();
        if activity.ended || activity.cancelled.contains(id) {
            drop(activity);
            call.cancel();
            return true;
        }
        match activity.calls.entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(call.clone());
                true
            }
        }
    }

    /// Removes a call and its open input requests.
    pub(crate) fn remove_call(&self, id: &RequestId, requests: &[RequestId]) {
        let mut activity = self.lock();
        activity.calls.remove(id);
        for request in requests {
            activity.open_requests.remove(request);
        }
    }

    /// Cancels a call; one that is not registered yet is cancelled when it is.
    ///
    /// See [Cancellation, Behavior Requirements](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation#behavior-requirements).
    pub(crate) fn cancel_call(&self, id: &RequestId) {
        let mut activity = self.lock();
        let call = activity.calls.get(id).cloned();
        if call.is_none() {
            if activity.cancelled.len() >= MAX_CANCELLED {
                activity.cancelled.pop_front();
            }
            activity.cancelled.push_back(id.to_owned_buffer());
        }
        drop(activity);
        if let Some(call) = call {
            call.cancel();
        }
    }
}
