use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The most messages in one second that answer none of our requests.
const MAX_UNREQUESTED: usize = 10_000;

const WINDOW: Duration = Duration::from_secs(1);

/// Slows down a peer that sends more messages than a client has use for: the rest of the second it is not read from.
#[derive(Debug, Default)]
pub(crate) struct FloodGuard {
    count: usize,
    since: Option<Instant>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl FloodGuard {
    /// Counts a message that answers none of our requests; reports whether a pause begins with it.
    pub(crate) fn count(&mut self) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.count += 1;
        if self.count < MAX_UNREQUESTED {
            return false;
        }
        // The clock is read once in so many messages.
        let begins = since.elapsed() < WINDOW && self.pause.is_none();
        if begins {
            tracing::debug!("the server floods, and is not read from for a moment");
            self.pause = Some(Box::pin(tokio::time::sleep_until(since + WINDOW)));
        }
        (self.count, self.since) = (0, None);
        begins
    }

    /// Reports whether nothing is to be read now; the task is woken at the end of the pause.
    pub(crate) fn is_paused(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pause) = &mut self.pause else { return false };
        let is_over = pause.as_mut().poll(cx).is_ready();
        if is_over {
            self.pause = None;
        }
        !is_over
    }

    /// Waits until a pause is over, if there is one. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        std::future::poll_fn(|cx| if self.is_paused(cx) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_beyond_the_rate_pause_reading_until_the_second_is_over() {
        let mut guard = FloodGuard::default();
        let started = Instant::now();
        assert!((0..MAX_UNREQUESTED - 1).all(|_| !guard.count()));
        assert!(!std::future::poll_fn(|cx| Poll::Ready(guard.is_paused(cx))).await);
        assert!(guard.count());
        let mut polls = 0;
        std::future::poll_fn(|cx| {
            polls += 1;
            if guard.is_paused(cx) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        assert!(polls > 1 && started.elapsed() >= WINDOW, "{polls}");
    }

    #[tokio::test(start_paused = true)]
    async fn messages_spread_over_a_longer_time_are_not_delayed() {
        let mut guard = FloodGuard::default();
        for _ in 0..10 {
            assert!((0..MAX_UNREQUESTED / 2).all(|_| !guard.count()));
            tokio::time::advance(WINDOW).await;
            assert!(!std::future::poll_fn(|cx| Poll::Ready(guard.is_paused(cx))).await);
        }
    }
}
