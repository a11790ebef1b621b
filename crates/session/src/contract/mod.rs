//! Test suites that every store implementation has to pass.
//!
//! A store's own test calls [`sessions`], [`events`], [`states`], [`claims`] or [`bus`] with a function that creates an empty
//! store with given limits. A violation panics with the requirement that was broken. The suites need no runtime: they poll on
//! the calling thread and park until woken, so a store that needs a reactor runs it on another thread.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::StoreError;

mod bus;
mod claims;
mod events;
mod sessions;
mod states;

pub use self::bus::bus;
pub use self::claims::claims;
pub use self::events::events;
pub use self::sessions::sessions;
pub use self::states::states;

/// Waits for the result of a store operation, which must not be an error.
#[track_caller]
fn expect_ok<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
    match block_on(future) {
        Ok(value) => value,
        Err(error) => {
            contract_violation(&format!("the store failed where the suite gives it no reason to: {error}"))
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a suite reports a breach by failing the test that runs it")]
fn contract_violation(sentence: &str) -> ! {
    panic!("{sentence}")
}
