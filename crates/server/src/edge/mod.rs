//! The two eras, each as a translator between the wire and the core.
//!
//! What comes in becomes a [`Call`](crate::Call); what a call does becomes [`Event`]s, which are finished messages for
//! whatever carries them. Nothing beyond this module asks about the era.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::time::Duration;

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

/// A final answer.
pub(crate) struct Answer {
    pub(crate) message: String,
    /// The HTTP status, for carriers that have one and have not committed to it yet.
    pub(crate) status: u16,
}
