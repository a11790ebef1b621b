use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

use crate::slab::Slab;

/// Wakes calls when their deadlines expire.
///
/// A timer per call would be set and cancelled with nearly every call, and hardly ever fire. So all calls share one
/// timer task, which sleeps until the earliest deadline; a call only registers its own.
///
/// The timer task runs on the runtime of the first call. Calls of another runtime have a `Sleep` of their own,
/// since the first runtime may stop being driven at any time.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTimer {
    shared: Arc<TimerShared>,
    runtime_id: OnceLock<runtime::Id>,
}

#[derive(Debug, Default)]
struct TimerShared {
    state: Mutex<TimerState>,
    /// Notifies the task of a deadline before its next scheduled wake-up.
    rescheduled: Notify,
}

#[derive(Debug, Default)]
struct TimerState {
    waiters: Slab<TimerWaiter>,
    /// The task that wakes waiters; it ends when it finds none.
    task: Option<AbortHandle>,
    /// When the task wakes up next.
    fires_at: Option<Instant>,
}

/// A registered waiter.
#[derive(Debug)]
struct TimerWaiter {
    due: Instant,
    /// `None` once the waiter was woken.
    waker: Option<Waker>,
}

/// The deadline of one call.
#[derive(Debug)]
pub(crate) struct CallDeadline<'a>(DeadlineKind<'a>);

#[derive(Debug)]
enum DeadlineKind<'a> {
    Shared { shared: &'a Arc<TimerShared>, slot: Option<usize> },
    Own(Pin<Box<Sleep>>),
}

impl DeadlineTimer {
    /// Creates a deadline that is not armed yet.
    pub(crate) fn deadline(&self) -> CallDeadline<'_> {
        let here = Handle::current().id();
        if *self.runtime_id.get_or_init(|| here) == here {
            CallDeadline(DeadlineKind::Shared { shared: &self.shared, slot: None })
        } else {
            CallDeadline(DeadlineKind::Own(Box::pin(tokio::time::sleep(Duration::ZERO))))
        }
    }
}

impl Drop for DeadlineTimer {
    fn drop(&mut self) {
        if let Some(task) = self.shared.lock().task.take() {
            task.abort();
        }
    }
}

impl CallDeadline<'_> {
    /// Polls for the deadline, which may differ from poll to poll; ready once it has expired. A wake-up for an
    /// earlier deadline is also reported as ready.
    pub(crate) fn poll(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            DeadlineKind::Shared { shared, slot } => shared.poll(slot, due, cx.waker()),
            DeadlineKind::Own(sleep) => {
                if sleep.deadline() != due {
                    sleep.as_mut().reset(due);
                }
                sleep.as_mut().poll(cx)
            }
        }
    }
}

impl Drop for CallDeadline<'_> {
    fn drop(&mut self) {
        if let DeadlineKind::Shared { shared, slot: Some(slot) } = &self.0 {
            let waiter = shared.lock().waiters.remove(*slot);
            drop(waiter);
        }
    }
}

impl TimerShared {
    fn poll(self: &Arc<Self>, slot: &mut Option<usize>, due: Instant, waker: &Waker) -> Poll<()> {
        let mut state = self.lock();
        let has_fired = match slot.and_then(|slot| state.waiters.get_mut(slot)) {
            Some(waiter) => {
                let has_fired = waiter.waker.is_none();
                waiter.due = due;
                waiter.waker.get_or_insert_with(|| waker.clone()).clone_from(waker);
                has_fired
            }
            None => {
                let waiter = TimerWaiter { due, waker: Some(waker.clone()) };
                *slot = Some(state.waiters.insert(waiter));
                false
            }
        };
        self.schedule_by(&mut state, due);
        if has_fired { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Makes sure that the task wakes up by `due`.
    fn schedule_by(self: &Arc<Self>, state: &mut TimerState, due: Instant) {
        if state.task.as_ref().is_none_or(AbortHandle::is_finished) {
            state.fires_at = Some(due);
            state.task = Some(tokio::spawn(run_timer(self.clone())).abort_handle());
        } else if state.fires_at.is_none_or(|looks_at| due < looks_at) {
            state.fires_at = Some(due);
            self.rescheduled.notify_one();
        }
    }

    /// Wakes the waiters that are due; returns the next deadline, or `None` without waiters.
    fn fire_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let (mut woken, mut next) = (Vec::new(), None::<Instant>);
        for waiter in state.waiters.iter_mut() {
            if waiter.due <= now {
                woken.extend(waiter.waker.take());
            } else {
                next = Some(next.map_or(waiter.due, |next| next.min(waiter.due)));
            }
        }
        state.fires_at = next;
        if next.is_none() {
            state.task = None;
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        next
    }

    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock()
    }
}

/// Wakes waiters at their deadlines, until there are none.
async fn run_timer(shared: Arc<TimerShared>) {
    while let Some(next) = shared.fire_due() {
        // Either outcome leads to another look at the waiters.
        let _ = tokio::time::timeout_at(next, shared.rescheduled.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_counter::WakeCounter;

    async fn settle() {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_timer_wakes_due_waiters_but_not_dropped_ones() {
        let timer = DeadlineTimer::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let (mut late, mut early, mut leaves) = (timer.deadline(), timer.deadline(), timer.deadline());
        for (deadline, seconds) in [(&mut late, 60), (&mut early, 2), (&mut leaves, 1)] {
            assert!(deadline.poll(after(seconds), &mut cx).is_pending());
        }
        drop(leaves);
        settle().await;
        tokio::time::sleep(Duration::from_millis(1990)).await;
        assert_eq!(wakes.count(), 0);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(wakes.count(), 1);
        assert!(early.poll(after(2), &mut cx).is_ready() && late.poll(after(60), &mut cx).is_pending());
        drop(early);
        tokio::time::sleep_until(after(61)).await;
        assert_eq!(wakes.count(), 2);
        assert!(late.poll(after(60), &mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn moved_deadline_applies_from_the_next_poll() {
        let timer = DeadlineTimer::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let mut deadline = timer.deadline();
        assert!(deadline.poll(after(10), &mut cx).is_pending());
        tokio::time::sleep_until(after(5)).await;
        assert!(deadline.poll(after(15), &mut cx).is_pending());
        tokio::time::sleep_until(after(14)).await;
        assert_eq!(wakes.count(), 0);
        // And back again.
        assert!(deadline.poll(after(14), &mut cx).is_pending());
        settle().await;
        assert_eq!(wakes.count(), 1);
        assert!(deadline.poll(after(14), &mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn timer_task_ends_without_waiters_and_restarts_with_the_next() {
        let timer = DeadlineTimer::default();
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        for round in 1..=3 {
            let mut deadline = timer.deadline();
            let due = Instant::now() + Duration::from_secs(1);
            assert!(deadline.poll(due, &mut cx).is_pending());
            tokio::time::sleep_until(due + Duration::from_secs(1)).await;
            assert_eq!(wakes.count(), round);
            assert!(timer.shared.lock().task.is_none());
        }
    }

    #[test]
    fn call_of_another_runtime_is_woken_although_the_first_is_dropped() {
        let runtime = || runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (first, second) = (runtime(), runtime());
        let timer = DeadlineTimer::default();
        let ring = async |after| {
            let (mut deadline, due) = (timer.deadline(), Instant::now() + Duration::from_millis(after));
            std::future::poll_fn(|cx| deadline.poll(due, cx)).await;
            assert!(Instant::now() >= due);
        };
        first.block_on(ring(1));
        // From here on the first runtime is not driven.
        second.block_on(ring(20));
        drop(first);
        second.block_on(ring(20));
    }
}
