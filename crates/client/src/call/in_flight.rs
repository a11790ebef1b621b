use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{InputRequest, InputResponse};
use trunkline_protocol::{Notification, RawJson, Refusal, era};

use super::{ClientCall, InputResponses, LogMessage, ProgressUpdate};
use crate::client::{ClientInner, CurrentSession};
use crate::client_transport::{ExchangeEvent, RequestExchange, ServerRequest, TransportFailure};
use crate::error::Error;

/// What a call keeps for later while questions are being answered.
const MAX_BACKLOG: usize = 32;

/// Questions of one call that are open at one time; beyond it they are refused.
const MAX_OPEN_REQUESTS: usize = 16;

/// A call that is open, from its request to its response.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    pub(crate) session: Arc<CurrentSession>,
    /// Before what is open, since it is dropped first: a question that is given up must not come back to this call.
    exchange: RequestExchange,
    /// What is left of the time in all.
    time_left: Duration,
    /// What came while questions were being answered, and has to be looked at afterwards.
    backlog: VecDeque<ExchangeEvent>,
    open_requests: Vec<OpenInputRequest>,
    request_count: usize,
    last_progress: f64,
}

/// A question that the server asked and that is not answered.
#[derive(Debug)]
struct OpenInputRequest {
    key: String,
    request: ServerRequest,
}

/// How a call that was waited for comes back.
#[derive(Debug)]
pub(crate) enum WaitOutcome {
    /// With a response.
    Response(Result<RawResult, RawJson>),
    /// Without one.
    Failed(TransportFailure),
    /// With questions.
    InputRequired(Vec<(String, InputRequest)>),
}

/// What happened while questions were being answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputRoundEvent {
    /// The call is over; nobody waits for answers any more.
    Ended,
    /// The server takes the question of this key back.
    Withdrawn(String),
}

impl InFlightCall {
    pub(crate) fn new(
        session: Arc<CurrentSession>,
        exchange: RequestExchange,
        call: &ClientCall,
        inner: &ClientInner,
    ) -> Self {
        let left = inner.plan.limits.max_total_timeout.max(request_timeout(inner, call));
        let (backlog, open) = (VecDeque::new(), Vec::new());
        Self {
            session,
            exchange,
            time_left: left,
            backlog,
            open_requests: open,
            request_count: 0,
            last_progress: f64::NEG_INFINITY,
        }
    }

    /// Waits until the call comes back with something. The arguments of an `async fn` would be kept twice, in every call.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the server is silent for too long, or takes too long in all.
    pub(crate) fn wait(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
    ) -> impl Future<Output = Result<WaitOutcome, Error>> + Send {
        let began = Instant::now();
        let at_most = began + self.time_left;
        let mut due = (began + request_timeout(inner, call)).min(at_most);
        async move {
            let mut alarm = inner.deadline_timer.deadline();
            loop {
                let arrived = std::future::poll_fn(|cx| match self.poll_next(cx) {
                    Poll::Ready(arrived) => Poll::Ready(Some(arrived)),
                    Poll::Pending => alarm.poll(due, cx).map(|()| None),
                });
                let gathering = match arrived.await {
                    Some(ExchangeEvent::Response(outcome)) => return Ok(WaitOutcome::Response(outcome)),
                    Some(ExchangeEvent::Failed(loss)) => return Ok(WaitOutcome::Failed(loss)),
                    Some(ExchangeEvent::Notification(notice)) => {
                        let now = Instant::now();
                        if self
                            .handle_notification(inner, call, &notice)
                            .is_some_and(|noted| noted == NotificationEffect::Progress)
                        {
                            due = (now + request_timeout(inner, call)).min(at_most);
                        }
                        // Whoever never stops talking would else never let the alarm be heard.
                        if now >= due {
                            return Err(Error::TimedOut { after: due - began });
                        }
                        continue;
                    }
                    // A server that asks and does not read what it is answered is as good as silent.
                    Some(ExchangeEvent::Request(asked)) => {
                        Box::pin(timeout_at(due, self.collect_requests(inner, call, asked)))
                    }
                    Some(ExchangeEvent::Skipped) => continue,
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
                    self.time_left = at_most.saturating_duration_since(now);
                    return Ok(WaitOutcome::InputRequired(questions));
                }
                due = (now + request_timeout(inner, call)).min(at_most);
            }
        }
    }

