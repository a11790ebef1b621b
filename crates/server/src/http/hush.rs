//! Wake-ups of a connection that are not needed.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use http_body::{Body, Frame};

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

/// What [`Body::poll_frame`] gives.
type Polled<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

/// Takes a piece of a body, and wakes the connection for it only if there is more to come.
pub(super) fn poll_frame<B: Body>(mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Polled<B> {
    let taking = Taking::begin();
    let taken = body.as_mut().poll_frame(cx);
    drop(taking);
    if let Some(task) = WOKEN.take()
        && !body.is_end_stream()
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
    use std::convert::Infallible;

    use super::*;
    use crate::testing::Wakes;

    /// A body that wakes whoever takes the only piece of it, as those of hyper do.
    struct Piece {
        is_last: bool,
        wakes: bool,
    }

    impl Body for Piece {
        type Data = &'static [u8];
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<Self> {
            if self.wakes {
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Some(Ok(Frame::data(b"7"))))
        }

        fn is_end_stream(&self) -> bool {
            self.is_last
        }
    }

    #[test]
    fn only_the_last_piece_of_a_body_wakes_nobody() {
        let ((task, wakes), mut hushed) = (Wakes::counted(), Hushed::default());
        let waker = hushed.waker(&task).clone();
        assert!(hushed.waker(&task).will_wake(&waker), "it is made once");
        let mut cx = Context::from_waker(&waker);
        for (is_last, piece_wakes, expected) in
            [(false, true, 1), (true, true, 1), (false, false, 1), (false, true, 2)]
        {
            let mut body = Piece { is_last, wakes: piece_wakes };
            let Poll::Ready(Some(Ok(taken))) = poll_frame(Pin::new(&mut body), &mut cx) else {
                panic!("nothing was taken");
            };
            assert_eq!((taken.into_data().ok(), wakes.count()), (Some(&b"7"[..]), expected));
        }
        waker.wake();
        assert_eq!(wakes.count(), 3, "nothing else is kept from anybody");
        let (other, others) = Wakes::counted();
        hushed.waker(&other).wake_by_ref();
        assert_eq!(others.count(), 1, "a connection that moves to another task");
    }
}
