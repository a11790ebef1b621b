use std::collections::VecDeque;

use parking_lot::Mutex;
use trunkline_server::PageDone;

/// The users who are at pages of one connection; beyond it the one who was sent first is forgotten.
const MOST_SENT: usize = 256;

/// The pages of one connection that were done before anybody had agreed to open them; beyond it the oldest is forgotten.
const MOST_EARLY: usize = 16;

/// The longest name of a page.
const LONGEST_ID: usize = 256;

/// The pages to which users were sent over one connection, by the names that the server has for them.
///
/// A server tells the connection that a user is done, and it is told on to the client that was asked, and to no other.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    sent: VecDeque<(String, PageDone)>,
    early: VecDeque<String>,
}

impl Pages {
    /// Notes who is told when the user is done at a page.
    pub(crate) fn sent(&self, id: &str, done: PageDone) {
        if id.len() > LONGEST_ID {
            return;
        }
        let mut state = self.0.lock();
        if let Some(at) = state.early.iter().position(|early| early == id) {
            state.early.remove(at);
            drop(state);
            return done.tell();
        }
        push(&mut state.sent, (id.to_owned(), done), MOST_SENT);
    }

    /// Tells whoever was sent to a page that the user is done there.
    pub(super) fn done(&self, id: &str) {
        if id.len() > LONGEST_ID {
            return;
        }
        let mut state = self.0.lock();
        match state.sent.iter().position(|(sent, _)| sent == id).and_then(|at| state.sent.remove(at)) {
            Some((_, done)) => {
                drop(state);
                done.tell();
            }
            // The agreement may still be on its way to us.
            None => push(&mut state.early, id.to_owned(), MOST_EARLY),
        }
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}
