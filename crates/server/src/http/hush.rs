//! Wake-ups of a connection that are not needed.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    /// Whether a piece of a body is being taken on this thread.
    static IS_TAKING: Cell<bool> = const { Cell::new(false) };
    /// The task that would have been woken by that: the one of the connection that the body belongs to, whoever reads it.
    static WOKEN: Cell<Option<Waker>> = const { Cell::new(None) };
}

/// Wakes the task of a connection, but not for a body that was taken to its end.
///
/// hyper tells the connection of every piece that is taken, so that it reads the next. For the last one there is nothing to
/// read, and the connection would look after everything below it in vain, in a turn for which another thread is woken.
struct Bell {
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if IS_TAKING.get() {
            WOKEN.set(Some(self.task.clone()));
        } else {
            self.task.wake_by_ref();
        }
    }
}

/// The waker that a connection is polled with, made once for its task.
#[derive(Default)]
pub(super) struct Hushed {
    made: Option<(Waker, Waker)>,
}

impl Hushed {
    pub(super) fn waker(&mut self, task: &Waker) -> &Waker {
        if self.made.as_ref().is_none_or(|(known, _)| !known.will_wake(task)) {
            self.made = None;
        }
        let make = || (task.clone(), Arc::new(Bell { task: task.clone() }).into());
        &self.made.get_or_insert_with(make).1
    }
}

/// Takes a piece of a body, and wakes the connection for it only if there is more to come.
pub(super) fn take<B, T>(
    body: &mut B,
    cx: &mut Context<'_>,
    take: impl FnOnce(&mut B, &mut Context<'_>) -> Poll<T>,
    is_over: impl FnOnce(&B) -> bool,
) -> Poll<T> {
    let taking = Taking::begin();
    let taken = take(body, cx);
    drop(taking);
    if let Some(task) = WOKEN.take()
        && !is_over(body)
    {
        task.wake();
    }
    taken
}

/// Ends with what it is about, also by a panic.
struct Taking;

impl Taking {
    fn begin() -> Self {
        IS_TAKING.set(true);
        Self
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        IS_TAKING.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_the_last_piece_of_a_body_wakes_nobody() {
        let (task, mut hushed) = (Arc::<Task>::default(), Hushed::default());
        let outer = Waker::from(task.clone());
        let waker = hushed.waker(&outer).clone();
        assert!(hushed.waker(&outer).will_wake(&waker), "it is made once");
        let mut cx = Context::from_waker(&waker);
        for (is_over, wakes, expected) in
            [(false, true, 1), (true, true, 1), (false, false, 1), (false, true, 2)]
        {
            let taken = take(
                &mut (),
                &mut cx,
                |(), cx| {
                    if wakes {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Ready(7)
                },
                |()| is_over,
            );
            assert_eq!((taken, task.0.load(Ordering::SeqCst)), (Poll::Ready(7), expected));
        }
        waker.wake();
        assert_eq!(task.0.load(Ordering::SeqCst), 3, "nothing else is kept from anybody");
        let other = Arc::<Task>::default();
        hushed.waker(&Waker::from(other.clone())).wake_by_ref();
        assert_eq!(other.0.load(Ordering::SeqCst), 1, "a connection that moves to another task");
    }
}
