//! One step of a call, and the loop that answers input requests between steps.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, TryFutureExt as _};
use tokio::time::{Instant, sleep};
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{Method, RawJson, Refusal, error_code};

use super::in_flight::{InFlightCall, InputRoundEvent};
use super::{
    ClientCall, ClientContinuation, ClientInputRound, InputResponses, LiveContinuation, RawInputResponses,
    StepOutcome, SuppliedInput,
};
use crate::client::{Client, ClientInner, CurrentSession};
use crate::client_transport::{
    OutgoingRequest, RawResponse, RequestDelivery, RequestExchange, ServerRequest, TransportFailureKind,
};
use crate::edge::RequestExtras;
use crate::error::{Error, ErrorResponse};
use crate::input::{InputHandler, InputOrigin};
use crate::wire_tap::ObservedRequest;

/// The first delay before a call is repeated that the server deferred without input requests.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Input rounds of one call if the input requests may belong to other calls.
const MAX_SHARED_ROUNDS: usize = 1000;

/// Input that is attached to a request.
#[derive(Debug)]
pub(crate) enum AttachedInput {
    /// Responses to earlier input requests, and the server's `requestState`, verbatim.
    Resumed(Option<RawJson>, InputPayload),
    /// Responses that the server has not requested yet.
    Preset(RawInputResponses),
}

/// Responses by the keys of their input requests.
#[derive(Debug)]
pub(crate) enum InputPayload {
    Typed(InputResponses),
    Verbatim(RawInputResponses),
}

impl ClientInner {
    /// Runs one step of a call. A request is retried only if the server certainly did not act on it.
    pub(crate) async fn step(
        self: &Arc<Self>,
        call: &ClientCall,
        supplied_input: Option<Box<SuppliedInput>>,
    ) -> Result<StepOutcome, Error> {
        if let Some(reason) = &call.invalid_reason {
            return Err(Error::Invalid(reason.to_string()));
        }
        let attached_input = match supplied_input.map(|supplied_input| *supplied_input) {
            Some(SuppliedInput::Responses(ClientContinuation::Live(suspended), answers)) => {
                return Box::pin(self.resume_live(suspended, answers, call)).await;
            }
            Some(SuppliedInput::Responses(ClientContinuation::Portable(state), answers)) => {
                Some(resumed_input(&state, InputPayload::Typed(answers))?)
            }
            Some(SuppliedInput::RawResponses(state, answers)) => {
                Some(resumed_input(&state, InputPayload::Verbatim(answers))?)
            }
            Some(SuppliedInput::Preset(answers)) => Some(Box::new(AttachedInput::Preset(answers))),
            None => None,
        };
        let (mut reopened, mut refreshed) = (false, false);
        loop {
            let session = self.session.load_full();
            let extras = RequestExtras {
                input: attached_input.as_deref(),
                params: self.tools.headers(call),
                level: self.level(),
                recipient: call.input_recipient(self.capabilities_of(call)),
            };
            session.edge.check_supported(call)?;
            let outgoing = session.edge.write(self.plan.ids.next(), call, extras)?;
            let exchange = self.begin_exchange(&session, outgoing, call);
            let mut running = InFlightCall::new(session, exchange, call, self);
            let recovery = match running.wait(self, call).await {
                Ok(None) => return Ok(self.suspend(running, call)),
                Err(failure) => {
                    let is_gone = matches!(failure.kind, TransportFailureKind::SessionGone)
                        && failure.delivery == RequestDelivery::NotSent;
                    if !(is_gone && call.may_reopen) || std::mem::replace(&mut reopened, true) {
                        return Err(failure.into());
                    }
                    self.reopen_session(&running.session)
                }
                Ok(Some(response)) => match self.finish_step(&running.session, call, response) {
                    Err(Error::ErrorResponse(refused))
                        if refused.code == error_code::HEADER_MISMATCH
                            && call.known_method == Some(Method::ToolsCall)
                            && !std::mem::replace(&mut refreshed, true) =>
                    {
                        // The tool's schema has changed, and with it the arguments that headers mirror. If the list
                        // cannot be refreshed, a retry would not differ.
                        Box::pin(self.refresh_tools().map_err(|_| Error::ErrorResponse(refused)))
                    }
                    outcome => return outcome,
                },
            };
            recovery.await?;
        }
    }

