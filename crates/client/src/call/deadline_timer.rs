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

/// Wakes calls whose time is up.
///
/// A timer for each call would be set and taken back with nearly every one of them, and hardly ever ring. So there is one for
/// all, which is set for whoever is due first: the others only say how long they wait.
///
/// That one belongs to the runtime of the first call. Calls of another have a timer of their own, since nobody knows for how
/// long the first is driven.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTimer {
    shared: Arc<TimerShared>,
    runtime_id: OnceLock<runtime::Id>,
}

#[derive(Debug, Default)]
struct TimerShared {
    state: Mutex<TimerState>,
    /// Tells the task that somebody is due before it looks again.
    rescheduled: Notify,
}

#[derive(Debug, Default)]
struct TimerState {
    waiters: Slab<TimerWaiter>,
    /// The task that wakes whoever is due; it ends when it looks and nobody waits.
    task: Option<AbortHandle>,
    /// When it looks again.
    fires_at: Option<Instant>,
}

/// Somebody who waits.
#[derive(Debug)]
struct TimerWaiter {
    due: Instant,
    /// Gone once it was woken.
    waker: Option<Waker>,
}

/// The alarm of one call.
#[derive(Debug)]
pub(crate) struct CallDeadline<'a>(DeadlineKind<'a>);

#[derive(Debug)]
enum DeadlineKind<'a> {
    Shared { shared: &'a Arc<TimerShared>, slot: Option<usize> },
    Own(Pin<Box<Sleep>>),
}

impl DeadlineTimer {
    /// Makes an alarm, which is not set yet.
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
    /// Waits for a time, which may be another with every poll; ready once it has come. One that came early, since the time was
    /// another before, is ready too.
    pub(crate) fn poll(&mut self, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            DeadlineKind::Shared { shared, slot: place } => shared.poll(place, due, cx.waker()),
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
        if let DeadlineKind::Shared { shared, slot: Some(place) } = &self.0 {
            let sleeper = shared.lock().waiters.remove(*place);
            drop(sleeper);
        }
    }
}

impl TimerShared {
    fn poll(self: &Arc<Self>, place: &mut Option<usize>, due: Instant, waker: &Waker) -> Poll<()> {
        let mut state = self.lock();
        let has_rung = match place.and_then(|place| state.waiters.get_mut(place)) {
            Some(sleeper) => {
                let has_rung = sleeper.waker.is_none();
                sleeper.due = due;
                sleeper.waker.get_or_insert_with(|| waker.clone()).clone_from(waker);
                has_rung
            }
            None => {
                let sleeper = TimerWaiter { due, waker: Some(waker.clone()) };
                *place = Some(state.waiters.insert(sleeper));
                false
            }
        };
        self.schedule_by(&mut state, due);
        if has_rung { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Sees to it that the task looks by a time.
    fn schedule_by(self: &Arc<Self>, state: &mut TimerState, due: Instant) {
        if state.task.as_ref().is_none_or(AbortHandle::is_finished) {
            state.fires_at = Some(due);
            state.task = Some(tokio::spawn(run_timer(self.clone())).abort_handle());
        } else if state.fires_at.is_none_or(|looks_at| due < looks_at) {
            state.fires_at = Some(due);
            self.rescheduled.notify_one();
        }
    }

    /// Wakes whoever is due; returns when to look again, unless nobody waits.
    fn fire_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let (mut woken, mut next) = (Vec::new(), None::<Instant>);
        for sleeper in state.waiters.iter_mut() {
            if sleeper.due <= now {
                woken.extend(sleeper.waker.take());
            } else {
                next = Some(next.map_or(sleeper.due, |next| next.min(sleeper.due)));
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

/// Wakes whoever is due, until nobody waits.
async fn run_timer(shared: Arc<TimerShared>) {
    while let Some(next) = shared.fire_due() {
        // Whichever comes first, it is looked again.
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
    async fn everybody_is_woken_when_due_and_nobody_who_left() {
        let alarms = DeadlineTimer::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let (mut late, mut early, mut leaves) = (alarms.deadline(), alarms.deadline(), alarms.deadline());
        for (alarm, seconds) in [(&mut late, 60), (&mut early, 2), (&mut leaves, 1)] {
            assert!(alarm.poll(after(seconds), &mut cx).is_pending());
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
    async fn a_time_that_is_moved_counts_from_the_next_poll_on() {
        let alarms = DeadlineTimer::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        let mut alarm = alarms.deadline();
        assert!(alarm.poll(after(10), &mut cx).is_pending());
        tokio::time::sleep_until(after(5)).await;
        assert!(alarm.poll(after(15), &mut cx).is_pending());
        tokio::time::sleep_until(after(14)).await;
        assert_eq!(wakes.count(), 0);
        // And back again.
        assert!(alarm.poll(after(14), &mut cx).is_pending());
        settle().await;
        assert_eq!(wakes.count(), 1);
        assert!(alarm.poll(after(14), &mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_when_nobody_waits_and_begins_again_with_the_next() {
        let alarms = DeadlineTimer::default();
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        for round in 1..=3 {
            let mut alarm = alarms.deadline();
            let due = Instant::now() + Duration::from_secs(1);
            assert!(alarm.poll(due, &mut cx).is_pending());
            tokio::time::sleep_until(due + Duration::from_secs(1)).await;
            assert_eq!(wakes.count(), round);
            assert!(alarms.shared.lock().task.is_none());
        }
    }

    #[test]
    fn a_call_of_another_runtime_is_woken_whatever_becomes_of_the_first() {
        let runtime = || runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (first, second) = (runtime(), runtime());
        let alarms = DeadlineTimer::default();
        let ring = async |after| {
            let (mut alarm, due) = (alarms.deadline(), Instant::now() + Duration::from_millis(after));
            std::future::poll_fn(|cx| alarm.poll(due, cx)).await;
            assert!(Instant::now() >= due);
        };
        first.block_on(ring(1));
        // From here on nobody drives it.
        second.block_on(ring(20));
        drop(first);
        second.block_on(ring(20));
    }
}
