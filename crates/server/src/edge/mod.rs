//! The two eras, each as a translator between the wire and the core.
//!
//! What comes in becomes a [`Call`](crate::Call); what a call does becomes [`Event`]s, which are finished messages for
//! whatever carries them. Nothing beyond this module asks about the era.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::task::{Context, Poll, ready};
use std::time::Duration;

use trunkline_protocol::Refusal;

use crate::call::{Running, Shared};
use crate::core::Core;
use crate::env::scrub;

/// What the carrier of a call must do next.
pub(crate) enum Event {
    /// Send this message; the call goes on.
    Message(String),
    /// Let the client disconnect for a while; the call goes on.
    Release(Duration),
    /// Send this answer; the call is over.
    Answer(Answer),
    /// The call is over, and its caller wants no answer.
    Nothing,
}

/// A call in progress, of either era.
pub(crate) trait Exchange {
    fn core(&self) -> &Core;

    fn running(&self) -> Option<&Running>;

    /// Polls for what the carrier must do next, as the call says it.
    fn poll_unscrubbed(&mut self, cx: &mut Context<'_>) -> Poll<Event>;

    /// Polls for what the carrier must do next.
    fn poll_scrubbed(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if !self.core().env.any() {
            return self.poll_unscrubbed(cx);
        }
        let shared = self.running().map(|running| running.shared().clone());
        let event = ready!(self.poll_unscrubbed(cx));
        Poll::Ready(match shared {
            Some(shared) => event.scrubbed(&shared),
            None => event,
        })
    }
}

impl Event {
    /// Removes the caller's secrets from what is said, whoever put them there.
    fn scrubbed(self, shared: &Shared) -> Self {
        let clean = |message| scrub(message, &shared.secrets());
        match self {
            Self::Message(message) => Self::Message(clean(message)),
            Self::Answer(answer) => Self::Answer(Answer { message: clean(answer.message), ..answer }),
            other => other,
        }
    }
}

/// Refuses a request whose id another one has.
#[cold]
pub(crate) fn id_in_use() -> Refusal {
    Refusal::INVALID_REQUEST.because("a request with this id is still running")
}

/// A final answer.
pub(crate) struct Answer {
    pub(crate) message: String,
    /// The HTTP status, for carriers that have one and have not committed to it yet.
    pub(crate) status: u16,
}

impl Answer {
    /// Takes a refusal for the answer of a handler, which is for whoever called it and not for what carries it: a session
    /// that a handler does not know is not the one of the request. Only what the protocol gives a status, and what asks the
    /// client to come back later, keeps its own.
    pub(crate) fn of_handler(self, refusal: &Refusal) -> Self {
        let telling = [Refusal::MISSING_CAPABILITY, Refusal::METHOD_NOT_FOUND, Refusal::TOO_MANY];
        let status = if telling.iter().any(|row| refusal.is(row)) { self.status } else { 200 };
        Self { status, ..self }
    }
}
