//! One step of a call, and the loop over steps that answers.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, TryFutureExt as _};
use tokio::time::{Instant, sleep};
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{Answer, ClientCapabilities, Question};
use trunkline_protocol::{Method, Raw, Refusal, error_code};

use super::running::{Meanwhile, Running, Waited};
use super::{Answers, Call, CarriedAnswers, Continuation, Given, Suspended};
use crate::carrier::{Asked, LossKind, Reach};
use crate::client::Inner;
use crate::edge::{Extras, Settled};
use crate::error::Error;
use crate::input::{InputHandler, Origin};

/// How long it is waited before a server that only wants to be asked again is.
const PACE: Duration = Duration::from_millis(250);
const SLOWEST_PACE: Duration = Duration::from_secs(2);

/// How often a call may be interrupted by questions that need not be its own.
const MOST_SHARED_ROUNDS: usize = 1000;

/// What comes with a request beside what it asks for.
#[derive(Debug)]
pub(crate) enum Brought {
    /// Answers to questions that were asked before, and what the server wants to see again, exactly as it wrote it.
    Asked(Option<Raw>, Said),
    /// Answers that nobody has asked for yet.
    Ahead(CarriedAnswers),
}

/// Answers by the keys of their questions.
#[derive(Debug)]
pub(crate) enum Said {
    Answers(Answers),
    Carried(CarriedAnswers),
}

/// How a step ends.
#[derive(Debug)]
pub(crate) enum Step {
    Done(RawResult),
    Ask(Vec<(String, Question)>, Continuation),
}

impl Inner {
    /// Makes one step of a call. A request is sent again only where it is certain that the server did not act on it.
    pub(crate) async fn step(
        self: &Arc<Self>,
        call: &Call,
        given: Option<Box<Given>>,
    ) -> Result<Step, Error> {
        if let Some(fault) = &call.fault {
            return Err(Error::Invalid(fault.to_string()));
        }
        let brought = match given.map(|given| *given) {
            Some(Given::Answers(Continuation::Live(suspended), answers)) => {
                return Box::pin(self.go_on(suspended, answers, call)).await;
            }
            Some(Given::Answers(Continuation::Portable(state), answers)) => {
                Some(again(&state, Said::Answers(answers))?)
            }
            Some(Given::Carried(state, answers)) => Some(again(&state, Said::Carried(answers))?),
            Some(Given::Ahead(answers)) => Some(Box::new(Brought::Ahead(answers))),
            None => None,
        };
        let (mut reopened, mut refreshed) = (false, false);
        loop {
            let session = self.session.load_full();
            let extras = Extras {
                brought: brought.as_deref(),
                params: self.tools.headers(call),
                level: self.level(),
                answerer: call.answerer(self.capabilities_of(call)),
            };
            session.edge.check(call)?;
            let outgoing = session.edge.write(self.plan.ids.next(), call, extras)?;
            let exchange = self.carrier.request(outgoing);
            let mut running = Running::new(session, exchange, call, self);
            let mend = match running.wait(self, call).await? {
                Waited::Asked(questions) => return Ok(suspend(running, questions)),
                Waited::Lost(loss) => {
                    let is_gone = loss.kind == LossKind::SessionGone && loss.reach == Reach::NotReached;
                    if !(is_gone && call.may_reopen) || std::mem::replace(&mut reopened, true) {
                        return Err(loss.into());
                    }
                    self.reopen(&running.session)
                }
                Waited::Response(outcome) => match self.settle(&running, call, outcome) {
                    Err(Error::Refused(refused))
                        if refused.code == error_code::HEADER_MISMATCH
                            && call.known == Some(Method::ToolsCall)
                            && !std::mem::replace(&mut refreshed, true) =>
                    {
                        // The schema has changed, and with it what headers have to repeat. Without a list that can be had
                        // there is nothing to do differently.
                        Box::pin(self.refresh_tools().map_err(|_| Error::Refused(refused)))
                    }
                    settled => return settled,
                },
            };
            mend.await?;
        }
    }

    /// Goes on with a call that stayed open.
    async fn go_on(
        self: &Arc<Self>,
        suspended: Box<Suspended>,
        answers: Answers,
        call: &Call,
    ) -> Result<Step, Error> {
        let mut running = suspended.into_running();
        running.answer(self, call, answers).await?;
        match running.wait(self, call).await? {
            Waited::Response(outcome) => self.settle(&running, call, outcome),
            Waited::Lost(loss) => Err(loss.into()),
            Waited::Asked(questions) => Ok(suspend(running, questions)),
        }
    }

    fn settle(&self, running: &Running, call: &Call, outcome: Result<RawResult, Raw>) -> Result<Step, Error> {
        let capabilities = self.capabilities_of(call);
        Ok(match running.session.edge.read(call.known, outcome, capabilities)? {
            Settled::Done(result) => Step::Done(result),
            Settled::Ask(questions, state) => {
                let state = state.map_or_else(Bytes::new, |state| state.text().clone().into_bytes());
                Step::Ask(questions, Continuation::Portable(state))
            }
        })
    }

