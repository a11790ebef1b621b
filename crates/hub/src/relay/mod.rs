//! Relays one call from a caller of any era to a server of any era, with its input requests.
//!
//! The result of a client step is what the handler returns. An input request with portable state is returned to the
//! caller with that state, and the hub stores nothing; an input request of a call that stays open is answered in
//! place, and the server crate makes this work for callers of both eras. No code here depends on the era.
//!
//! # Invariants
//!
//! - An input request of an abandoned call never reaches another client, and one that waited never reaches another
//!   principal: `input_request_of_an_abandoned_call_never_reaches_another_client`,
//!   `input_request_never_reaches_another_principal_after_any_wait`.
//! - State of an upstream travels through the caller encrypted with the hub's own key:
//!   `upstream_request_state_is_sealed_by_the_hub`.

mod ask_login;
mod incompatibility;
mod input_round;
mod progress_forwarder;
mod relay_request;
mod relayed_call;
mod resume;
mod translate;

use std::sync::Arc;

use trunkline_client::{Error, RequestDelivery};
use trunkline_protocol::Refusal;
use trunkline_protocol::model::Root;
use trunkline_server::{HandlerOutcome, UpstreamItem};

use self::ask_login::{LoginAnswer, MAX_LOGINS, ask_login, explained};
pub(crate) use self::ask_login::{call_login_tool, require_login};
use self::incompatibility::RevisionPair;
pub(crate) use self::relay_request::{ParamRewrite, RelayRequest};
use self::relayed_call::RelayedCall;
use self::resume::ResumeState;
pub(crate) use self::translate::not_listed_refusal;
use self::translate::{FailureContext, error_answer, refusal_answer, unavailable_refusal};
use crate::upstream::{CallerDetails, CallerProfile, ConnectionLease, Upstream, UpstreamUnavailable};

/// Relays a call to a server and returns its outcome.
pub(crate) fn relay(
    mut server: Arc<Upstream>,
    request: RelayRequest,
) -> impl Future<Output = Result<HandlerOutcome, Refusal>> + Send {
    let (mut is_again, mut logins) = (false, 0);
    async move {
        let resume = ResumeState::from_call(&request.call, server.name())?;
        let record = request.begin_record(&server);
        let answer = loop {
            // The answer, unless a login helps.
            let refused = match find_connection(&request, &resume, &server).await {
                Ok((lease, caller)) => {
                    let mut call = RelayedCall { server: &server, request: &request, caller };
                    match call.run(&lease, &resume).await {
                        Ok(outcome) => break Ok(outcome),
                        // A request that certainly did not arrive is retried once, over another connection.
                        Err(RelayFailure::Upstream(error))
                            if is_safe_to_retry(&error) && !std::mem::replace(&mut is_again, true) =>
                        {
                            continue;
                        }
                        Err(RelayFailure::StaleVersion(_)) if !std::mem::replace(&mut is_again, true) => {
                            continue;
                        }
                        Err(RelayFailure::Upstream(error) | RelayFailure::StaleVersion(error)) => {
                            let answer = failure_answer(&server, &request, &error);
                            // A login does not help where the server refuses a variable of the caller.
                            if !is_auth_failure(&error) || lease.connection().has_caller_variables() {
                                break answer;
                            }
                            server.note_error(&error);
                            Box::new(answer)
                        }
                        Err(RelayFailure::Refused(refusal)) => break refusal_answer(refusal, &request.call),
                    }
                }
                Err(unavailable) => match (&unavailable, server.successor()) {
                    // Nothing was sent yet, and the name belongs to another server now.
                    (UpstreamUnavailable::Removed, Some(successor)) => {
                        server = successor;
                        continue;
                    }
                    (unavailable, _) => {
                        let refusal = unavailable_refusal(server.name(), unavailable);
                        if !unavailable.is_auth() {
                            break Err(refusal);
                        }
                        Box::new(Err(refusal))
                    }
                },
            };
            match Box::pin(after_auth_failure(&server, &request, &mut logins)).await {
                LoginStep::Retry(next) => server = next,
                LoginStep::Answer(answer) => break answer,
                LoginStep::Refuse => break *refused,
            }
        };
        record.finish(answer)
    }
}

