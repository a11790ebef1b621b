use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep};

use crate::limits::Limits;

/// How long one connection is waited for: a head must be whole in its time, and a connection may be idle for longer.
///
/// It is asked whenever the connection is polled, and sets its timer once for many requests: a deadline is taken back as soon
/// as the next request is there, and the runtime would have to be told of each. So the timer is left as it is. It goes off
/// too early at worst, and is then set to the deadline that counts by now.
#[derive(Debug)]
pub(super) struct Patience {
    signs: Signs,
    head_within: Duration,
    idle_within: Duration,
    look_every: Duration,
    wait: Wait,
    /// Nothing for a time that no clock will ever show.
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// However soon a response has to begin, whoever makes it is not polled more often.
const LOOK_NO_SOONER: Duration = Duration::from_millis(20);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The rest of a head.
    Head,
    /// The beginning of one.
    Request,
    /// Our own response, which takes as long as it takes. Whoever makes it is polled now and then.
    Response,
    /// The rest of our response.
    Rest,
}

impl Patience {
    /// Begins to wait for the first head, which has no more time than any other.
    pub(super) fn new(limits: &Limits, signs: Signs) -> Self {
        let Limits { head_within, idle_within, stream_after, .. } = *limits;
        let (look_every, deadline) = (stream_after.max(LOOK_NO_SOONER), after(head_within));
        Self { signs, head_within, idle_within, look_every, wait: Wait::Head, deadline, timer: None }
    }

    /// Polls for the end of the patience, after the connection was polled and had nothing to do.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.look();
        while let Some(deadline) = self.deadline {
            let sleep = match &mut self.timer {
                // A connection has one task, so that the one which the timer wakes is this one.
                Some(sleep) if sleep.deadline() <= deadline && !sleep.is_elapsed() => break,
                Some(sleep) => {
                    if sleep.deadline() != deadline {
                        sleep.as_mut().reset(deadline);
                    }
                    sleep
                }
                none => none.insert(Box::pin(tokio::time::sleep_until(deadline))),
            };
            // A task that has used up its turn is told to wait by everything it polls, and such a timer would wake nobody.
            if pin!(unconstrained(sleep.as_mut())).poll(cx).is_pending() {
                break;
            }
            if self.wait != Wait::Response {
                return Poll::Ready(());
            }
            // Whoever makes the response was polled just before.
            self.deadline = after(self.look_every);
        }
        Poll::Pending
    }

    /// Looks at what is waited for by now, and until when.
    fn look(&mut self) {
        let seen = &self.signs.0;
        // A request may have come, and gone, since it was looked last.
        let was_asked = seen.asked.load(Ordering::Relaxed);
        seen.asked.store(false, Ordering::Relaxed);
        let wait = match (seen.response.load(Ordering::Relaxed), seen.stuck.load(Ordering::Relaxed)) {
            (AWAITED, _) => Wait::Response,
            (BEGUN, _) | (_, true) => Wait::Rest,
            _ if seen.heard.load(Ordering::Relaxed) => Wait::Head,
            // Of a head that has begun, the beginning may be all that was ever heard.
            _ if self.wait == Wait::Head && !was_asked => Wait::Head,
            _ => Wait::Request,
        };
        if wait == self.wait && !was_asked {
            return;
        }
        self.wait = wait;
        self.deadline = match wait {
            Wait::Head => after(self.head_within),
            Wait::Request => after(self.idle_within),
            Wait::Response => after(self.look_every),
            Wait::Rest => None,
        };
    }
}

fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

/// What the socket and the requests of one connection tell of it. All of them run in its one task, so that no order is needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Signs(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Whether anything was read since something was last written: of the next head, if one is waited for.
    heard: AtomicBool,
    /// Whether what is written waits for the peer to read.
    stuck: AtomicBool,
    /// Whether there was a request.
    asked: AtomicBool,
    /// Whether a response is being made, or written.
    response: AtomicU8,
    /// Which request that is for.
    number: AtomicU32,
}

const NONE: u8 = 0;
const AWAITED: u8 = 1;
const BEGUN: u8 = 2;

impl Signs {
    /// Notes that something was read.
    pub(super) fn heard(&self) {
        self.0.heard.store(true, Ordering::Relaxed);
    }

    /// Notes that something was written.
    pub(super) fn said(&self) {
        self.0.heard.store(false, Ordering::Relaxed);
    }

    /// Notes whether the peer has to read before anything more can be written.
    pub(super) fn is_stuck(&self, stuck: bool) {
        self.0.stuck.store(stuck, Ordering::Relaxed);
    }