    /// Gathers a question and those that come right after it.
    async fn collect_requests(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        first: ServerRequest,
    ) -> Result<Vec<(String, InputRequest)>, Error> {
        let mut questions = Vec::new();
        questions.extend(self.accept_request(inner, call, first).await?);
        let within =
            if call.batches_requests { inner.plan.limits.input_batch_window } else { Duration::ZERO };
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout(left, self.next()).await {
                Ok(ExchangeEvent::Request(asked)) => {
                    questions.extend(self.accept_request(inner, call, asked).await?);
                }
                Ok(ExchangeEvent::Notification(notice)) => {
                    if let Some(NotificationEffect::Withdrawn(key)) =
                        self.handle_notification(inner, call, &notice)
                    {
                        questions.retain(|(asked, _)| *asked != key);
                    }
                }
                Ok(ExchangeEvent::Skipped) => {}
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
    async fn accept_request(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        asked: ServerRequest,
    ) -> Result<Option<(String, InputRequest)>, Error> {
        let capabilities = call.capabilities.as_ref().unwrap_or(&inner.plan.capabilities);
        let edge = &self.session.edge;
        let question = asked.request().map(|request| edge.parse_request(request.clone(), capabilities));
        let refusal = match question {
            None => {
                asked.resolve();
                return Ok(None);
            }
            Some(Ok(_)) if self.open_requests.len() >= MAX_OPEN_REQUESTS => Refusal::TOO_MANY,
            Some(Ok(question)) => {
                self.request_count += 1;
                let key = format!("q{}", self.request_count);
                self.open_requests.push(OpenInputRequest { key: key.clone(), request: asked });
                return Ok(Some((key, question)));
            }
            Some(Err((refusal, undeclared))) => {
                if let Some(question) = undeclared {
                    call.observers.notify(|observer| observer.undeclared(&question));
                }
                refusal
            }
        };
        let posted = asked.id().map(|id| edge.write_response(id, Err(&refusal)));
        asked.resolve();
        if let Some(posted) = posted {
            inner.transport.post(posted).await?;
        }
        Ok(None)
    }

    /// Reports whether every question that is open was certainly asked within this call.
    pub(crate) fn is_certain(&self) -> bool {
        self.open_requests.iter().all(|open| open.request.is_certain())
    }

    /// Gives up a question that is open, for somebody else to answer.
    pub(crate) fn detach_request(&mut self, key: &str) -> Option<ServerRequest> {
        let at = self.open_requests.iter().position(|open| open.key == key)?;
        Some(self.open_requests.remove(at).request)
    }

    /// Gives the server its answers; questions that have none are refused.
    ///
    /// # Errors
    /// The connection is gone, or the server does not read.
    pub(crate) async fn respond(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        answers: InputResponses,
    ) -> Result<(), Error> {
        let after = request_timeout(inner, call);
        timeout(after, self.post(inner, answers)).await.unwrap_or(Err(Error::TimedOut { after }))
    }

    async fn post(&mut self, inner: &ClientInner, mut answers: InputResponses) -> Result<(), Error> {
        let is_over = self.has_ended();
        while let Some(OpenInputRequest { key, request: asked }) = self.open_requests.pop() {
            let given =
                answers.iter().position(|(asked, _)| *asked == key).map(|at| answers.swap_remove(at).1);
            if given.is_none() && is_over {
                // Who asked has gone on, unless it was another call that asked: then the question goes back.
                if asked.is_certain() {
                    asked.resolve();
                }
                continue;
            }
            let given: Result<InputResponse, Refusal> =
                given.unwrap_or_else(|| Err(Refusal::INTERNAL.with_message("the question was not answered")));
            let posted = asked.id().map(|id| self.session.edge.write_response(id, given.as_ref()));
            asked.resolve();
            if let Some(posted) = posted {
                inner.transport.post(posted).await?;
            }
        }
        Ok(())
    }

    /// Reports whether the last word has come although questions are open.
    fn has_ended(&self) -> bool {
        self.backlog
            .back()
            .is_some_and(|last| matches!(last, ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)))
    }

    /// Lets go of the questions that may have been asked within another call: they go back to where they came from.
    pub(crate) fn release_uncertain(&mut self) {
        self.open_requests.retain(|open| open.request.is_certain());
    }

    /// Listens on while questions are being answered. Cancel safe.
    pub(crate) async fn next_round_event(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
    ) -> InputRoundEvent {
        loop {
            if self.has_ended() {
                return InputRoundEvent::Ended;
            }
            if self.backlog.len() >= MAX_BACKLOG {
                // What comes now waits with the carrier, which has a bound of its own.
                std::future::pending::<()>().await;
            }
            match self.exchange.next().await {
                Some(ExchangeEvent::Notification(notice)) => {
                    if let Some(NotificationEffect::Withdrawn(key)) =
                        self.handle_notification(inner, call, &notice)
                    {
                        return InputRoundEvent::Withdrawn(key);
                    }
                }
                Some(other) => self.backlog.push_back(other),
                None => {
                    self.backlog.push_back(ExchangeEvent::Failed(TransportFailure::maybe_delivered(
                        "there was no response",
                    )));
                }
            }
        }
    }

    async fn next(&mut self) -> ExchangeEvent {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Some(arrived) = self.backlog.pop_front() {
            return Poll::Ready(arrived);
        }
        let lost = || ExchangeEvent::Failed(TransportFailure::maybe_delivered("there was no response"));
        self.exchange.poll_next(cx).map(|arrived| arrived.unwrap_or_else(lost))
    }

    /// Tells whoever wants to know what the server says while it works.
    fn handle_notification(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        notice: &Notification,
    ) -> Option<NotificationEffect> {
        match &*notice.method {
            "notifications/progress" => {
                let progress = ProgressUpdate::read(notice)?;
                // It only ever grows; what does not is neither news nor a sign of life.
                if progress.progress <= self.last_progress || progress.progress.is_nan() {
                    return None;
                }
                self.last_progress = progress.progress;
                call.observers.notify(|observer| observer.progress(&progress));
                Some(NotificationEffect::Progress)
            }
            "notifications/message" => {
                let message = LogMessage::read(notice)?;
                call.observers.notify(|observer| observer.log(&message));
                inner.log(&message);
                None
            }
            "notifications/cancelled" => {
                let id = era::cancelled_request(notice)?;
                let at = self.open_requests.iter().position(|open| open.request.id() == Some(&id))?;
                let OpenInputRequest { key, request: asked } = self.open_requests.remove(at);
                asked.resolve();
                Some(NotificationEffect::Withdrawn(key))
            }
            _ => {
                inner.handle_notification(notice);
                None
            }
        }
    }
}

/// Returns how long the server may be silent.
fn request_timeout(inner: &ClientInner, call: &ClientCall) -> Duration {
    call.timeout.unwrap_or(inner.plan.limits.request_timeout)
}

/// What a notice was about, where that matters.
#[derive(Debug, PartialEq, Eq)]
enum NotificationEffect {
    Progress,
    Withdrawn(String),
}

/// A call that is open while its questions are answered.
#[derive(Debug)]
pub struct LiveContinuation {
    /// Never locked: whoever has it has it alone, and the mutex only says so to those who share the call around it.
    call: Mutex<InFlightCall>,
}

impl LiveContinuation {
    pub(crate) fn new(running: InFlightCall) -> Self {
        Self { call: Mutex::new(running) }
    }

    pub(crate) fn get_mut(&mut self) -> &mut InFlightCall {
        self.call.get_mut()
    }

    pub(crate) fn into_call(self) -> InFlightCall {
        self.call.into_inner()
    }
}
