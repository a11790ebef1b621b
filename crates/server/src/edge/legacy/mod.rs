//! The legacy edge: sessions opened by `initialize`, in which the server may send requests of its own.
//!
//! See [Lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).
//!
//! # Invariants
//!
//! - Of two concurrent requests with the same id only one runs:
//!   `only_one_of_two_concurrent_requests_with_the_same_id_continues`.
//! - A late response to a session that was restored never answers a newer request:
//!   `late_response_to_a_restored_session_matches_no_new_request`.
//! - A standalone stream has one connection; the one that resumes it takes over and receives every event once:
//!   `resumed_standalone_stream_replaces_its_previous_connection`,
//!   `resuming_a_standalone_stream_replays_every_event_once`.
//! - A session store that hangs blocks neither connections nor shutdown:
//!   `stuck_session_store_sweep_blocks_neither_connections_nor_shutdown`.

mod begin;
mod call;
mod elicited_urls;
mod event_record;
mod eviction;
mod initialize;
mod live;
mod room_for_session;
mod session_summary;
mod sessions;
mod standalone_stream;

pub(crate) use self::begin::{TransportCapabilities, batch_not_allowed, begin, begin_batch, refuse_batch};
pub(crate) use self::call::LegacyCall;
pub(crate) use self::event_record::{BreakableStream, EventRecord};
pub(crate) use self::eviction::{EvictableSession, EvictionScope, choose_evicted};
pub(crate) use self::initialize::accept_handshake;
pub(crate) use self::live::{LiveSession, ResumableStream};
pub use self::session_summary::{SessionSummary, SessionTransport};
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
