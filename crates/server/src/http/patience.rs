use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep as HyperSleep, Timer};
use tokio::time::Sleep;

/// The clock of one connection: one timer for all the deadlines that HTTP sets, one after the other.
///
/// HTTP sets a deadline for every head and takes it back when the head is there, nearly always at once. The runtime would
/// have to be told of each, and may have to be woken for it. So the timer is left as it is: it goes off too early at worst,
/// and is then set to the deadline that counts by now.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience {
    timer: Arc<Mutex<Option<Pin<Box<Sleep>>>>>,
}

#[derive(Debug)]
struct Deadline {
    at: tokio::time::Instant,
    patience: Patience,
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.patience.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = match &mut *timer {
            // A connection has one task, so that the one which the timer wakes is this one.
            Some(sleep) if sleep.deadline() <= self.at && !sleep.is_elapsed() => return Poll::Pending,
            Some(sleep) if sleep.deadline() == self.at => sleep,
            Some(sleep) => {
                sleep.as_mut().reset(self.at);
                sleep
            }
            None => timer.insert(Box::pin(tokio::time::sleep_until(self.at))),
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
        Box::pin(Deadline { at: deadline.into(), patience: self.clone() })
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

    #[tokio::test(start_paused = true)]
    async fn deadlines_one_after_the_other_share_a_timer_and_each_is_kept() {
        let (patience, woken) = (Patience::default(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let second = Duration::from_secs(1);
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
        let mut sooner = patience.sleep(second);
        assert!(sooner.as_mut().poll(&mut cx).is_pending());
        tokio::time::advance(2 * second).await;
        assert!(sooner.as_mut().poll(&mut cx).is_ready(), "one that is sooner than the timer");
    }
}
