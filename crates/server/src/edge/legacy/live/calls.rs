use std::collections::hash_map::Entry;
use std::sync::Arc;

use trunkline_protocol::Id;

use super::LiveSession;
use crate::call::Shared;

/// The most cancellations of unknown calls that one session remembers.
const MOST_CANCELLED: usize = 16;

/// The calls of a session that go on.
impl LiveSession {
    pub(crate) fn has_call(&self, id: &Id) -> bool {
        self.lock().calls.contains_key(id)
    }

    /// Announces a call, whose cancellation counts from now on; returns false if another call has its id.
    pub(crate) fn announce(&self, id: &Id) -> bool {
        let mut desk = self.lock();
        if !desk.cancelled.is_empty() {
            // That was meant for one which had this id before.
            desk.cancelled.retain(|cancelled| cancelled != id);
        }
        !desk.calls.contains_key(id)
    }

    /// Makes a call known, so that the client can cancel it and the session's end ends it; returns false if another call has
    /// its id.
    pub(crate) fn enter(&self, id: &Id, call: &Arc<Shared>) -> bool {
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

    /// Forgets a call and the questions that it left open.
    pub(crate) fn leave(&self, id: &Id, questions: &[Id]) {
        let mut desk = self.lock();
        desk.calls.remove(id);
        for question in questions {
            desk.questions.remove(question);
        }
    }

    pub(crate) fn cancel(&self, id: &Id) {
        let mut desk = self.lock();
        let call = desk.calls.get(id).cloned();
        if call.is_none() {
            if desk.cancelled.len() >= MOST_CANCELLED {
                desk.cancelled.pop_front();
            }
            desk.cancelled.push_back(id.detached());
        }
        drop(desk);
        if let Some(call) = call {
            call.cancel();
        }
    }
}
