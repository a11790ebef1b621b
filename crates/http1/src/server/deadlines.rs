use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep};

/// How long a connection is waited for.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimeouts {
    /// The time within which a request head must be complete.
    pub head: Duration,
    /// The time between two requests.
    pub idle: Duration,
    /// How often a service is polled that makes a response, so that it needs no timer of its own.
    pub response_poll: Duration,
}

/// How long one connection is waited for: a head must be whole in its time, and a connection may be idle for longer.
///
/// It is polled whenever the connection is polled, and sets its timer once for many requests: a deadline is cancelled as soon
/// as the next request arrives, and each reset costs the runtime work. So the timer is left as it is. It goes off
/// too early at worst, and is then set to the deadline that counts by now.
#[derive(Debug)]
pub(super) struct ConnectionDeadlines {
    head_timeout: Duration,
    idle_timeout: Duration,
    poll_interval: Duration,
    /// What was waited for at the last poll.
    wait: Option<ConnectionWait>,
    /// Whether no request came yet.
    is_first: bool,
    /// Nothing for a time that no clock will ever show.
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// However soon a response has to begin, its service is not polled more often.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionWait {
    /// The rest of a head.
    Head,
    /// The beginning of one.
    Request,
    /// Our own response, which takes as long as it takes. Its service is polled at an interval.
    Response,
}

impl ConnectionDeadlines {
    /// Begins to wait for the first head, which has no more time than any other.
    pub(super) fn new(timeouts: &ConnectionTimeouts) -> Self {
        let ConnectionTimeouts { head, idle, response_poll } = *timeouts;
        let (look_every, deadline) = (response_poll.max(MIN_POLL_INTERVAL), after(head));
        Self {
            head_timeout: head,
            idle_timeout: idle,
            poll_interval: look_every,
            wait: None,
            is_first: true,
            deadline,
            timer: None,
        }
    }

    /// Records that a request has arrived, and restarts the deadline.
    pub(super) fn request_received(&mut self) {
        (self.wait, self.is_first) = (None, false);
    }

    /// Polls for the end of a deadline, after the connection was polled and had nothing to do.
    pub(super) fn poll_expired(&mut self, cx: &mut Context<'_>, wait: ConnectionWait) -> Poll<()> {
        if !self.is_first && self.wait != Some(wait) {
            self.wait = Some(wait);
            self.deadline = after(match wait {
                ConnectionWait::Head => self.head_timeout,
                ConnectionWait::Request => self.idle_timeout,
                ConnectionWait::Response => self.poll_interval,
            });
        }
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
            // For a task without cooperative budget every poll is pending, and such a timer would never wake it.
            if pin!(unconstrained(sleep.as_mut())).poll(cx).is_pending() {
                break;
            }
            if wait != ConnectionWait::Response {
                return Poll::Ready(());
            }
            // The service was polled just before.
            self.deadline = after(self.poll_interval);
        }
        Poll::Pending
    }
}

fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use trunkline_testing::WakeCounter;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NEVER: u32 = 1000;

    fn new_deadlines(head: Duration, idle: Duration) -> ConnectionDeadlines {
        ConnectionDeadlines::new(&ConnectionTimeouts { head, idle, response_poll: 2 * SECOND })
    }

    /// Returns after how many seconds a deadline expires, if a head begins after so many.
    async fn lasts(deadlines: &mut ConnectionDeadlines, begins_after: u32) -> u32 {
        let mut cx = Context::from_waker(Waker::noop());
        for passed in 0..100 {
            let wait = if passed < begins_after { ConnectionWait::Request } else { ConnectionWait::Head };
            if deadlines.poll_expired(&mut cx, wait).is_ready() {
                return passed;
            }
            tokio::time::advance(SECOND).await;
        }
        panic!("never over");
    }

    #[tokio::test(start_paused = true)]
    async fn head_timeout_starts_with_its_first_byte_and_idle_timeout_is_longer() {
        for (begins_after, expected) in [(NEVER, 10), (0, 10), (5, 10)] {
            let mut deadlines = new_deadlines(10 * SECOND, 60 * SECOND);
            assert_eq!(lasts(&mut deadlines, begins_after).await, expected, "the first, {begins_after}");
        }
        for (begins_after, expected) in [(NEVER, 60), (0, 10), (5, 15), (59, 69)] {
            let mut deadlines = new_deadlines(10 * SECOND, 60 * SECOND);
            deadlines.request_received();
            assert_eq!(lasts(&mut deadlines, begins_after).await, expected, "the next, {begins_after}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn running_request_has_no_connection_timeout() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut deadlines = new_deadlines(10 * SECOND, 60 * SECOND);
        deadlines.request_received();
        for _ in 0..5 {
            assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Response).is_pending());
            tokio::time::advance(100 * SECOND).await;
        }
        assert_eq!(lasts(&mut deadlines, NEVER).await, 60, "from here on it is idle");
    }

    #[tokio::test(start_paused = true)]
    async fn pending_response_is_polled_periodically() {
        let mut deadlines = new_deadlines(10 * SECOND, 60 * SECOND);
        deadlines.poll_interval = 2 * SECOND;
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        deadlines.request_received();
        for looks in 0..3 {
            assert_eq!(wakes.count(), looks);
            assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Response).is_pending());
            tokio::time::advance(2 * SECOND + Duration::from_millis(1)).await;
        }
        // Once the response has begun the deadline is not polled any more.
        tokio::time::advance(100 * SECOND).await;
        assert_eq!(wakes.count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn consecutive_deadlines_share_one_timer_and_each_fires() {
        let mut deadlines = new_deadlines(10 * SECOND, 10 * SECOND);
        let (waker, wakes) = WakeCounter::waker();
        let mut cx = Context::from_waker(&waker);
        // Nine deadlines are taken back in time, as those of requests that come.
        for _ in 0..9 {
            assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Request).is_pending());
            tokio::time::advance(SECOND).await;
            deadlines.request_received();
        }
        assert_eq!(wakes.count(), 0, "the runtime was told once");
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Request).is_pending());
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(wakes.count(), 1, "the first deadline, which counts no more");
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Request).is_pending());
        tokio::time::advance(9 * SECOND).await;
        assert_eq!(wakes.count(), 2);
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Request).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_fires_despite_an_exhausted_cooperative_budget() {
        let mut deadlines = new_deadlines(SECOND, SECOND);
        let (waker, wakes) = WakeCounter::waker();
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().await;
        }
        let mut cx = Context::from_waker(&waker);
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Head).is_pending());
        // In its next turn it is polled again, and by then its timer has to be set.
        tokio::task::yield_now().await;
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Head).is_pending());
        let before = wakes.count();
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(wakes.count(), before + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn duration_max_never_times_out() {
        let mut deadlines = new_deadlines(Duration::MAX, Duration::MAX);
        deadlines.poll_interval = Duration::MAX;
        let mut cx = Context::from_waker(Waker::noop());
        for wait in [ConnectionWait::Head, ConnectionWait::Response, ConnectionWait::Request] {
            assert!(deadlines.poll_expired(&mut cx, wait).is_pending());
            tokio::time::advance(1_000_000 * SECOND).await;
            assert!(deadlines.poll_expired(&mut cx, wait).is_pending());
            deadlines.request_received();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_deadline_resets_the_timer() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut deadlines = new_deadlines(SECOND, 60 * SECOND);
        deadlines.request_received();
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Request).is_pending());
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Head).is_pending());
        tokio::time::advance(2 * SECOND).await;
        assert!(deadlines.poll_expired(&mut cx, ConnectionWait::Head).is_ready());
    }
}
