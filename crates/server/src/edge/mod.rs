//! The two eras, each as a translator between the wire and the core.
//!
//! What comes in becomes a [`Call`](crate::Call); what a call does becomes [`Event`]s, which are finished messages for
//! whatever carries them. Nothing beyond this module asks about the era.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::time::Duration;

use crate::call::Shared;
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

impl Event {
    /// Removes the caller's secrets from what is said, whoever put them there.
    pub(crate) fn scrubbed(self, shared: &Shared) -> Self {
        let clean = |message| scrub(message, &shared.secrets());
        match self {
            Self::Message(message) => Self::Message(clean(message)),
            Self::Answer(answer) => Self::Answer(Answer { message: clean(answer.message), ..answer }),
            other => other,
        }
    }
}

/// A final answer.
pub(crate) struct Answer {
    pub(crate) message: String,
    /// The HTTP status, for carriers that have one and have not committed to it yet.
    pub(crate) status: u16,
}
