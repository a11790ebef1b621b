use std::collections::VecDeque;

use parking_lot::Mutex;
use trunkline_server::ElicitationCompleter;

/// The users who are at pages of one connection; beyond it the one who was sent first is forgotten.
const MAX_PENDING: usize = 256;

/// The pages of one connection that were done before anybody had agreed to open them; beyond it the oldest is forgotten.
const MAX_EARLY: usize = 16;

/// The longest name of a page.
const MAX_ID_BYTES: usize = 256;

/// The pages to which users were sent over one connection, by the names that the server has for them.
///
/// A server tells the connection that a user is done, and it is told on to the client that was asked, and to no other.
#[derive(Debug, Default)]
pub(crate) struct UrlElicitations(Mutex<UrlElicitationState>);

#[derive(Debug, Default)]
struct UrlElicitationState {
    pending: VecDeque<(String, ElicitationCompleter)>,
    early: VecDeque<String>,
}

impl UrlElicitations {
    /// Notes who is told when the user is done at a page.
    pub(crate) fn register(&self, id: &str, done: ElicitationCompleter) {
        if id.len() > MAX_ID_BYTES {
            return;
        }
        let mut state = self.0.lock();
        if let Some(at) = state.early.iter().position(|early| early == id) {
            state.early.remove(at);
            drop(state);
            return done.notify();
        }
        push_bounded(&mut state.pending, (id.to_owned(), done), MAX_PENDING);
    }

    /// Tells whoever was sent to a page that the user is done there.
    pub(super) fn complete(&self, id: &str) {
        if id.len() > MAX_ID_BYTES {
            return;
        }
        let mut state = self.0.lock();
        match state.pending.iter().position(|(sent, _)| sent == id).and_then(|at| state.pending.remove(at)) {
            Some((_, done)) => {
                drop(state);
                done.notify();
            }
            // The agreement may still be on its way to us.
            None => push_bounded(&mut state.early, id.to_owned(), MAX_EARLY),
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}