    /// Sends a request; its messages go to the observer of the wire, if one is attached.
    fn begin_exchange(
        &self,
        session: &CurrentSession,
        outgoing: OutgoingRequest,
        call: &ClientCall,
    ) -> RequestExchange {
        let observer = self.plan.observer.as_ref();
        let observed = ObservedRequest::begin(observer, &session.info, &outgoing, call.number);
        self.transport.request(outgoing).observed(observed)
    }

    /// Resumes a call that stayed open.
    async fn resume_live(
        self: &Arc<Self>,
        suspended: Box<LiveContinuation>,
        answers: InputResponses,
        call: &ClientCall,
    ) -> Result<StepOutcome, Error> {
        let mut running = suspended.into_call();
        running.respond(self, call, answers).await?;
        match running.wait(self, call).await? {
            Some(response) => self.finish_step(&running.session, call, response),
            None => Ok(self.suspend(running, call)),
        }
    }

    /// Ends a step with the response of the server.
    fn finish_step(
        self: &Arc<Self>,
        session: &CurrentSession,
        call: &ClientCall,
        response: RawResponse,
    ) -> Result<StepOutcome, Error> {
        let response = response.map_err(|error| ErrorResponse::from_raw(&error));
        let capabilities = self.capabilities_of(call);
        match session.edge.required_input(call.known_method, response.as_ref(), capabilities)? {
            None => response.map(StepOutcome::Done).map_err(Error::ErrorResponse),
            Some((input_requests, state)) => {
                Ok(self.input_required(call, input_requests, ClientContinuation::Portable(state)))
            }
        }
    }

    /// Ends a step with the input requests of a call that stays open.
    fn suspend(self: &Arc<Self>, mut running: InFlightCall, call: &ClientCall) -> StepOutcome {
        let input_requests = running.take_round();
        let continuation = ClientContinuation::Live(Box::new(LiveContinuation::new(running)));
        self.input_required(call, input_requests, continuation)
    }

    fn input_required(
        self: &Arc<Self>,
        call: &ClientCall,
        input_requests: Vec<(String, InputRequest)>,
        continuation: ClientContinuation,
    ) -> StepOutcome {
        let client = Client::from_inner(self.clone());
        let round = ClientInputRound::new(client, call.without_input(), input_requests, continuation);
        StepOutcome::InputRequired(Box::new(round))
    }

    /// Runs a call to its result, and answers input requests.
    pub(crate) async fn run(
        self: &Arc<Self>,
        call: &ClientCall,
        mut supplied_input: Option<Box<SuppliedInput>>,
    ) -> Result<RawJson, Error> {
        let limits = &self.plan.limits;
        let began = Instant::now();
        let mut rounds = 0;
        let mut delay = POLL_INTERVAL;
        loop {
            let round = match self.step(call, supplied_input.take()).await? {
                StepOutcome::Done(result) => return Ok(result.into_raw()),
                StepOutcome::InputRequired(round) => round,
            };
            let (input_requests, mut continuation) = round.into_parts();
            if input_requests.is_empty() {
                if began.elapsed() > limits.max_total_timeout {
                    return Err(Error::TimedOut { after: began.elapsed() });
                }
                sleep(delay).await;
                delay = (delay * 2).min(MAX_POLL_INTERVAL);
                supplied_input =
                    Some(Box::new(SuppliedInput::Responses(continuation, InputResponses::new())));
                continue;
            }
            // With concurrent calls on one channel, a call may receive the input requests of all of them.
            let most = if is_certain(&mut continuation) {
                limits.input_rounds
            } else {
                limits.input_rounds.max(MAX_SHARED_ROUNDS)
            };
            rounds += 1;
            if rounds > most {
                let problem = format!("the server asked more than {most} times");
                return Err(Error::InputDeclined(Refusal::TOO_MANY.with_message(problem)));
            }
            delay = POLL_INTERVAL;
            let (continuation, answers) = self.answer_requests(call, input_requests, continuation).await;
            supplied_input = Some(Box::new(SuppliedInput::Responses(continuation, answers)));
        }
    }

