//! One call on its way through: from a caller of any era to a server of any era, with everything that either asks.
//!
//! What a step of the client gives is what the handler returns. A question that comes with bytes goes to the caller with
//! them, and nothing is kept; a question of a call that stays open is asked in place, and the server room sees to it that
//! this works for callers of both eras. No line here asks about the era.
//!
//! # Invariants
//!
//! - An input request of an abandoned call never reaches another client, and one that waited never reaches another
//!   principal: `a_question_of_a_call_that_was_given_up_never_reaches_another_client`,
//!   `a_question_never_reaches_another_principal_however_long_it_has_been_waiting`.
//! - State of an upstream travels through the caller encrypted with the hub's own key:
//!   `the_state_of_a_server_travels_under_the_hubs_own_seal`.

mod incompatibility;
mod input_round;
mod progress_forwarder;
mod relay_request;
mod relayed_call;
mod resume;
mod translate;

use std::sync::Arc;

use trunkline_client::Error;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::Root;
use trunkline_server::HandlerOutcome;

use self::incompatibility::RevisionPair;
pub(crate) use self::relay_request::{ParamRewrite, RelayRequest};
use self::relayed_call::RelayedCall;
use self::resume::ResumeState;
pub(crate) use self::translate::not_listed_refusal;
use self::translate::{FailureContext, error_answer, refusal_answer, unavailable_refusal};
use crate::upstream::{CallerDetails, CallerProfile, ConnectionLease, Upstream, UpstreamUnavailable};

/// Carries a call to a server, and what comes of it back.
pub(crate) fn relay(
    mut server: Arc<Upstream>,
    errand: RelayRequest,
) -> impl Future<Output = Result<HandlerOutcome, Refusal>> + Send {
    let mut is_again = false;
    async move {
        let resume = ResumeState::from_call(&errand.call, server.name())?;
        loop {
            let (lease, caller) = match find_connection(&errand, &resume, &server).await {
                Ok(found) => found,
                Err(unavailable) => match (unavailable, server.successor()) {
                    // Nothing was sent yet, and the name means another server now.
                    (UpstreamUnavailable::Removed, Some(successor)) => {
                        server = successor;
                        continue;
                    }
                    (unavailable, _) => return Err(unavailable_refusal(server.name(), &unavailable)),
                },
            };
            let mut journey = RelayedCall { server: &server, request: &errand, caller };
            match journey.run(&lease, &resume).await {
                // What certainly did not arrive may be sent once more, over a connection of which that is not known.
                Err(RelayFailure::Upstream(error))
                    if is_safe_to_retry(&error) && !std::mem::replace(&mut is_again, true) => {}
                Err(RelayFailure::StaleVersion(_)) if !std::mem::replace(&mut is_again, true) => {}
                Err(RelayFailure::Upstream(error) | RelayFailure::StaleVersion(error)) => {
                    let known = server.known_server().map(|known| known.revision);
                    let ends = RevisionPair::from_context(&errand.call.context, server.name(), known);
                    let place = FailureContext { revisions: &ends, request: &errand };
                    return error_answer(&place, &error, &errand.call);
                }
                Err(RelayFailure::Refused(refusal)) => return refusal_answer(refusal, &errand.call),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }
}

/// Reports whether a call certainly came to nothing, so that it can be made anew over another connection.
fn is_safe_to_retry(error: &Error) -> bool {
    matches!(error, Error::Closed { may_have_run: false, .. })
}

/// Why a call came to nothing.
enum RelayFailure {
    /// Because of the server, or the way to it.
    Upstream(Error),
    /// Because the server no longer speaks what was agreed on; nothing has happened.
    StaleVersion(Error),
    /// Because of us, or of the caller.
    Refused(Refusal),
}

impl From<Error> for RelayFailure {
    fn from(error: Error) -> Self {
        Self::Upstream(error)
    }
}

impl From<Refusal> for RelayFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Finds a connection for the caller.
async fn find_connection(
    errand: &RelayRequest,
    resume: &ResumeState,
    server: &Arc<Upstream>,
) -> Result<(ConnectionLease, CallerDetails), UpstreamUnavailable> {
    let mut party =
        CallerProfile::from_context(&errand.call.context).for_method(errand.method).in_era(resume.era());
    if party.has_roots() && server.is_stateful_for(&party) {
        party = party.with_roots(Box::pin(caller_roots(errand, server)).await);
    }
    let lease = server.lease(&party).await?;
    Ok((lease, party.into_caller()))
}

/// Returns the caller's roots as far as they decide which session serves it.
async fn caller_roots(errand: &RelayRequest, server: &Upstream) -> Option<Vec<Root>> {
    let context = &errand.call.context;
    match server.asks_roots() && errand.method.may_require_input() {
        // A caller who does not say which roots it has gets a session that is told of none.
        true => Some(context.roots().await.unwrap_or_default()),
        false => context.known_roots().await,
    }
}