    /// Runs a call to its end, and answers what the server asks.
    pub(crate) async fn run(
        self: &Arc<Self>,
        call: &Call,
        mut given: Option<Box<Given>>,
    ) -> Result<Raw, Error> {
        let limits = &self.plan.limits;
        let began = Instant::now();
        let mut rounds = 0;
        let mut pace = PACE;
        loop {
            match self.step(call, given.take()).await? {
                Step::Done(result) => return Ok(result.into_raw()),
                Step::Ask(questions, then) if questions.is_empty() => {
                    if began.elapsed() > limits.call_at_most {
                        return Err(Error::TimedOut { after: began.elapsed() });
                    }
                    sleep(pace).await;
                    pace = (pace * 2).min(SLOWEST_PACE);
                    given = Some(Box::new(Given::Answers(then, Answers::new())));
                }
                Step::Ask(questions, mut then) => {
                    // Where calls of one channel ask at one time, the questions of all of them may come to one.
                    let most = if is_certain(&mut then) {
                        limits.rounds
                    } else {
                        limits.rounds.max(MOST_SHARED_ROUNDS)
                    };
                    rounds += 1;
                    if rounds > most {
                        let problem = format!("the server asked more than {most} times");
                        return Err(Error::Unanswered(Refusal::TOO_MANY.because(problem)));
                    }
                    pace = PACE;
                    let (then, answers) = self.answer_all(call, questions, then).await;
                    given = Some(Box::new(Given::Answers(then, answers)));
                }
            }
        }
    }

    /// Has the questions of a round answered, all at one time, while the call is listened to.
    async fn answer_all(
        &self,
        call: &Call,
        questions: Vec<(String, Question)>,
        mut then: Continuation,
    ) -> (Continuation, Answers) {
        let origin = match call.known {
            Some(method) => Origin::Call { method, name: call.name.as_ref().map(ToString::to_string) },
            None => Origin::Session,
        };
        let mut waiting: Vec<_> = questions
            .into_iter()
            .map(|(key, question)| (key, answered(self.input.clone(), origin.clone(), question)))
            .collect();
        let mut answers = Answers::new();
        while !waiting.is_empty() {
            let meanwhile = async {
                match &mut then {
                    Continuation::Live(suspended) => suspended.get_mut().listen(self, call).await,
                    Continuation::Portable(_) => std::future::pending().await,
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
                    Meanwhile::Over => {
                        self.leave_behind(&mut then, waiting);
                        break;
                    }
                    Meanwhile::Withdrawn(key) => waiting.retain(|(asked, _)| *asked != key),
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
    fn leave_behind(&self, then: &mut Continuation, waiting: Vec<(String, AnswerFuture)>) {
        let Continuation::Live(suspended) = then else { return };
        let running = suspended.get_mut();
        for (key, answer) in waiting {
            match running.disown(&key) {
                Some(asked) if !asked.is_certain() => self.adopt(running.session.clone(), asked, answer),
                // Nobody else can have asked it, and who asked has gone on.
                asked => asked.into_iter().for_each(Asked::settle),
            }
        }
    }

    pub(crate) fn capabilities_of<'a>(&'a self, call: &'a Call) -> &'a ClientCapabilities {
        call.capabilities.as_ref().unwrap_or(&self.plan.capabilities)
    }
}

/// Reports whether the questions of a round are certainly those of the call that they interrupt.
fn is_certain(then: &mut Continuation) -> bool {
    match then {
        Continuation::Portable(_) => true,
        Continuation::Live(suspended) => suspended.get_mut().is_certain(),
    }
}

/// An answer that is on its way.
pub(crate) type AnswerFuture = BoxFuture<'static, Result<Answer, Refusal>>;

/// Has a question answered. Whoever asks a user hears that the user did not decide, in words that both eras have.
fn answered(input: Arc<dyn InputHandler>, origin: Origin, question: Question) -> AnswerFuture {
    let is_for_user = matches!(question, Question::Form(_) | Question::Url(_));
    Box::pin(async move {
        let answer = input.answer(origin, question).await;
        if is_for_user { Ok(answer.unwrap_or_else(|_| Answer::cancel())) } else { answer }
    })
}

fn suspend(running: Running, questions: Vec<(String, Question)>) -> Step {
    Step::Ask(questions, Continuation::Live(Box::new(Suspended::new(running))))
}

/// Brings answers together with the bytes of a portable continuation, which may have been elsewhere meanwhile.
fn again(state: &Bytes, said: Said) -> Result<Box<Brought>, Error> {
    if state.is_empty() {
        return Ok(Box::new(Brought::Asked(None, said)));
    }
    let text = std::str::from_utf8(state).ok().and_then(|text| Raw::parse(text.to_owned()).ok());
    let state =
        text.ok_or_else(|| Error::Invalid("the continuation is not one of this client".to_owned()))?;
    Ok(Box::new(Brought::Asked(Some(state), said)))
}
