//! The first requests of either era, `server/discover` and `initialize`, over any transport.

use std::time::Duration;

use trunkline_protocol::{Method, RawJson, Revision};

use super::probe::DiscoverOutcome;
use super::{ConnectPlan, ServerDescription};
use crate::call::ClientCall;
use crate::client_transport::{
    ClientTransport, ExchangeEvent, FailureCause, OutgoingRequest, RawResponse, TransportFailure,
};
use crate::edge::{LegacyEdge, ModernEdge, ProtocolEdge, RequestExtras, legacy, modern};
use crate::error::ErrorResponse;
use crate::user_timeout::timeout_unless_waiting;

/// Sends `server/discover` in a modern revision, and returns the outcome.
pub(crate) async fn discover(
    transport: &dyn ClientTransport,
    plan: &ConnectPlan,
    edge: &ProtocolEdge,
    within: Duration,
) -> DiscoverOutcome {
    let outgoing = match edge.write(
        plan.ids.next(),
        &ClientCall::with_method(Method::Discover),
        RequestExtras::default(),
    ) {
        Ok(outgoing) => outgoing,
        // Cannot fail for this request.
        Err(error) => {
            return DiscoverOutcome::Failed(TransportFailure::not_sent(FailureCause::from_error(error)));
        }
    };
    match await_response(transport, outgoing, within).await {
        None => DiscoverOutcome::TimedOut,
        Some(Ok(Ok(result))) => DiscoverOutcome::Described(result.into_raw()),
        Some(Ok(Err(error))) => DiscoverOutcome::ErrorResponse(ErrorResponse::from_raw(&error)),
        Some(Err(failure)) => DiscoverOutcome::Failed(failure),
    }
}

/// Creates the edge of a modern revision.
pub(crate) fn modern_edge(plan: &ConnectPlan, revision: Revision) -> ProtocolEdge {
    ProtocolEdge::Modern(ModernEdge::new(revision, &plan.identity, &plan.capabilities))
}

/// Parses the result of `server/discover`.
pub(crate) fn parse_description(result: &RawJson, revision: Revision) -> Result<ServerDescription, String> {
    modern::parse_discover_result(result, revision)
}

/// Opens a session: `initialize`, its response, and `notifications/initialized`.
///
/// # Errors
/// Why the session could not be opened.
pub(crate) async fn initialize(
    transport: &dyn ClientTransport,
    plan: &ConnectPlan,
    offered: Revision,
) -> Result<(ProtocolEdge, ServerDescription), HandshakeError> {
    let outgoing = legacy::initialize(plan.ids.next(), offered, &plan.identity, &plan.capabilities);
    let within = plan.limits.handshake_timeout;
    let description = match await_response(transport, outgoing, within).await {
        None => return Err(HandshakeError::TimedOut(within)),
        Some(Err(failure)) => return Err(HandshakeError::Transport(failure)),
        Some(Ok(Err(error))) => return Err(HandshakeError::ErrorResponse(ErrorResponse::from_raw(&error))),
        Some(Ok(Ok(result))) => {
            legacy::read_initialized(&result.to_owned_buffer()).map_err(HandshakeError::InvalidVersion)?
        }
    };
    let initialized = transport.post(legacy::initialized(description.revision));
    match timeout_unless_waiting(within, || transport.is_waiting_for_user(), initialized).await {
        Ok(Ok(())) => Ok((ProtocolEdge::Legacy(LegacyEdge::new(description.revision)), description)),
        Ok(Err(failure)) => Err(HandshakeError::Transport(failure)),
        Err(_) => Err(HandshakeError::TimedOut(within)),
    }
}

/// Why a session could not be opened.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The server did not respond in time.
    TimedOut(Duration),
    /// The transport failed.
    Transport(TransportFailure),
    /// The server responded with an error.
    ErrorResponse(ErrorResponse),
    /// The server responded with an unusable result or revision.
    InvalidVersion(String),
}

/// Describes the outcome of a handshake for the list of attempts.
pub(crate) fn describe(outcome: &Result<(ProtocolEdge, ServerDescription), HandshakeError>) -> String {
    match outcome {
        Ok((_, description)) => format!("answered with {}", description.revision),
        Err(failure) => failure.describe(),
    }
}

impl HandshakeError {
    /// Describes the failure for error messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::TimedOut(within) => format!("no answer within {within:?}"),
            Self::Transport(failure) => failure.to_string(),
            Self::ErrorResponse(refused) => format!("error {}: {}", refused.code, refused.shown_message()),
            Self::InvalidVersion(problem) => problem.clone(),
        }
    }

    /// Returns the cause of a failed connection.
    pub(crate) fn cause(&self) -> FailureCause {
        let source = match self {
            Self::Transport(failure) => failure.cause_source().cloned(),
            _ => None,
        };
        FailureCause { message: self.describe(), source }
    }
}

/// Sends a request and waits for its response; `None` after the timeout.
async fn await_response(
    transport: &dyn ClientTransport,
    outgoing: OutgoingRequest,
    within: Duration,
) -> Option<Result<RawResponse, TransportFailure>> {
    let mut exchange = transport.request(outgoing);
    let last = async {
        loop {
            match exchange.next().await {
                Some(ExchangeEvent::Response(outcome)) => return Ok(outcome),
                Some(ExchangeEvent::Failed(failure)) => return Err(failure),
                // Other messages are ignored before there is a session.
                Some(ExchangeEvent::Notification(_) | ExchangeEvent::Request(_) | ExchangeEvent::Skipped) => {
                }
                None => return Err(TransportFailure::maybe_sent("there was no answer")),
            }
        }
    };
    timeout_unless_waiting(within, || transport.is_waiting_for_user(), last).await.ok()
}
