//! Probes the era of a server over a channel.
//!
//! Some legacy servers never answer a method that they do not know, such as those on PyPI `mcp` up to 1.8. So the
//! client sends `initialize` too if there is no answer after a short delay. A server answers in order: one that only
//! starts slowly answers the probe first, and one that has dropped the probe answers `initialize`.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;
use trunkline_protocol::{Revision, error_code};

use super::channel::{ChannelSource, initialize_after_silence, initialize_on_new_channel, open_session};
use super::handshake::{self, HandshakeError};
use super::opened_transport::OpenedTransport;
use super::probe::{DiscoverOutcome, ProbeDecision, decide_over_channel};
use super::{ConnectAttempts, ConnectPlan, EstablishedConnection, ServerDescription};
use crate::edge::ProtocolEdge;
use crate::error::{Error, ErrorResponse};

/// The outcome of one probe.
#[expect(clippy::large_enum_variant, reason = "there is one, on the stack, for each connection")]
enum ProbeOutcome {
    /// The server has answered the probe, or the channel failed. `initialize` was not sent, or was rejected.
    Answered(DiscoverOutcome),
    /// The server has answered the probe and has opened a session too.
    BothAccepted,
    /// The server has answered `initialize`, or that failed; the probe is no evidence for the modern era.
    Initialized(Result<(ProtocolEdge, ServerDescription), HandshakeError>),
}

const BOTH_ACCEPTED: &str = "the server accepts both eras on one connection";

/// Probes a server; after `delay` without an answer `initialize` is sent too.
pub(super) async fn probe(
    source: &ChannelSource,
    mut open: OpenedTransport,
    plan: &ConnectPlan,
    mut delay: Duration,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let mut requested = Revision::NEWEST;
    let (mut has_retried, mut has_waited, mut has_reopened) = (false, false, false);
    loop {
        let edge = handshake::modern_edge(plan, requested);
        let outcome = match probe_once(&open, plan, &edge, delay, attempts).await {
            ProbeOutcome::Answered(outcome) => outcome,
            // The channel has a session now, which a modern client must not have.
            ProbeOutcome::BothAccepted if !std::mem::replace(&mut has_reopened, true) => {
                open.transport.close().await;
                open = source.open(plan, attempts).await?;
                delay = plan.limits.probe_timeout;
                continue;
            }
            ProbeOutcome::BothAccepted => return Err(attempts.connect_error(source, BOTH_ACCEPTED)),
            ProbeOutcome::Initialized(Ok((edge, description))) => {
                return Ok(open.establish(edge, description));
            }
            // It was only slow to start, and has rejected the version of the first request meanwhile.
            ProbeOutcome::Initialized(Err(HandshakeError::ErrorResponse(refused)))
                if refused.code == error_code::UNSUPPORTED_VERSION
                    && !std::mem::replace(&mut has_waited, true) =>
            {
                requested = revision_after_refusal(refused, requested);
                continue;
            }
            // Some servers never respond again after a request that they do not know.
            ProbeOutcome::Initialized(Err(HandshakeError::TimedOut(_))) if !source.is_network() => {
                drop(open);
                return initialize_after_silence(source, plan, attempts).await;
            }
            ProbeOutcome::Initialized(Err(failure))
                if !matches!(failure, HandshakeError::ErrorResponse(_)) && !source.is_network() =>
            {
                drop(open);
                return initialize_on_new_channel(source, plan, Revision::NEWEST_LEGACY, attempts).await;
            }
            ProbeOutcome::Initialized(Err(failure)) => {
                return Err(attempts.connect_error(source, failure.cause()));
            }
        };
        match decide_over_channel(&outcome, requested) {
            // At most one retry: a server could list a revision and then reject it, without end.
            ProbeDecision::Retry(revision) if !has_retried => {
                (requested, has_retried) = (revision, true);
            }
            decision => {
                return follow_decision(source, open, plan, edge, decision, outcome, attempts).await;
            }
        }
    }
}

fn is_version_refusal<T>(outcome: &Result<T, HandshakeError>) -> bool {
    matches!(outcome, Err(HandshakeError::ErrorResponse(refused)) if refused.code == error_code::UNSUPPORTED_VERSION)
}

