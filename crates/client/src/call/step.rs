//! One step of a call, and the loop over steps that answers.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, TryFutureExt as _};
use tokio::time::{Instant, sleep};
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{Method, RawJson, Refusal, error_code};

use super::in_flight::{InFlightCall, InputRoundEvent, WaitOutcome};
use super::{
    ClientCall, ClientContinuation, InputResponses, LiveContinuation, RawInputResponses, SuppliedInput,
};
use crate::client::ClientInner;
use crate::client_transport::{DeliveryStatus, ServerRequest, TransportFailureKind};
use crate::edge::{ParsedResponse, RequestExtras};
use crate::error::Error;
use crate::input::{InputHandler, InputOrigin};

/// How long it is waited before a server that only wants to be asked again is.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How often a call may be interrupted by questions that need not be its own.
const MAX_SHARED_ROUNDS: usize = 1000;

/// What comes with a request beside what it asks for.
#[derive(Debug)]
pub(crate) enum AttachedInput {
    /// Answers to questions that were asked before, and what the server wants to see again, exactly as it wrote it.
    Resumed(Option<RawJson>, InputPayload),
    /// Answers that nobody has asked for yet.
    Preset(RawInputResponses),
}

/// Answers by the keys of their questions.
#[derive(Debug)]
pub(crate) enum InputPayload {
    Typed(InputResponses),
    Verbatim(RawInputResponses),
}

/// How a step ends.
#[derive(Debug)]
pub(crate) enum CallStep {
    Done(RawResult),
    InputRequired(Vec<(String, InputRequest)>, ClientContinuation),
}

impl ClientInner {
    /// Makes one step of a call. A request is sent again only where it is certain that the server did not act on it.
    pub(crate) async fn step(
        self: &Arc<Self>,
        call: &ClientCall,
        given: Option<Box<SuppliedInput>>,
    ) -> Result<CallStep, Error> {
        if let Some(fault) = &call.invalid_reason {
            return Err(Error::Invalid(fault.to_string()));
        }
        let brought = match given.map(|given| *given) {
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
                input: brought.as_deref(),
                params: self.tools.headers(call),
                level: self.level(),
                recipient: call.input_recipient(self.capabilities_of(call)),
            };
            session.edge.check_supported(call)?;
            let outgoing = session.edge.write(self.plan.ids.next(), call, extras)?;
            let exchange = self.transport.request(outgoing);
            let mut running = InFlightCall::new(session, exchange, call, self);
            let mend = match running.wait(self, call).await? {
                WaitOutcome::InputRequired(questions) => return Ok(suspend(running, questions)),
                WaitOutcome::Failed(loss) => {
                    let is_gone = loss.kind == TransportFailureKind::SessionGone
                        && loss.delivery == DeliveryStatus::NotDelivered;
                    if !(is_gone && call.may_reopen) || std::mem::replace(&mut reopened, true) {
                        return Err(loss.into());
                    }
                    self.reopen_session(&running.session)
                }
                WaitOutcome::Response(outcome) => match self.finish_step(&running, call, outcome) {
                    Err(Error::ErrorResponse(refused))
                        if refused.code == error_code::HEADER_MISMATCH
                            && call.known_method == Some(Method::ToolsCall)
                            && !std::mem::replace(&mut refreshed, true) =>
                    {
                        // The schema has changed, and with it what headers have to repeat. Without a list that can be had
                        // there is nothing to do differently.
                        Box::pin(self.refresh_tools().map_err(|_| Error::ErrorResponse(refused)))
                    }
                    settled => return settled,
                },
            };
            mend.await?;
        }
    }

    /// Goes on with a call that stayed open.
    async fn resume_live(
        self: &Arc<Self>,
        suspended: Box<LiveContinuation>,
        answers: InputResponses,
        call: &ClientCall,
    ) -> Result<CallStep, Error> {
        let mut running = suspended.into_call();
        running.respond(self, call, answers).await?;
        match running.wait(self, call).await? {
            WaitOutcome::Response(outcome) => self.finish_step(&running, call, outcome),
            WaitOutcome::Failed(loss) => Err(loss.into()),
            WaitOutcome::InputRequired(questions) => Ok(suspend(running, questions)),
        }
    }

    fn finish_step(
        &self,
        running: &InFlightCall,
        call: &ClientCall,
        outcome: Result<RawResult, RawJson>,
    ) -> Result<CallStep, Error> {
        let capabilities = self.capabilities_of(call);
        Ok(match running.session.edge.read(call.known_method, outcome, capabilities)? {
            ParsedResponse::Done(result) => CallStep::Done(result),
            ParsedResponse::InputRequired(questions, state) => {
                let state = state.map_or_else(Bytes::new, |state| state.text().clone().into_bytes());
                CallStep::InputRequired(questions, ClientContinuation::Portable(state))
            }
        })
    }

    /// Runs a call to its end, and answers what the server asks.
    pub(crate) async fn run(
        self: &Arc<Self>,
        call: &ClientCall,
        mut given: Option<Box<SuppliedInput>>,
    ) -> Result<RawJson, Error> {
        let limits = &self.plan.limits;
        let began = Instant::now();
        let mut rounds = 0;
        let mut pace = POLL_INTERVAL;
        loop {
            match self.step(call, given.take()).await? {
                CallStep::Done(result) => return Ok(result.into_raw()),
                CallStep::InputRequired(questions, then) if questions.is_empty() => {
                    if began.elapsed() > limits.max_total_timeout {
                        return Err(Error::TimedOut { after: began.elapsed() });
                    }
                    sleep(pace).await;
                    pace = (pace * 2).min(MAX_POLL_INTERVAL);
                    given = Some(Box::new(SuppliedInput::Responses(then, InputResponses::new())));
                }
                CallStep::InputRequired(questions, mut then) => {
                    // Where calls of one channel ask at one time, the questions of all of them may come to one.
                    let most = if is_certain(&mut then) {
                        limits.input_rounds
                    } else {
                        limits.input_rounds.max(MAX_SHARED_ROUNDS)
                    };
                    rounds += 1;
                    if rounds > most {
                        let problem = format!("the server asked more than {most} times");
                        return Err(Error::InputDeclined(Refusal::TOO_MANY.with_message(problem)));
                    }
                    pace = POLL_INTERVAL;
                    let (then, answers) = self.answer_requests(call, questions, then).await;
                    given = Some(Box::new(SuppliedInput::Responses(then, answers)));
                }
            }
        }
    }

    /// Has the questions of a round answered, all at one time, while the call is listened to.
    async fn answer_requests(
        &self,
        call: &ClientCall,
        questions: Vec<(String, InputRequest)>,
        mut then: ClientContinuation,
    ) -> (ClientContinuation, InputResponses) {
        let origin = match call.known_method {
            Some(method) => InputOrigin::Call { method, name: call.name.as_ref().map(ToString::to_string) },
            None => InputOrigin::Session,
        };
        let mut waiting: Vec<_> = questions
            .into_iter()
            .map(|(key, question)| (key, answer_request(self.input.clone(), origin.clone(), question)))
            .collect();
        let mut answers = InputResponses::new();
        while !waiting.is_empty() {
            let meanwhile = async {
                match &mut then {
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
                        self.detach_pending(&mut then, waiting);
                        break;
                    }
                    InputRoundEvent::Withdrawn(key) => waiting.retain(|(asked, _)| *asked != key),
                },
                (at, answer) = answered => {
                    let (key, _) = waiting.swap_remove(at);
                    answers.push((key, answer));
                }
            }
        }
        (then, answers)
    }

    /// Leaves questions behind that are being answered although their call is over: they may have been another call's.
    fn detach_pending(&self, then: &mut ClientContinuation, waiting: Vec<(String, AnswerFuture)>) {
        let ClientContinuation::Live(suspended) = then else { return };
        let running = suspended.get_mut();
        for (key, answer) in waiting {
            match running.detach_request(&key) {
                Some(asked) if !asked.is_certain() => {
                    self.detach_answer(running.session.clone(), asked, answer);
                }
                // Nobody else can have asked it, and who asked has gone on.
                asked => asked.into_iter().for_each(ServerRequest::resolve),
            }
        }
    }

    pub(crate) fn capabilities_of<'a>(&'a self, call: &'a ClientCall) -> &'a ClientCapabilities {
        call.capabilities.as_ref().unwrap_or(&self.plan.capabilities)
    }
}

