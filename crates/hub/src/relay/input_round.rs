//! Input requests of a call that stays open, answered in place.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use trunkline_client::{ClientInputRound, InputResponses, InputRoundEvent};
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{ElicitAction, InputRequest, InputResponse, UrlElicitRequest};
use trunkline_server::{AskError, BoxFuture, Context, TypedInputRequest};

use super::incompatibility::RevisionPair;
use crate::events::HubEvents;
use crate::upstream::{ConnectionLease, InputTurn};

/// Timeout for notifying a server that its input requests will not be answered.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the input requests of a round to the caller, and returns the round with the responses.
///
/// Events of the server are handled meanwhile: it may withdraw a request, or finish before the response.
///
/// # Errors
/// The caller does not support the request, or is gone; the server is notified that the round is abandoned.
pub(super) async fn ask_caller(
    (context, events): (&Context, &HubEvents),
    lease: &ConnectionLease,
    revisions: &RevisionPair,
    round: ClientInputRound,
) -> Result<(ClientInputRound, InputResponses), Refusal> {
    let mut round_guard = OpenInputRound { round: Some(round), turn: lease.input_turn() };
    let mut open: Vec<_> = round_guard
        .requests()
        .into_iter()
        .map(|question| {
            events.input_requested(context, &question.0, &question.1);
            PendingAnswer::start(context, lease, question)
        })
        .collect();
    let mut answers = InputResponses::new();
    while !open.is_empty() {
        let answered = std::future::poll_fn(|cx| {
            let mut ready = None;
            // Every request is polled each time, so that all are sent before the round closes.
            for (at, question) in open.iter_mut().enumerate() {
                if let Poll::Ready(answer) = question.answer.as_mut().poll(cx) {
                    ready = Some((at, answer));
                    break;
                }
            }
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        tokio::select! {
            biased;
            meanwhile = round_guard.next_event() => match meanwhile {
                InputRoundEvent::Withdrawn(key) => open.retain(|question| question.key != key),
                // The responses so far do no harm, and the server's next message follows.
                _ => open.clear(),
            },
            (at, answer) = answered => {
                let question = open.swap_remove(at);
                let method = round_guard.request(&question.key).map(InputRequest::method);
                events.input_answered(context, &question.key, method);
                let answer = match (answer, round_guard.request(&question.key)) {
                    (Err(AskError::Unsupported { .. }), Some(question)) => return Err(revisions.cannot_ask_refusal(question)),
                    (answer, _) => response_for_server(answer)?,
                };
                answers.push((question.key, answer));
            }
        }
    }
    round_guard.release().map(|round| (round, answers)).ok_or(Refusal::INTERNAL)
}

/// Fetches the caller's roots, and provides them to the server.
pub(super) async fn fetch_caller_roots(context: &Context, lease: &ConnectionLease) {
    // A caller that does not provide its roots counts as having none.
    let roots = context.roots().await.unwrap_or_default();
    lease.connection().roots.provide(roots);
}

/// An input request that waits for its response.
struct PendingAnswer<'a> {
    key: String,
    answer: BoxFuture<'a, Result<InputResponse, AskError>>,
}

impl<'a> PendingAnswer<'a> {
    fn start(
        context: &'a Context,
        lease: &'a ConnectionLease,
        (key, question): (String, InputRequest),
    ) -> Self {
        let answer: BoxFuture<'a, _> = match question {
            InputRequest::Roots if lease.roots_request_is_own() => Box::pin(async move {
                let roots = context.roots().await?;
                lease.note_caller_roots_sent(context.known_roots().await.as_deref());
                Ok(InputResponse::Roots(roots))
            }),
            InputRequest::Roots => Box::pin(async move {
                if let Some(roots) = lease.connection().roots.answer_in_call() {
                    return Ok(InputResponse::Roots(roots));
                }
                fetch_caller_roots(context, lease).await;
                Ok(InputResponse::Roots(lease.connection().roots.answer_in_call().unwrap_or_default()))
            }),
            InputRequest::Url(page) => Box::pin(ask_url_elicitation(context, lease, key.clone(), page)),
            question => Box::pin(context.ask(TypedInputRequest::relayed(key.clone(), question))),
        };
        Self { key, answer }
    }
}

/// Sends a URL elicitation to the caller. If the caller accepts, it is notified when the server reports completion.
async fn ask_url_elicitation(
    context: &Context,
    lease: &ConnectionLease,
    key: String,
    page: UrlElicitRequest,
) -> Result<InputResponse, AskError> {
    let id = page.rest.text("elicitationId").map(|id| id.to_string());
    let answer = context.ask(TypedInputRequest::relayed(key.clone(), InputRequest::Url(page))).await?;
    let is_accepted =
        matches!(&answer, InputResponse::Elicit(elicited) if elicited.action == ElicitAction::Accept);
    if let (true, Some(id), Some(done)) = (is_accepted, id, context.elicitation_completer(&key)) {
        lease.connection().url_elicitations.register(&id, done);
    }
    Ok(answer)
}

/// Converts the caller's response into the response for the server.
///
/// # Errors
/// The caller does not support the request at all, which ends the call.
fn response_for_server(
    answer: Result<InputResponse, AskError>,
) -> Result<Result<InputResponse, Refusal>, Refusal> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(AskError::Refused(refusal)) => Ok(Err(refusal)),
        Err(AskError::Malformed(problem)) => {
            Ok(Err(Refusal::INTERNAL.with_message(format!("the client's answer does not fit: {problem}"))))
        }
        Err(error) => Err(error.to_refusal()),
    }
}

/// A round with open input requests. If it is dropped unanswered, the server is notified.
struct OpenInputRound {
    round: Option<ClientInputRound>,
    /// Held until the server has the notification, so that no other call gets an input request over the connection
    /// before.
    turn: Option<Arc<InputTurn>>,
}

impl OpenInputRound {
    fn requests(&self) -> Vec<(String, InputRequest)> {
        self.round.as_ref().map(|round| round.requests.clone()).unwrap_or_default()
    }

    fn request(&self, key: &str) -> Option<&InputRequest> {
        self.round.iter().flat_map(|round| &round.requests).find(|(known, _)| known == key).map(|(_, it)| it)
    }

    async fn next_event(&mut self) -> InputRoundEvent {
        match &mut self.round {
            Some(round) => round.next_event().await,
            None => std::future::pending().await,
        }
    }

    fn release(mut self) -> Option<ClientInputRound> {
        self.round.take()
    }
}

impl Drop for OpenInputRound {
    fn drop(&mut self) {
        let (Some(round), Ok(runtime)) = (self.round.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let turn = self.turn.take();
        runtime.spawn(async move {
            // The call is cancelled whether or not this succeeds.
            let _ = tokio::time::timeout(ABANDON_TIMEOUT, Box::pin(round.abandon())).await;
            drop(turn);
        });
    }
}