/// Returns the answer to a call that failed at its server.
fn failure_answer(
    server: &Upstream,
    request: &RelayRequest,
    error: &Error,
) -> Result<HandlerOutcome, Refusal> {
    if matches!(error, Error::Malformed(_) | Error::TooLong { .. }) {
        UpstreamItem::ResultRejected.count(1);
    }
    let known = server.known_server().map(|known| known.revision);
    let revisions = RevisionPair::from_context(&request.call.context, server.name(), known);
    let context = FailureContext { revisions: &revisions, request };
    error_answer(&context, error, &request.call)
}

/// How to continue a call that its server refused as unauthorized.
enum LoginStep {
    /// It is sent again, to this upstream.
    Retry(Arc<Upstream>),
    /// Its user has to do something first.
    Answer(Result<HandlerOutcome, Refusal>),
    /// No login helps.
    Refuse,
}

/// Lets the user of a call log in, or sends it to the user's own upstream.
async fn after_auth_failure(server: &Arc<Upstream>, request: &RelayRequest, logins: &mut usize) -> LoginStep {
    let context = &request.call.context;
    if let Some(own) = server.of_user(&context.principal()) {
        return LoginStep::Retry(own);
    }
    if !server.can_log_in() || *logins >= MAX_LOGINS {
        return LoginStep::Refuse;
    }
    *logins += 1;
    match ask_login(server, context, *logins).await {
        LoginAnswer::LoggedIn => LoginStep::Retry(server.clone()),
        LoginAnswer::Explained(text) => LoginStep::Answer(explained(server, text, request.method)),
        LoginAnswer::Required(refusal) => LoginStep::Answer(Err(refusal)),
    }
}

/// Reports whether a server refused a call for want of a login. It did not run.
fn is_auth_failure(error: &Error) -> bool {
    match error {
        Error::Unauthorized { .. } => true,
        Error::Authorization(error) => error.needs_login(),
        _ => false,
    }
}

/// Reports whether a failed call certainly did not run, so that it can be retried over another connection.
fn is_safe_to_retry(error: &Error) -> bool {
    matches!(error, Error::Closed { delivery: RequestDelivery::NotSent, .. })
}

/// Why a relayed call failed.
enum RelayFailure {
    /// The server or the connection to it failed.
    Upstream(Error),
    /// The server no longer supports the negotiated revision; the call did not run.
    StaleVersion(Error),
    /// The hub refused, or the caller cannot be served.
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
    request: &RelayRequest,
    resume: &ResumeState,
    server: &Arc<Upstream>,
) -> Result<(ConnectionLease, CallerDetails), UpstreamUnavailable> {
    let mut profile =
        CallerProfile::from_context(&request.call.context).for_method(request.method).in_era(resume.era());
    if profile.has_roots() && server.is_stateful_for(&profile) {
        // A stored session decides whether the roots matter.
        server.revive_for(&profile).await;
        let is_requestable = request.method.may_require_input() || profile.has_session();
        profile = profile.with_roots(Box::pin(caller_roots(request, server, is_requestable)).await);
    }
    let lease = server.lease(&profile).await?;
    Ok((lease, profile.into_caller()))
}

/// Returns the caller's roots, as far as they decide which session serves it.
async fn caller_roots(request: &RelayRequest, server: &Upstream, is_requestable: bool) -> Option<Vec<Root>> {
    let context = &request.call.context;
    match server.asks_roots() && is_requestable {
        // A caller that does not provide its roots gets a session with empty roots.
        true => Some(context.roots().await.unwrap_or_default()),
        false => context.known_roots().await,
    }
}
