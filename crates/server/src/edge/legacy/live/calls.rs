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
        let mut desk = self.lock();
        if !desk.cancelled.is_empty() {
            // That was meant for an earlier call with this id.
            desk.cancelled.retain(|cancelled| cancelled != id);
        }
        !desk.calls.contains_key(id)
    }

    /// Registers a call, so that the client can cancel it and the session's end ends it; returns false if another
    /// call has its id.
    pub(crate) fn register_call(&self, id: &RequestId, call: &Arc<CallState>) -> bool {
        let mut desk = self.lock();
        if desk.ended || desk.cancelled.contains(id) {
            drop(desk);
            call.cancel();
            return true;
        }
        match desk.calls.entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(call.clone());
                true
            }
        }
    }

    /// Removes a call and its open input requests.
    pub(crate) fn remove_call(&self, id: &RequestId, questions: &[RequestId]) {
        let mut desk = self.lock();
        desk.calls.remove(id);
        for question in questions {
            desk.open_requests.remove(question);
        }
    }

    pub(crate) fn cancel_call(&self, id: &RequestId) {
        let mut desk = self.lock();
        let call = desk.calls.get(id).cloned();
        if call.is_none() {
            if desk.cancelled.len() >= MAX_CANCELLED {
                desk.cancelled.pop_front();
            }
            desk.cancelled.push_back(id.to_owned_buffer());
        }
        drop(desk);
        if let Some(call) = call {
            call.cancel();
        }
    }
}
