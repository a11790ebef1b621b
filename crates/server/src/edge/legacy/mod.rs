//! The legacy edge: sessions opened by `initialize`, in which the server may send requests of its own.

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
