//! The legacy edge: sessions opened by `initialize`, in which the server may put requests of its own.

mod begin;
mod call;
mod exchange;
mod initialize;
mod live;
mod pages;
mod sessions;
mod stand;

pub(crate) use self::begin::{Begun, Carriage, begin, begin_batch, no_batches, refuse_batch};
pub(crate) use self::exchange::LegacyExchange;
pub(crate) use self::initialize::handshake;
pub(crate) use self::live::{LiveSession, StreamState};
pub(crate) use self::sessions::Sessions;
pub(crate) use self::stand::Carrier;

use trunkline_protocol::{Id, Refusal, Revision, emit};

use super::Answer;
use crate::metrics::process;

/// Renders a refusal as a legacy answer.
#[cold]
pub(crate) fn refuse(id: Option<&Id>, refusal: &Refusal, revision: Revision) -> Answer {
    process::refused(refusal);
    Answer { message: emit::error(id, refusal, revision), status: refusal.status(revision.era()) }
}
