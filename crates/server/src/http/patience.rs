use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep as HyperSleep, Timer};
use tokio::time::Sleep;

use crate::limits::Limits;

/// The clock of one connection: one timer for all the deadlines that HTTP sets, one after the other.
///
/// HTTP sets a deadline for every head and takes it back when the head is there, nearly always at once. The runtime would
/// have to be told of each, and may have to be woken for it. So the timer is left as it is: it goes off too early at worst,
/// and is then set to the deadline that counts by now.
///
/// HTTP knows one time for a head, from when it begins to wait for it. A head that has not begun is given the time that a
/// connection may be idle instead, unless it is the first.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    head_within: Duration,
    idle_within: Duration,
    timer: Mutex<Option<Pin<Box<Sleep>>>>,
    /// Whether anything was read since something was last written: of the next head, if one is waited for.
    heard: AtomicBool,
    /// Whether a head was waited for already.
    waited: AtomicBool,
}

impl Patience {
    pub(super) fn new(limits: &Limits) -> Self {
        let shared = Shared {
            head_within: limits.head_within,
            idle_within: limits.idle_within,
            timer: Mutex::default(),
            heard: AtomicBool::new(false),
            waited: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Notes that something was read.
    pub(super) fn heard(&self) {
        self.shared.heard.store(true, Ordering::Relaxed);
    }

    /// Notes that something was written.
    pub(super) fn said(&self) {
        self.shared.heard.store(false, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Deadline {
    at: tokio::time::Instant,
    /// Whether it is that of an idle connection, on which no head has begun.
    is_idle: bool,
    patience: Patience,
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { at, is_idle, patience: Patience { shared } } = self.get_mut();
        if *is_idle && shared.heard.load(Ordering::Relaxed) {
            *is_idle = false;
            *at = tokio::time::Instant::now() + shared.head_within;
        }
        let mut timer = shared.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = match &mut *timer {
            // A connection has one task, so that the one which the timer wakes is this one.
            Some(sleep) if sleep.deadline() <= *at && !sleep.is_elapsed() => return Poll::Pending,
            Some(sleep) if sleep.deadline() == *at => sleep,
            Some(sleep) => {
                sleep.as_mut().reset(*at);
                sleep
            }
            None => timer.insert(Box::pin(tokio::time::sleep_until(*at))),
        };
        sleep.as_mut().poll(cx)
    }
}

impl HyperSleep for Deadline {}

impl Timer for Patience {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn HyperSleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn HyperSleep>> {
        let is_idle = self.shared.waited.load(Ordering::Relaxed);
        let mut at = tokio::time::Instant::from(deadline);
        if is_idle {
            at = at - self.shared.head_within + self.shared.idle_within;
        } else {
            self.shared.waited.store(true, Ordering::Relaxed);
        }
        Box::pin(Deadline { at, is_idle, patience: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn patience(head_within: Duration, idle_within: Duration) -> Patience {
        Patience::new(&Limits { head_within, idle_within, ..Limits::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_from_when_it_begins_and_a_connection_is_kept_for_longer() {
        let second = Duration::from_secs(1);
        let mut cx = Context::from_waker(Waker::noop());
        let patience = patience(10 * second, 60 * second);
        let mut last = async |mut deadline: Pin<Box<dyn HyperSleep>>, hear_after: u32| {
            for passed in 0..100 {
                if passed == hear_after {
                    patience.heard();
                }
                if deadline.as_mut().poll(&mut cx).is_ready() {
                    return passed;
                }
                tokio::time::advance(second).await;
            }
            panic!("never over");
        };
        const NEVER: u32 = 1000;
        assert_eq!(last(patience.sleep(10 * second), NEVER).await, 10, "the first head");
        for (hear_after, expected) in [(NEVER, 60), (0, 10), (5, 15), (59, 69)] {
            patience.said();
            assert_eq!(last(patience.sleep(10 * second), hear_after).await, expected, "{hear_after}");
        }
        assert_eq!(
            last(patience.sleep(10 * second), NEVER).await,
            10,
            "it has begun before it was waited for"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_one_after_the_other_share_a_timer_and_each_is_kept() {
        let second = Duration::from_secs(1);
        let (patience, woken) = (patience(10 * second, 10 * second), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        // Nine deadlines are taken back in time, as those of heads that come.
        for _ in 0..9 {
            let mut head = patience.sleep(10 * second);
            assert!(head.as_mut().poll(&mut cx).is_pending());
            tokio::time::advance(second).await;
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 0, "the runtime was told once");
        let mut last = patience.sleep(10 * second);
        assert!(last.as_mut().poll(&mut cx).is_pending());
        tokio::time::advance(2 * second).await;
        assert_eq!(woken.0.load(Ordering::SeqCst), 1, "the first deadline, which counts no more");
        assert!(last.as_mut().poll(&mut cx).is_pending());
        tokio::time::advance(9 * second).await;
        assert_eq!(woken.0.load(Ordering::SeqCst), 2);
        assert!(last.as_mut().poll(&mut cx).is_ready());
        let mut later = patience.sleep(20 * second);
        assert!(later.as_mut().poll(&mut cx).is_pending());
        let mut sooner = patience.sleep(second);
        assert!(sooner.as_mut().poll(&mut cx).is_pending());
        tokio::time::advance(2 * second).await;
        assert!(sooner.as_mut().poll(&mut cx).is_ready(), "one that is sooner than the timer");
    }
}