/// Returns the revision to request after the server has rejected one; the same if it names no other.
fn revision_after_refusal(refused: ErrorResponse, requested: Revision) -> Revision {
    match decide_over_channel(&DiscoverOutcome::ErrorResponse(refused), requested) {
        ProbeDecision::Retry(revision) => revision,
        _ => requested,
    }
}

/// Establishes the connection as the probe has decided.
async fn follow_decision(
    source: &ChannelSource,
    open: OpenedTransport,
    plan: &ConnectPlan,
    probed: ProtocolEdge,
    decision: ProbeDecision,
    outcome: DiscoverOutcome,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    match (decision, outcome) {
        (ProbeDecision::Modern(revision), DiscoverOutcome::Described(result)) => {
            let is_probed = revision == probed.revision();
            let edge = if is_probed { probed } else { handshake::modern_edge(plan, revision) };
            open.establish_described(source, edge, &result, attempts)
        }
        (ProbeDecision::Retry(_) | ProbeDecision::Modern(_) | ProbeDecision::Undetermined, outcome) => {
            Err(attempts.connect_error(source, outcome.cause()))
        }
        (ProbeDecision::Legacy(offered), _) => open_session(source, open, plan, offered, attempts).await,
        // Over a network a closed connection is no evidence of a legacy server.
        (ProbeDecision::LegacyReconnect(_), outcome) if source.is_network() => {
            Err(attempts.connect_error(source, outcome.cause()))
        }
        (ProbeDecision::LegacyReconnect(offered), _) => {
            open.transport.close().await;
            initialize_on_new_channel(source, plan, offered, attempts).await
        }
        (ProbeDecision::NoCommonRevision(why), _) => Err(attempts.connect_error(source, why)),
    }
}

/// Sends the probe, and `initialize` if there is no answer after a delay.
async fn probe_once(
    open: &OpenedTransport,
    plan: &ConnectPlan,
    edge: &ProtocolEdge,
    delay: Duration,
    attempts: &mut ConnectAttempts,
) -> ProbeOutcome {
    let requested = edge.revision();
    let probed = format!("server/discover at {requested}");
    // It ends with the handshake, whichever that is.
    let unbounded = delay + 2 * plan.limits.handshake_timeout;
    let mut discovering = pin!(handshake::discover(&*open.transport, plan, edge, unbounded));
    if let Ok(outcome) = timeout(delay, &mut discovering).await {
        attempts.record(probed, outcome.describe());
        return ProbeOutcome::Answered(outcome);
    }
    let offered = Revision::NEWEST_LEGACY;
    let mut initializing = pin!(handshake::initialize(&*open.transport, plan, offered));
    let initialized = format!("initialize at {offered}");
    let outcome = tokio::select! {
        biased;
        outcome = &mut discovering => outcome,
        outcome = &mut initializing => {
            // A server that refuses the version of `initialize` is modern, and is still preparing its answer to the probe.
            if is_version_refusal(&outcome)
                && let Ok(outcome) = timeout(plan.limits.probe_timeout, &mut discovering).await
            {
                attempts.record(probed, outcome.describe());
                return ProbeOutcome::Answered(outcome);
            }
            attempts.record(probed, DiscoverOutcome::TimedOut.describe());
            attempts.record(initialized, handshake::describe(&outcome));
            return ProbeOutcome::Initialized(outcome);
        }
    };
    attempts.record(probed, outcome.describe());
    match decide_over_channel(&outcome, requested) {
        ProbeDecision::Legacy(_) => {
            let outcome = initializing.await;
            attempts.record(initialized, handshake::describe(&outcome));
            ProbeOutcome::Initialized(outcome)
        }
        ProbeDecision::Modern(_) => match timeout(plan.limits.initialize_delay, initializing).await {
            Ok(outcome @ Ok(_)) => {
                attempts.record(initialized, handshake::describe(&outcome));
                ProbeOutcome::BothAccepted
            }
            Ok(Err(_)) | Err(_) => ProbeOutcome::Answered(outcome),
        },
        _ => ProbeOutcome::Answered(outcome),
    }
}
