//! The end of a channel: subscriptions are closed, requests that were read are answered, and overdue ones are
//! refused.
//!
//! # Invariants
//!
//! - Every call that was read gets a response while the peer reads; a call that takes too long is refused and counted:
//!   `calls_running_past_the_drain_timeout_are_refused_and_counted`.
//! - A channel closes only after its responses are flushed, unless the server is stopped:
//!   `channel_ends_only_after_its_responses_are_flushed`, `stopping_ends_a_draining_channel_with_an_endless_call`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;
use trunkline_protocol::Refusal;
use trunkline_transport::Channel;

use super::ChannelServer;
use super::channel_call::ChannelCall;
use crate::edge::modern::{self, SubscriptionStream};

/// The deadline of a channel.
#[derive(Debug, Default)]
pub(super) enum ChannelDeadline {
    /// None, while the channel is open.
    #[default]
    Unlimited,
    /// The calls have this long, after which they are refused.
    ForAnswers(Pin<Box<Sleep>>),
    /// The peer has this long to read its last messages.
    ForFlush(Pin<Box<Sleep>>),
}

impl<C: Channel> ChannelServer<C> {
    /// Sets how long calls may take to be answered once the peer sends no more, or the server drains.
    pub(crate) fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    pub(super) fn poll_drain(&mut self, cx: &mut Context<'_>) {
        if self.drained {
            return;
        }
        if self.core.shutdown.is_draining() || self.draining.as_mut().poll(cx).is_ready() {
            self.drained = true;
            self.close_subscriptions();
            if let Some(grace) = self.grace {
                self.start_grace_period(grace);
            }
        }
    }

    /// Handles the end of input: requests that were read are still answered, as far as they need no input from the
    /// peer, and subscriptions are closed.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.close_subscriptions();
        self.subscription = None;
        if let Some(session) = &self.session {
            session.close_input();
        }
        self.start_grace_period(self.grace.unwrap_or(self.core.limits.drain_timeout));
    }

    fn start_grace_period(&mut self, within: Duration) {
        if matches!(self.deadline, ChannelDeadline::Unlimited) {
            self.deadline = ChannelDeadline::ForAnswers(Box::pin(tokio::time::sleep(within)));
        }
    }

    /// Reports whether no new subscription may begin on the channel.
    pub(super) fn is_ending(&self) -> bool {
        self.ended || self.drained
    }

    fn close_subscriptions(&mut self) {
        for listen in std::mem::take(&mut self.subscriptions).into_values() {
            self.close_subscription(&listen);
        }
    }

    pub(super) fn close_subscription(&mut self, listen: &SubscriptionStream) {
        self.channel.send(&listen.final_response());
        self.channel.send(&listen.cancellation());
    }

    /// Refuses the calls that have passed the deadline.
    ///
    /// # Errors
    /// The peer did not read its last messages in time.
    pub(super) fn refuse_overdue(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let ChannelDeadline::ForAnswers(deadline) = &mut self.deadline {
            if deadline.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.refused_calls = self.refuse_unanswered();
            self.deadline =
                ChannelDeadline::ForFlush(Box::pin(tokio::time::sleep(self.core.limits.write_timeout)));
        }
        let ChannelDeadline::ForFlush(deadline) = &mut self.deadline else { return Ok(()) };
        match deadline.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not read its last answers"))
            }
        }
    }

    /// Refuses every call that runs or waits to begin; returns how many these were.
    fn refuse_unanswered(&mut self) -> usize {
        let refusal = Refusal::SHUTTING_DOWN.with_message("the server ended before this call was over");
        let calls = self.unanswered();
        for call in std::mem::take(&mut self.calls) {
            let message = match call {
                ChannelCall::Running(exchange, _) => exchange.abort(&refusal).message,
                ChannelCall::Deferred(id, ..) => modern::refuse(Some(&id), &refusal).message,
                ChannelCall::Done => continue,
            };
            self.channel.send(&message);
        }
        self.modern_calls.clear();
        while let Some((held, _)) = self.queued_calls.pop() {
            self.refuse_calls(&held, &refusal);
        }
        calls
    }

    fn unanswered(&self) -> usize {
        self.calls.iter().map(ChannelCall::calls).sum::<usize>() + self.queued_calls.calls()
    }

    /// Ready when the channel is over, with the number of calls that it leaves unanswered.
    pub(super) fn poll_done(&mut self, flushed: bool, cx: &mut Context<'_>) -> Poll<usize> {
        // A writer may have taken bytes that it has not written yet, so an empty queue alone is not the end.
        let idle =
            self.calls.is_empty() && self.queued_calls.is_empty() && self.channel.queued() == 0 && flushed;
        if self.is_ending() && idle {
            return Poll::Ready(self.refused_calls);
        }
        // Stopping also wakes the tasks that wait for draining, so it is polled only after draining began.
        let stop_signalled = self.drained && self.stopping.as_mut().poll(cx).is_ready();
        if !self.is_owned && (stop_signalled || self.core.shutdown.is_stopping()) {
            return Poll::Ready(self.refused_calls + self.unanswered());
        }
        Poll::Pending
    }
}
