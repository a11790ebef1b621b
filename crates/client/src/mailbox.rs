use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// A value that one side updates and the other polls.
///
/// Wakers are called, and removed values are dropped, only after the lock is released.
#[derive(Debug, Default)]
pub(crate) struct Mailbox<T> {
    state: Mutex<MailboxState<T>>,
}

#[derive(Debug, Default)]
struct MailboxState<T> {
    content: T,
    /// The waker of the last unsuccessful poll.
    waker: Option<Waker>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new(content: T) -> Self {
        Self { state: Mutex::new(MailboxState { content, waker: None }) }
    }

    /// Updates the content, and wakes the waiting task.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.lock();
        let changed = change(&mut state.content);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        changed
    }

    /// Polls with `find`; if it finds nothing, the next update wakes the task.
    pub(crate) fn poll<R>(&self, cx: &mut Context<'_>, find: impl FnOnce(&mut T) -> Option<R>) -> Poll<R> {
        let mut state = self.lock();
        if let Some(found) = find(&mut state.content) {
            return Poll::Ready(found);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Accesses the content without waking the waiting task.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut self.lock().content)
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState<T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_counter::WakeCounter;

    #[test]
    fn mailbox_waiter_is_woken_once_by_the_next_update() {
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let mailbox = Mailbox::new(Vec::new());
        assert_eq!(mailbox.poll(&mut cx, Vec::pop), Poll::Pending::<i32>);
        mailbox.with(|content| content.push(1));
        assert_eq!(wakes.count(), 0);
        mailbox.update(|content| content.push(2));
        mailbox.update(|content| content.push(3));
        assert_eq!(wakes.count(), 1);
        assert_eq!(mailbox.poll(&mut cx, Vec::pop), Poll::Ready(3));
    }
}
