//! How a channel ends: what stands is closed, what was read is answered, and what takes too long is refused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;
use trunkline_protocol::Refusal;
use trunkline_transport::Channel;

use super::ChannelServer;
use super::carried::Carried;
use crate::edge::modern::{self, Listen};

/// How much time a channel has left.
#[derive(Debug, Default)]
pub(super) enum Left {
    /// As much as its peer likes.
    #[default]
    Unlimited,
    /// So much for its calls, after which they are refused.
    ForAnswers(Pin<Box<Sleep>>),
    /// So much for its peer to read what it was told last.
    ForReading(Pin<Box<Sleep>>),
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
            self.close_listens();
            if let Some(grace) = self.grace {
                self.wait_for_answers(grace);
            }
        }
    }

    /// The peer will send no more: what was read is still answered, as far as nobody has to ask the peer for that, and what
    /// stands is closed.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.close_listens();
        self.watch = None;
        if let Some(session) = &self.session {
            session.ask_no_more();
        }
        self.wait_for_answers(self.grace.unwrap_or(self.core.limits.answers_after_end));
    }

    fn wait_for_answers(&mut self, within: Duration) {
        if matches!(self.left, Left::Unlimited) {
            self.left = Left::ForAnswers(Box::pin(tokio::time::sleep(within)));
        }
    }

    /// Reports whether nothing new is to stand on the channel.
    pub(super) fn is_ending(&self) -> bool {
        self.ended || self.drained
    }

    fn close_listens(&mut self) {
        for listen in std::mem::take(&mut self.listens).into_values() {
            self.close_listen(&listen);
        }
    }

    pub(super) fn close_listen(&mut self, listen: &Listen) {
        self.channel.send(&listen.ending());
        self.channel.send(&listen.cancellation());
    }

    /// Refuses the calls whose time is over.
    ///
    /// # Errors
    /// The peer did not read in time what it was told last.
    pub(super) fn refuse_overdue(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let Left::ForAnswers(deadline) = &mut self.left {
            if deadline.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.lost = self.refuse_unanswered();
            self.left = Left::ForReading(Box::pin(tokio::time::sleep(self.core.limits.write_within)));
        }
        let Left::ForReading(deadline) = &mut self.left else { return Ok(()) };
        match deadline.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not read its last answers"))
            }
        }
    }

    /// Refuses every call that runs or waits to begin; returns how many these were.
    fn refuse_unanswered(&mut self) -> usize {
        let refusal = Refusal::SHUTTING_DOWN.because("the server ended before this call was over");
        let calls = self.unanswered();
        for carried in std::mem::take(&mut self.carried) {
            let message = match carried {
                Carried::Modern(call) => modern::refuse(Some(call.id()), &refusal).message,
                Carried::Resuming(id, _) => modern::refuse(Some(&id), &refusal).message,
                Carried::Legacy(exchange) => exchange.cut_short(&refusal).message,
                Carried::Over => continue,
            };
            self.channel.send(&message);
        }
        self.modern.clear();
        while let Some((held, _)) = self.held.next() {
            self.refuse_unbegun(&held, &refusal);
        }
        calls
    }

    fn unanswered(&self) -> usize {
        self.carried.iter().map(Carried::calls).sum::<usize>() + self.held.calls()
    }

    /// Ready when the channel is over, with the number of calls that it leaves unanswered.
    pub(super) fn poll_over(&mut self, flushed: bool, cx: &mut Context<'_>) -> Poll<usize> {
        // A writer may have taken bytes that it has not written yet, so an empty queue alone is not the end.
        let idle = self.carried.is_empty() && self.held.is_empty() && self.channel.queued() == 0 && flushed;
        if self.is_ending() && idle {
            return Poll::Ready(self.lost);
        }
        // Stopping wakes those who wait for draining too, so it is watched only once that is over.
        let told = self.drained && self.stopping.as_mut().poll(cx).is_ready();
        if !self.is_owned && (told || self.core.shutdown.is_stopping()) {
            return Poll::Ready(self.lost + self.unanswered());
        }
        Poll::Pending
    }
}
