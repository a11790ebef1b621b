use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// A value that one side updates and the other polls.
///
/// Wakers are called, and removed values are dropped, only after the lock is released.
#[derive(Debug, Default)]
pub(crate) struct PolledValue<T> {
    state: Mutex<PolledState<T>>,
}

#[derive(Debug, Default)]
struct PolledState<T> {
    content: T,
    /// The waker of the last unsuccessful poll.
    waker: Option<Waker>,
}

impl<T> PolledValue<T> {
    pub(crate) fn new(content: T) -> Self {
        Self { state: Mutex::new(PolledState { content, waker: None }) }
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

    fn lock(&self) -> MutexGuard<'_, PolledState<T>> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_testing::WakeCounter;

    use super::*;

    #[test]
    fn polled_value_wakes_its_waiter_once_by_the_next_update() {
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let value = PolledValue::new(Vec::new());
        assert_eq!(value.poll(&mut cx, Vec::pop), Poll::Pending::<i32>);
        value.with(|content| content.push(1));
        assert_eq!(wakes.count(), 0);
        value.update(|content| content.push(2));
        value.update(|content| content.push(3));
        assert_eq!(wakes.count(), 1);
        assert_eq!(value.poll(&mut cx, Vec::pop), Poll::Ready(3));
    }
}
