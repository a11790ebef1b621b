use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{Answer, Question};
use trunkline_protocol::{Notification, Raw, Refusal, era};

use super::{Answers, Call, LogMessage, Progress};
use crate::carrier::{Arrived, Asked, Exchange, Loss};
use crate::client::{Inner, Session};
use crate::error::Error;

/// What a call keeps for later while questions are being answered.
const MOST_BACKLOG: usize = 32;

/// Questions of one call that are open at one time; beyond it they are refused.
const MOST_OPEN: usize = 16;

/// A call that is open, from its request to its response.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) session: Arc<Session>,
    /// Before what is open, since it is dropped first: a question that is given up must not come back to this call.
    exchange: Exchange,
    /// What is left of the time in all.
    left: Duration,
    /// What came while questions were being answered, and has to be looked at afterwards.
    backlog: VecDeque<Arrived>,
    open: Vec<Open>,
    asked: usize,
    reported: f64,
}

/// A question that the server asked and that is not answered.
#[derive(Debug)]
struct Open {
    key: String,
    asked: Asked,
}

/// How a call that was waited for comes back.
#[derive(Debug)]
pub(crate) enum Waited {
    /// With a response.
    Response(Result<RawResult, Raw>),
    /// Without one.
    Lost(Loss),
    /// With questions.
    Asked(Vec<(String, Question)>),
}

/// What happened while questions were being answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum Meanwhile {
    /// The call is over; nobody waits for answers any more.
    Over,
    /// The server takes the question of this key back.
    Withdrawn(String),
}

impl Running {
    pub(crate) fn new(session: Arc<Session>, exchange: Exchange, call: &Call, inner: &Inner) -> Self {
        let left = inner.plan.limits.call_at_most.max(silent_for(inner, call));
        let (backlog, open) = (VecDeque::new(), Vec::new());
        Self { session, exchange, left, backlog, open, asked: 0, reported: f64::NEG_INFINITY }
    }

    /// Waits until the call comes back with something. The arguments of an `async fn` would be kept twice, in every call.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the server is silent for too long, or takes too long in all.
    pub(crate) fn wait(
        &mut self,
        inner: &Inner,
        call: &Call,
    ) -> impl Future<Output = Result<Waited, Error>> + Send {
        let began = Instant::now();
        let at_most = began + self.left;
        let mut due = (began + silent_for(inner, call)).min(at_most);
        async move {
            let mut alarm = inner.alarms.alarm();
            loop {
                let arrived = std::future::poll_fn(|cx| match self.poll_next(cx) {
                    Poll::Ready(arrived) => Poll::Ready(Some(arrived)),
                    Poll::Pending => alarm.poll(due, cx).map(|()| None),
                });
                let gathering = match arrived.await {
                    Some(Arrived::Response(outcome)) => return Ok(Waited::Response(outcome)),
                    Some(Arrived::Lost(loss)) => return Ok(Waited::Lost(loss)),
                    Some(Arrived::Notice(notice)) => {
                        let now = Instant::now();
                        if self.notice(inner, call, &notice).is_some_and(|noted| noted == Noted::Progress) {
                            due = (now + silent_for(inner, call)).min(at_most);
                        }
                        // Whoever never stops talking would else never let the alarm be heard.
                        if now >= due {
                            return Err(Error::TimedOut { after: due - began });
                        }
                        continue;
                    }
                    // A server that asks and does not read what it is answered is as good as silent.
                    Some(Arrived::Question(asked)) => {
                        Box::pin(timeout_at(due, self.gather(inner, call, asked)))
                    }
                    Some(Arrived::Skipped) => continue,
                    None => {
                        // Progress moves the time, and what was due before rings nevertheless.
                        if Instant::now() >= due {
                            return Err(Error::TimedOut { after: due - began });
                        }
                        continue;
                    }
                };
                let questions = gathering.await.map_err(|_| Error::TimedOut { after: due - began })??;
                let now = Instant::now();
                if !questions.is_empty() {
                    self.left = at_most.saturating_duration_since(now);
                    return Ok(Waited::Asked(questions));
                }
                due = (now + silent_for(inner, call)).min(at_most);
            }
        }
    }

