use std::collections::VecDeque;

use parking_lot::Mutex;
use trunkline_server::{ElicitationCompleter, UpstreamItem};

/// The pending URL elicitations of one connection; beyond it the oldest is dropped.
const MAX_PENDING: usize = 256;

/// The URL elicitations of one connection that completed before the client accepted them; beyond it the oldest is
/// dropped.
const MAX_EARLY: usize = 16;

/// The longest `elicitationId`.
const MAX_ID_BYTES: usize = 256;

/// The URL elicitations of one connection, by `elicitationId`.
///
/// A server sends `notifications/elicitation/complete` to the connection; it is forwarded to the client that was
/// elicited, and to no other.
#[derive(Debug, Default)]
pub(crate) struct UrlElicitations(Mutex<UrlElicitationState>);

#[derive(Debug, Default)]
struct UrlElicitationState {
    pending: VecDeque<(String, ElicitationCompleter)>,
    early: VecDeque<String>,
}

impl UrlElicitations {
    /// Registers the client to notify when an elicitation completes.
    pub(crate) fn register(&self, id: &str, done: ElicitationCompleter) {
        if id.len() > MAX_ID_BYTES {
            return UpstreamItem::NotificationDropped.count(1);
        }
        let mut state = self.0.lock();
        if let Some(at) = state.early.iter().position(|early| early == id) {
            state.early.remove(at);
            drop(state);
            return done.notify();
        }
        push_bounded(&mut state.pending, (id.to_owned(), done), MAX_PENDING);
    }

    /// Notifies the elicited client of a completion.
    pub(super) fn complete(&self, id: &str) {
        if id.len() > MAX_ID_BYTES {
            return UpstreamItem::NotificationDropped.count(1);
        }
        let mut state = self.0.lock();
        match state.pending.iter().position(|(sent, _)| sent == id).and_then(|at| state.pending.remove(at)) {
            Some((_, done)) => {
                drop(state);
                done.notify();
            }
            // The client's acceptance may still be in transit.
            None => push_bounded(&mut state.early, id.to_owned(), MAX_EARLY),
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
        UpstreamItem::NotificationDropped.count(1);
    }
    queue.push_back(item);
}
