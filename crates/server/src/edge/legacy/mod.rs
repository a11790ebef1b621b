//! The legacy edge: sessions opened by `initialize`, in which the server may send requests of its own.
//!
//! # Invariants
//!
//! - Of two concurrent requests with the same id only one runs:
//!   `of_two_requests_with_one_id_that_come_at_once_only_one_goes_on`.
//! - A late response to a session that was restored never answers a newer request:
//!   `an_answer_that_comes_late_to_a_revived_session_answers_nothing_new`.
//! - A standalone stream has one connection; the one that resumes it takes over and receives every event once:
//!   `a_standing_stream_that_is_resumed_has_no_other_carrier_and_takes_no_other_place`,
//!   `whoever_takes_a_stream_over_finds_every_event_once`.
//! - A session store that hangs blocks neither connections nor shutdown:
//!   `a_store_that_never_ends_its_sweep_keeps_neither_connections_nor_the_end_waiting`.

mod begin;
mod call;
mod elicited_urls;
mod exchange;
mod initialize;
mod live;
mod sessions;
mod standalone_stream;

pub(crate) use self::begin::{
    LegacyStart, TransportCapabilities, batch_not_allowed, begin, begin_batch, refuse_batch,
};
pub(crate) use self::exchange::LegacyExchange;
pub(crate) use self::initialize::accept_handshake;
pub(crate) use self::live::{LiveSession, ResumableStream};
pub(crate) use self::sessions::LegacySessions;
pub(crate) use self::standalone_stream::StandaloneConnection;

use trunkline_protocol::{Refusal, RequestId, Revision, emit};

use super::RenderedResponse;
use crate::metrics::process;

/// Renders a refusal as a legacy response.
#[cold]
pub(crate) fn refuse(id: Option<&RequestId>, refusal: &Refusal, revision: Revision) -> RenderedResponse {
    process::count_refusal(refusal);
    RenderedResponse { message: emit::error(id, refusal, revision), status: refusal.status(revision.era()) }
}