/// Reports whether the questions of a round are certainly those of the call that they interrupt.
fn is_certain(then: &mut ClientContinuation) -> bool {
    match then {
        ClientContinuation::Portable(_) => true,
        ClientContinuation::Live(suspended) => suspended.get_mut().is_certain(),
    }
}

/// An answer that is on its way.
pub(crate) type AnswerFuture = BoxFuture<'static, Result<InputResponse, Refusal>>;

/// Has a question answered. Whoever asks a user hears that the user did not decide, in words that both eras have.
fn answer_request(input: Arc<dyn InputHandler>, origin: InputOrigin, question: InputRequest) -> AnswerFuture {
    let is_for_user = matches!(question, InputRequest::Form(_) | InputRequest::Url(_));
    Box::pin(async move {
        let answer = input.answer(origin, question).await;
        if is_for_user { Ok(answer.unwrap_or_else(|_| InputResponse::cancel())) } else { answer }
    })
}

fn suspend(running: InFlightCall, questions: Vec<(String, InputRequest)>) -> CallStep {
    CallStep::InputRequired(questions, ClientContinuation::Live(Box::new(LiveContinuation::new(running))))
}

/// Brings answers together with the bytes of a portable continuation, which may have been elsewhere meanwhile.
fn resumed_input(state: &Bytes, said: InputPayload) -> Result<Box<AttachedInput>, Error> {
    if state.is_empty() {
        return Ok(Box::new(AttachedInput::Resumed(None, said)));
    }
    let text = std::str::from_utf8(state).ok().and_then(|text| RawJson::parse(text.to_owned()).ok());
    let state =
        text.ok_or_else(|| Error::Invalid("the continuation is not one of this client".to_owned()))?;
    Ok(Box::new(AttachedInput::Resumed(Some(state), said)))
}