    /// Answers the input requests of a round concurrently, while the call is still polled.
    async fn answer_requests(
        &self,
        call: &ClientCall,
        input_requests: Vec<(String, InputRequest)>,
        mut continuation: ClientContinuation,
    ) -> (ClientContinuation, InputResponses) {
        let origin = match call.known_method {
            Some(method) => InputOrigin::Call { method, name: call.name.as_ref().map(ToString::to_string) },
            None => InputOrigin::Session,
        };
        let mut waiting: Vec<_> = input_requests
            .into_iter()
            .map(|(key, input_request)| {
                (key, answer_request(self.input.clone(), origin.clone(), input_request))
            })
            .collect();
        let mut answers = InputResponses::new();
        while !waiting.is_empty() {
            let meanwhile = async {
                match &mut continuation {
                    ClientContinuation::Live(suspended) => {
                        suspended.get_mut().next_round_event(self, call).await
                    }
                    ClientContinuation::Portable(_) => std::future::pending().await,
                }
            };
            let answered = std::future::poll_fn(|cx| {
                for (at, (_, answer)) in waiting.iter_mut().enumerate() {
                    if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                        return Poll::Ready((at, answer));
                    }
                }
                Poll::Pending
            });
            tokio::select! {
                biased;
                meanwhile = meanwhile => match meanwhile {
                    InputRoundEvent::Ended => {
                        self.detach_pending(&mut continuation, waiting);
                        break;
                    }
                    InputRoundEvent::Withdrawn(key) => waiting.retain(|(other, _)| *other != key),
                },
                (at, answer) = answered => {
                    let (key, _) = waiting.swap_remove(at);
                    answers.push((key, answer));
                }
            }
        }
        (continuation, answers)
    }

    /// Detaches answers in progress from a call that has ended: their input requests may belong to another call.
    fn detach_pending(&self, continuation: &mut ClientContinuation, waiting: Vec<(String, AnswerFuture)>) {
        let ClientContinuation::Live(suspended) = continuation else { return };
        let running = suspended.get_mut();
        for (key, answer) in waiting {
            match running.detach_request(&key) {
                Some(request) if !request.is_certain() => {
                    self.detach_answer(running.session.clone(), request, answer);
                }
                // It belongs to this call alone, which has ended.
                request => request.into_iter().for_each(ServerRequest::resolve),
            }
        }
    }

    pub(crate) fn capabilities_of<'a>(&'a self, call: &'a ClientCall) -> &'a ClientCapabilities {
        call.capabilities.as_ref().unwrap_or(&self.plan.capabilities)
    }
}

/// Reports whether the input requests of a round certainly belong to the suspended call.
fn is_certain(continuation: &mut ClientContinuation) -> bool {
    match continuation {
        ClientContinuation::Portable(_) => true,
        ClientContinuation::Live(suspended) => suspended.get_mut().is_certain(),
    }
}

/// A pending input response.
pub(crate) type AnswerFuture = BoxFuture<'static, Result<InputResponse, Refusal>>;

/// Answers an input request. If the handler fails an elicitation, the response is `cancel`, which both eras have.
fn answer_request(
    input: Arc<dyn InputHandler>,
    origin: InputOrigin,
    input_request: InputRequest,
) -> AnswerFuture {
    let is_for_user = matches!(input_request, InputRequest::Form(_) | InputRequest::Url(_));
    Box::pin(async move {
        let answer = input.answer(origin, input_request).await;
        if is_for_user { Ok(answer.unwrap_or_else(|_| InputResponse::cancel())) } else { answer }
    })
}

/// Combines responses with a portable continuation, which is validated, since it may have left this process.
fn resumed_input(state: &Bytes, payload: InputPayload) -> Result<Box<AttachedInput>, Error> {
    if state.is_empty() {
        return Ok(Box::new(AttachedInput::Resumed(None, payload)));
    }
    let text = std::str::from_utf8(state).ok().and_then(|text| RawJson::parse(text.to_owned()).ok());
    let state =
        text.ok_or_else(|| Error::Invalid("the continuation is not one of this client".to_owned()))?;
    Ok(Box::new(AttachedInput::Resumed(Some(state), payload)))
}