    /// Gathers a question and those that come right after it.
    async fn gather(
        &mut self,
        inner: &Inner,
        call: &Call,
        first: Asked,
    ) -> Result<Vec<(String, Question)>, Error> {
        let mut questions = Vec::new();
        questions.extend(self.ask(inner, call, first).await?);
        let within = if call.gathers { inner.plan.limits.siblings_within } else { Duration::ZERO };
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout(left, self.next()).await {
                Ok(Arrived::Question(asked)) => questions.extend(self.ask(inner, call, asked).await?),
                Ok(Arrived::Notice(notice)) => {
                    if let Some(Noted::Withdrawn(key)) = self.notice(inner, call, &notice) {
                        questions.retain(|(asked, _)| *asked != key);
                    }
                }
                Ok(Arrived::Skipped) => {}
                Ok(last) => {
                    // The server did not wait for answers after all.
                    self.backlog.push_back(last);
                    return Ok(Vec::new());
                }
                Err(_) => return Ok(questions),
            }
        }
    }

    /// Takes a question, or refuses it.
    async fn ask(
        &mut self,
        inner: &Inner,
        call: &Call,
        asked: Asked,
    ) -> Result<Option<(String, Question)>, Error> {
        let capabilities = call.capabilities.as_ref().unwrap_or(&inner.plan.capabilities);
        let edge = &self.session.edge;
        let question = asked.request().map(|request| edge.question(request.clone(), capabilities));
        let refusal = match question {
            None => {
                asked.settle();
                return Ok(None);
            }
            Some(Ok(_)) if self.open.len() >= MOST_OPEN => Refusal::TOO_MANY,
            Some(Ok(question)) => {
                self.asked += 1;
                let key = format!("q{}", self.asked);
                self.open.push(Open { key: key.clone(), asked });
                return Ok(Some((key, question)));
            }
            Some(Err((refusal, undeclared))) => {
                if let Some(question) = undeclared {
                    call.observers.tell(|observer| observer.undeclared(&question));
                }
                refusal
            }
        };
        let posted = asked.id().map(|id| edge.answer(id, Err(&refusal)));
        asked.settle();
        if let Some(posted) = posted {
            inner.carrier.post(posted).await?;
        }
        Ok(None)
    }

    /// Reports whether every question that is open was certainly asked within this call.
    pub(crate) fn is_certain(&self) -> bool {
        self.open.iter().all(|open| open.asked.is_certain())
    }

    /// Gives up a question that is open, for somebody else to answer.
    pub(crate) fn disown(&mut self, key: &str) -> Option<Asked> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at).asked)
    }

    /// Gives the server its answers; questions that have none are refused.
    ///
    /// # Errors
    /// The connection is gone, or the server does not read.
    pub(crate) async fn answer(&mut self, inner: &Inner, call: &Call, answers: Answers) -> Result<(), Error> {
        let after = silent_for(inner, call);
        timeout(after, self.post(inner, answers)).await.unwrap_or(Err(Error::TimedOut { after }))
    }

    async fn post(&mut self, inner: &Inner, mut answers: Answers) -> Result<(), Error> {
        let is_over = self.is_over();
        while let Some(Open { key, asked }) = self.open.pop() {
            let given =
                answers.iter().position(|(asked, _)| *asked == key).map(|at| answers.swap_remove(at).1);
            if given.is_none() && is_over {
                // Who asked has gone on, unless it was another call that asked: then the question goes back.
                if asked.is_certain() {
                    asked.settle();
                }
                continue;
            }
            let given: Result<Answer, Refusal> =
                given.unwrap_or_else(|| Err(Refusal::INTERNAL.because("the question was not answered")));
            let posted = asked.id().map(|id| self.session.edge.answer(id, given.as_ref()));
            asked.settle();
            if let Some(posted) = posted {
                inner.carrier.post(posted).await?;
            }
        }
        Ok(())
    }

    /// Reports whether the last word has come although questions are open.
    fn is_over(&self) -> bool {
        self.backlog.back().is_some_and(|last| matches!(last, Arrived::Response(_) | Arrived::Lost(_)))
    }

    /// Lets go of the questions that may have been asked within another call: they go back to where they came from.
    pub(crate) fn give_up_uncertain(&mut self) {
        self.open.retain(|open| open.asked.is_certain());
    }

    /// Listens on while questions are being answered. Cancel safe.
    pub(crate) async fn listen(&mut self, inner: &Inner, call: &Call) -> Meanwhile {
        loop {
            if self.is_over() {
                return Meanwhile::Over;
            }
            if self.backlog.len() >= MOST_BACKLOG {
                // What comes now waits with the carrier, which has a bound of its own.
                std::future::pending::<()>().await;
            }
            match self.exchange.next().await {
                Some(Arrived::Notice(notice)) => {
                    if let Some(Noted::Withdrawn(key)) = self.notice(inner, call, &notice) {
                        return Meanwhile::Withdrawn(key);
                    }
                }
                Some(other) => self.backlog.push_back(other),
                None => {
                    self.backlog.push_back(Arrived::Lost(Loss::may_have_reached("there was no response")));
                }
            }
        }
    }

    async fn next(&mut self) -> Arrived {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        if let Some(arrived) = self.backlog.pop_front() {
            return Poll::Ready(arrived);
        }
        let lost = || Arrived::Lost(Loss::may_have_reached("there was no response"));
        self.exchange.poll_next(cx).map(|arrived| arrived.unwrap_or_else(lost))
    }

    /// Tells whoever wants to know what the server says while it works.
    fn notice(&mut self, inner: &Inner, call: &Call, notice: &Notification) -> Option<Noted> {
        match &*notice.method {
            "notifications/progress" => {
                let progress = Progress::read(notice)?;
                // It only ever grows; what does not is neither news nor a sign of life.
                if progress.progress <= self.reported || progress.progress.is_nan() {
                    return None;
                }
                self.reported = progress.progress;
                call.observers.tell(|observer| observer.progress(&progress));
                Some(Noted::Progress)
            }
            "notifications/message" => {
                let message = LogMessage::read(notice)?;
                call.observers.tell(|observer| observer.log(&message));
                inner.log(&message);
                None
            }
            "notifications/cancelled" => {
                let id = era::cancelled_request(notice)?;
                let at = self.open.iter().position(|open| open.asked.id() == Some(&id))?;
                let Open { key, asked } = self.open.remove(at);
                asked.settle();
                Some(Noted::Withdrawn(key))
            }
            _ => {
                inner.notice(notice);
                None
            }
        }
    }
}

/// Returns how long the server may be silent.
fn silent_for(inner: &Inner, call: &Call) -> Duration {
    call.timeout.unwrap_or(inner.plan.limits.silent_for)
}

/// What a notice was about, where that matters.
#[derive(Debug, PartialEq, Eq)]
enum Noted {
    Progress,
    Withdrawn(String),
}

/// A call that is open while its questions are answered.
#[derive(Debug)]
pub struct Suspended {
    /// Never locked: whoever has it has it alone, and the mutex only says so to those who share the call around it.
    running: Mutex<Running>,
}

impl Suspended {
    pub(crate) fn new(running: Running) -> Self {
        Self { running: Mutex::new(running) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut Running {
        self.running.get_mut()
    }

    pub(crate) fn into_running(self) -> Running {
        self.running.into_inner()
    }
}
