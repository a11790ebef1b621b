//! The two things that are said first, over any carrier.

use std::time::Duration;

use tokio::time::timeout;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Method, RawJson, Revision};

use super::probe::DiscoverOutcome;
use super::{ConnectPlan, ServerDescription};
use crate::call::ClientCall;
use crate::client_transport::{ClientTransport, ExchangeEvent, RequestExchange, TransportFailure};
use crate::edge::{LegacyEdge, ModernEdge, ProtocolEdge, RequestExtras, legacy, modern};
use crate::error::{Error, ErrorResponse};

/// Asks a server to describe itself in a modern revision, and says what came of it.
///
/// Where nothing else would be tried, a server has as much time for it as for a handshake.
pub(crate) async fn discover(
    carrier: &dyn ClientTransport,
    plan: &ConnectPlan,
    edge: &ProtocolEdge,
) -> DiscoverOutcome {
    let limits = &plan.limits;
    let within = if plan.pin.is_some() { limits.handshake_timeout } else { limits.probe_timeout };
    let outgoing = match edge.write(
        plan.ids.next(),
        &ClientCall::with_method(Method::Discover),
        RequestExtras::default(),
    ) {
        Ok(outgoing) => outgoing,
        // Nothing that is written here can be wrong.
        Err(error) => return DiscoverOutcome::Failed(TransportFailure::not_delivered(error.to_string())),
    };
    match await_response(carrier.request(outgoing), within).await {
        None => DiscoverOutcome::TimedOut,
        Some(Ok(Ok(result))) => DiscoverOutcome::Described(result.into_raw()),
        Some(Ok(Err(error))) => DiscoverOutcome::ErrorResponse(ErrorResponse::from_raw(&error)),
        Some(Err(loss)) => DiscoverOutcome::Failed(loss),
    }
}

/// Makes the edge of a modern revision.
pub(crate) fn modern_edge(plan: &ConnectPlan, revision: Revision) -> ProtocolEdge {
    ProtocolEdge::Modern(ModernEdge::new(revision, &plan.identity, &plan.capabilities))
}

/// Reads how a server describes itself.
pub(crate) fn parse_description(result: &RawJson, revision: Revision) -> Result<ServerDescription, String> {
    modern::parse_discover_result(result, revision)
}

/// Opens a session: `initialize`, its answer, and `notifications/initialized`.
///
/// # Errors
/// What came instead of an answer that opens a session.
pub(crate) async fn initialize(
    carrier: &dyn ClientTransport,
    plan: &ConnectPlan,
    offered: Revision,
) -> Result<(ProtocolEdge, ServerDescription), HandshakeError> {
    let outgoing = legacy::initialize(plan.ids.next(), offered, &plan.identity, &plan.capabilities);
    let within = plan.limits.handshake_timeout;
    let described = match await_response(carrier.request(outgoing), within).await {
        None => return Err(HandshakeError::TimedOut(within)),
        Some(Err(loss)) => return Err(HandshakeError::Transport(loss)),
        Some(Ok(Err(error))) => return Err(HandshakeError::ErrorResponse(ErrorResponse::from_raw(&error))),
        Some(Ok(Ok(result))) => {
            legacy::read_initialized(&result.to_owned_buffer()).map_err(HandshakeError::InvalidVersion)?
        }
    };
    let initialized = carrier.post(legacy::initialized(described.revision));
    match timeout(within, initialized).await {
        Ok(Ok(())) => Ok((ProtocolEdge::Legacy(LegacyEdge::new(described.revision)), described)),
        Ok(Err(loss)) => Err(HandshakeError::Transport(loss)),
        Err(_) => Err(HandshakeError::TimedOut(within)),
    }
}

/// Why a session could not be opened.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// There was no answer in time.
    TimedOut(Duration),
    /// There will be none.
    Transport(TransportFailure),
    /// The server answered with an error.
    ErrorResponse(ErrorResponse),
    /// The server answered with something that opens no session.
    InvalidVersion(String),
}

impl HandshakeError {
    /// Says what was seen, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::TimedOut(within) => format!("no answer within {within:?}"),
            Self::Transport(loss) => Error::from(loss.clone()).to_string(),
            Self::ErrorResponse(refused) => format!("error {}: {}", refused.code, refused.message),
            Self::InvalidVersion(problem) => problem.clone(),
        }
    }
}

/// Waits for the last word of an exchange; nothing if it does not come in time.
async fn await_response(
    mut exchange: RequestExchange,
    within: Duration,
) -> Option<Result<Result<RawResult, RawJson>, TransportFailure>> {
    let last = async {
        loop {
            match exchange.next().await {
                Some(ExchangeEvent::Response(outcome)) => return Ok(outcome),
                Some(ExchangeEvent::Failed(loss)) => return Err(loss),
                // Before there is a session, nothing else is for us.
                Some(ExchangeEvent::Notification(_) | ExchangeEvent::Request(_) | ExchangeEvent::Skipped) => {
                }
                None => return Err(TransportFailure::maybe_delivered("there was no answer")),
            }
        }
    };
    timeout(within, last).await.ok()
}