    /// Notes that a request is here; it is being answered until what is returned is dropped.
    pub(super) fn asked(&self) -> Answering {
        let number = self.0.number.load(Ordering::Relaxed).wrapping_add(1);
        self.0.number.store(number, Ordering::Relaxed);
        self.0.asked.store(true, Ordering::Relaxed);
        self.0.response.store(AWAITED, Ordering::Relaxed);
        Answering { signs: self.clone(), number }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering {
    signs: Signs,
    number: u32,
}

impl Answering {
    /// Notes that the head of the response is there.
    pub(super) fn begun(&self) {
        self.note(BEGUN);
    }

    /// A response may be dropped after the next request is here, of which it says nothing.
    fn note(&self, response: u8) {
        let seen = &self.signs.0;
        if seen.number.load(Ordering::Relaxed) == self.number {
            seen.response.store(response, Ordering::Relaxed);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.note(NONE);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::testing::Wakes;

    const SECOND: Duration = Duration::from_secs(1);
    const NEVER: u32 = 1000;

    fn patience(head_within: Duration, idle_within: Duration) -> (Patience, Signs) {
        let signs = Signs::default();
        let limits = Limits { head_within, idle_within, ..Limits::default() };
        (Patience::new(&limits, signs.clone()), signs)
    }

    /// Returns after how many seconds the patience ends, if something is heard after so many.
    async fn lasts(patience: &mut Patience, signs: &Signs, hear_after: u32) -> u32 {
        let mut cx = Context::from_waker(Waker::noop());
        for passed in 0..100 {
            if passed == hear_after {
                signs.heard();
            }
            if patience.poll_end(&mut cx).is_ready() {
                return passed;
            }
            tokio::time::advance(SECOND).await;
        }
        panic!("never over");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_from_when_it_begins_and_a_connection_is_kept_for_longer() {
        for (hear_after, expected) in [(NEVER, 10), (0, 10), (5, 10)] {
            let (mut patience, signs) = patience(10 * SECOND, 60 * SECOND);
            assert_eq!(lasts(&mut patience, &signs, hear_after).await, expected, "the first, {hear_after}");
        }
        for (hear_after, expected) in [(NEVER, 60), (0, 10), (5, 15), (59, 69)] {
            let (mut patience, signs) = patience(10 * SECOND, 60 * SECOND);
            drop(signs.asked());
            signs.said();
            assert_eq!(lasts(&mut patience, &signs, hear_after).await, expected, "the next, {hear_after}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_all_the_time_that_it_takes_and_so_has_a_peer_that_has_to_read_it() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut patience, signs) = patience(10 * SECOND, 60 * SECOND);
        signs.heard();
        let answering = signs.asked();
        let mut outlasts = async |patience: &mut Patience| {
            for _ in 0..5 {
                assert!(patience.poll_end(&mut cx).is_pending());
                tokio::time::advance(100 * SECOND).await;
            }
        };
        outlasts(&mut patience).await;
        signs.said();
        signs.is_stuck(true);
        drop(answering);
        outlasts(&mut patience).await;
        signs.is_stuck(false);
        assert_eq!(lasts(&mut patience, &signs, NEVER).await, 60, "from here on it is idle");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_of_an_answer_says_nothing_of_the_next() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut patience, signs) = patience(10 * SECOND, 60 * SECOND);
        let first = signs.asked();
        let _second = signs.asked();
        first.begun();
        drop(first);
        for _ in 0..5 {
            assert!(patience.poll_end(&mut cx).is_pending());
            tokio::time::advance(100 * SECOND).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_makes_a_response_is_polled_now_and_then_until_it_has_begun() {
        let (mut patience, signs) = patience(10 * SECOND, 60 * SECOND);
        patience.look_every = 2 * SECOND;
        let (waker, wakes) = Wakes::counted();
        let mut cx = Context::from_waker(&waker);
        let answering = signs.asked();
        for looks in 0..3 {
            assert_eq!(wakes.count(), looks);
            assert!(patience.poll_end(&mut cx).is_pending());
            tokio::time::advance(2 * SECOND + Duration::from_millis(1)).await;
        }
        answering.begun();
        // What is set already goes off once more.
        assert!(patience.poll_end(&mut cx).is_pending());
        tokio::time::advance(10 * SECOND).await;
        let last = wakes.count();
        for _ in 0..10 {
            assert!(patience.poll_end(&mut cx).is_pending());
            tokio::time::advance(100 * SECOND).await;
        }
        assert_eq!(wakes.count(), last, "a stream is left alone");
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_one_after_the_other_share_a_timer_and_each_is_kept() {
        let (mut patience, signs) = patience(10 * SECOND, 10 * SECOND);
        let (waker, wakes) = Wakes::counted();
        let mut cx = Context::from_waker(&waker);
        // Nine deadlines are taken back in time, as those of requests that come.
        for _ in 0..9 {
            assert!(patience.poll_end(&mut cx).is_pending());
            tokio::time::advance(SECOND).await;
            drop(signs.asked());
        }
        assert_eq!(wakes.count(), 0, "the runtime was told once");
        assert!(patience.poll_end(&mut cx).is_pending());
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(wakes.count(), 1, "the first deadline, which counts no more");
        assert!(patience.poll_end(&mut cx).is_pending());
        tokio::time::advance(9 * SECOND).await;
        assert_eq!(wakes.count(), 2);
        assert!(patience.poll_end(&mut cx).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_used_up_its_turn_is_woken_nevertheless() {
        let (mut patience, _signs) = patience(SECOND, SECOND);
        let (waker, wakes) = Wakes::counted();
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().await;
        }
        let mut cx = Context::from_waker(&waker);
        assert!(patience.poll_end(&mut cx).is_pending());
        // In its next turn it is asked again, and by then its timer has to be set.
        tokio::task::yield_now().await;
        assert!(patience.poll_end(&mut cx).is_pending());
        let before = wakes.count();
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(wakes.count(), before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_without_end_is_waited_for_without_end() {
        let (mut patience, signs) = patience(Duration::MAX, Duration::MAX);
        patience.look_every = Duration::MAX;
        let mut cx = Context::from_waker(Waker::noop());
        let mut outlasts = async |patience: &mut Patience| {
            assert!(patience.poll_end(&mut cx).is_pending());
            tokio::time::advance(1_000_000 * SECOND).await;
            assert!(patience.poll_end(&mut cx).is_pending());
        };
        outlasts(&mut patience).await;
        let answering = signs.asked();
        outlasts(&mut patience).await;
        drop(answering);
        outlasts(&mut patience).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_sooner_than_the_timer_is_kept() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut patience, signs) = patience(SECOND, 60 * SECOND);
        drop(signs.asked());
        assert!(patience.poll_end(&mut cx).is_pending());
        signs.heard();
        assert!(patience.poll_end(&mut cx).is_pending());
        tokio::time::advance(2 * SECOND).await;
        assert!(patience.poll_end(&mut cx).is_ready());
    }
}
