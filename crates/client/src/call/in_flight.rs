use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use trunkline_protocol::model::{InputRequest, InputResponse};
use trunkline_protocol::{Notification, Refusal, era};

use super::{ClientCall, InputResponses, LogMessage, ProgressUpdate};
use crate::client::{ClientInner, CurrentSession};
use crate::client_transport::{ExchangeEvent, RawResponse, RequestExchange, ServerRequest, TransportFailure};
use crate::dropped_message::DroppedMessage;

/// Events that a call buffers while input requests are being answered.
const MAX_BACKLOG: usize = 32;

/// Open input requests of one call; beyond it they are refused.
const MAX_OPEN_REQUESTS: usize = 16;

/// A call from its request to its response.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    pub(crate) session: Arc<CurrentSession>,
    /// Declared before `open_requests`, so that it is dropped first: an input request that is released on drop must
    /// not be routed back to this call.
    exchange: RequestExchange,
    /// The rest of the total timeout.
    time_left: Duration,
    /// Events that arrived while input requests were being answered.
    backlog: VecDeque<ExchangeEvent>,
    open_requests: Vec<OpenInputRequest>,
    /// The input requests of the round that begins, until [`take_round`](Self::take_round).
    round: Vec<(String, InputRequest)>,
    request_count: usize,
    last_progress: f64,
}

/// An input request without a response yet.
#[derive(Debug)]
struct OpenInputRequest {
    key: String,
    request: ServerRequest,
}

/// An event during an input round.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputRoundEvent {
    /// The call has ended, so that the responses are no longer needed.
    Ended,
    /// The server cancelled the input request with this key.
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
        Self {
            session,
            exchange,
            time_left: left,
            backlog: VecDeque::new(),
            open_requests: Vec::new(),
            round: Vec::new(),
            request_count: 0,
            last_progress: f64::NEG_INFINITY,
        }
    }

    /// Waits for the response; `None` if the server requests input first, for which [`take_round`](Self::take_round)
    /// has the requests. Not an `async fn`: it would store its arguments twice, in every call.
    ///
    /// # Errors
    /// The transport failed, or the request timeout expired without progress, or the total timeout expired.
    pub(crate) fn wait(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
    ) -> impl Future<Output = Result<Option<RawResponse>, TransportFailure>> + Send {
        let began = Instant::now();
        let mut at_most = began + self.time_left;
        let mut due = (began + request_timeout(inner, call)).min(at_most);
        async move {
            let mut deadline = pin!(sleep_until(due));
            loop {
                // Progress moves the deadline.
                if deadline.deadline() != due {
                    deadline.as_mut().reset(due);
                }
                let arrived = poll_fn(|cx| match self.poll_next(cx) {
                    Poll::Ready(arrived) => Poll::Ready(Some(arrived)),
                    Poll::Pending => deadline.as_mut().poll(cx).map(|()| None),
                });
                let collecting = match arrived.await {
                    Some(ExchangeEvent::Response(outcome)) => return Ok(Some(outcome)),
                    Some(ExchangeEvent::Failed(failure)) => return Err(failure),
                    Some(ExchangeEvent::Notification(notification)) => {
                        let now = Instant::now();
                        let effect = self.handle_notification(inner, call, &notification);
                        if effect == Some(NotificationEffect::Progress) {
                            due = (now + request_timeout(inner, call)).min(at_most);
                        }
                        // A server that sends notifications without pause would otherwise starve the timer.
                        if now >= due {
                            return Err(TransportFailure::timed_out(due - began));
                        }
                        continue;
                    }
                    // A server that requests input and does not read the responses times out like a silent one.
                    Some(ExchangeEvent::Request(request)) => {
                        Box::pin(timeout_at(due, self.collect_requests(inner, call, request)))
                    }
                    Some(ExchangeEvent::Skipped) => continue,
                    None => {
                        if !inner.transport.is_waiting_for_user() {
                            return Err(TransportFailure::timed_out(due - began));
                        }
                        let now = Instant::now();
                        at_most = now + self.time_left;
                        due = (now + request_timeout(inner, call)).min(at_most);
                        continue;
                    }
                };
                collecting.await.map_err(|_| TransportFailure::timed_out(due - began))??;
                let now = Instant::now();
                if !self.round.is_empty() {
                    self.time_left = at_most.saturating_duration_since(now);
                    return Ok(None);
                }
                due = (now + request_timeout(inner, call)).min(at_most);
            }
        }
    }

    /// Returns the input requests of the round that [`wait`](Self::wait) ended with.
    pub(crate) fn take_round(&mut self) -> Vec<(String, InputRequest)> {
        std::mem::take(&mut self.round)
    }

    /// Collects an input request and those that follow within the batch window.
    async fn collect_requests(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        first: ServerRequest,
    ) -> Result<(), TransportFailure> {
        self.accept_request(inner, call, first).await?;
        let within =
            if call.batches_requests { inner.plan.limits.input_batch_window } else { Duration::ZERO };
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match timeout(left, self.next()).await {
                Ok(ExchangeEvent::Request(request)) => {
                    self.accept_request(inner, call, request).await?;
                }
                Ok(ExchangeEvent::Notification(notification)) => {
                    if let Some(NotificationEffect::Withdrawn(key)) =
                        self.handle_notification(inner, call, &notification)
                    {
                        self.round.retain(|(other, _)| *other != key);
                    }
                }
                Ok(ExchangeEvent::Skipped) => {}
                Ok(last) => {
                    // The server did not wait for the responses after all.
                    self.backlog.push_back(last);
                    self.round.clear();
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }

    /// Adds an input request to the round, or refuses it.
    async fn accept_request(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        request: ServerRequest,
    ) -> Result<(), TransportFailure> {
        let capabilities = call.capabilities.as_ref().unwrap_or(&inner.plan.capabilities);
        let edge = &self.session.edge;
        let input_request =
            request.request().map(|request| edge.parse_request(request.clone(), capabilities));
        let refusal = match input_request {
            None => {
                request.resolve();
                return Ok(());
            }
            Some(Ok(_)) if self.open_requests.len() >= MAX_OPEN_REQUESTS => Refusal::TOO_MANY,
            Some(Ok(input_request)) => {
                self.request_count += 1;
                let key = format!("q{}", self.request_count);
                self.open_requests.push(OpenInputRequest { key: key.clone(), request });
                self.round.push((key, input_request));
                return Ok(());
            }
            Some(Err((refusal, undeclared))) => {
                if let Some(input_request) = undeclared {
                    call.observers.notify(|observer| observer.undeclared(&input_request));
                }
                refusal
            }
        };
        let posted = request.id().map(|id| edge.write_response(id, Err(&refusal)));
        request.resolve();
        match posted {
            Some(posted) => {
                inner.observe_posted(&self.session, call.number, &posted);
                inner.transport.post(posted).await
            }
            None => Ok(()),
        }
    }

    /// Reports whether every open input request certainly belongs to this call.
    pub(crate) fn is_certain(&self) -> bool {
        self.open_requests.iter().all(|open| open.request.is_certain())
    }

    /// Removes an open input request from the call, to be answered elsewhere.
    pub(crate) fn detach_request(&mut self, key: &str) -> Option<ServerRequest> {
        let at = self.open_requests.iter().position(|open| open.key == key)?;
        Some(self.open_requests.remove(at).request)
    }

    /// Sends the responses to the server; input requests without one are refused.
    ///
    /// # Errors
    /// The connection is closed, or the server does not read.
    pub(crate) async fn respond(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        answers: InputResponses,
    ) -> Result<(), TransportFailure> {
        let after = request_timeout(inner, call);
        let posting = timeout(after, self.post(inner, call, answers));
        posting.await.unwrap_or_else(|_| Err(TransportFailure::timed_out(after)))
    }

    async fn post(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        mut answers: InputResponses,
    ) -> Result<(), TransportFailure> {
        let is_over = self.has_ended();
        while let Some(OpenInputRequest { key, request }) = self.open_requests.pop() {
            let response =
                answers.iter().position(|(other, _)| *other == key).map(|at| answers.swap_remove(at).1);
            if response.is_none() && is_over {
                // The call has ended, so the server needs no response. An input request that may belong to another
                // call is dropped instead, which routes it again.
                if request.is_certain() {
                    request.resolve();
                }
                continue;
            }
            let response: Result<InputResponse, Refusal> = response
                .unwrap_or_else(|| Err(Refusal::INTERNAL.with_message("the question was not answered")));
            let posted = request.id().map(|id| self.session.edge.write_response(id, response.as_ref()));
            request.resolve();
            if let Some(posted) = posted {
                inner.observe_posted(&self.session, call.number, &posted);
                inner.transport.post(posted).await?;
            }
        }
        Ok(())
    }

    /// Reports whether the call has ended although input requests are open.
    fn has_ended(&self) -> bool {
        self.backlog
            .back()
            .is_some_and(|last| matches!(last, ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)))
    }

    /// Drops the input requests that may belong to another call; the driver routes them again.
    pub(crate) fn release_uncertain(&mut self) {
        self.open_requests.retain(|open| open.request.is_certain());
    }

    /// Waits for the next event of an input round. Cancel safe.
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
                // Further events wait in the transport, which has a bound of its own.
                std::future::pending::<()>().await;
            }
            match self.exchange.next().await {
                Some(ExchangeEvent::Notification(notification)) => {
                    if let Some(NotificationEffect::Withdrawn(key)) =
                        self.handle_notification(inner, call, &notification)
                    {
                        return InputRoundEvent::Withdrawn(key);
                    }
                }
                Some(other) => self.backlog.push_back(other),
                None => {
                    self.backlog.push_back(ExchangeEvent::Failed(TransportFailure::maybe_sent(
                        "there was no response",
                    )));
                }
            }
        }
    }

    async fn next(&mut self) -> ExchangeEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Some(arrived) = self.backlog.pop_front() {
            return Poll::Ready(arrived);
        }
        let lost = || ExchangeEvent::Failed(TransportFailure::maybe_sent("there was no response"));
        self.exchange.poll_next(cx).map(|arrived| arrived.unwrap_or_else(lost))
    }

    /// Passes a notification to the observers of the call.
    fn handle_notification(
        &mut self,
        inner: &ClientInner,
        call: &ClientCall,
        notification: &Notification,
    ) -> Option<NotificationEffect> {
        match &*notification.method {
            "notifications/progress" => {
                let Some(progress) = ProgressUpdate::read(notification) else {
                    inner.count_dropped(DroppedMessage::Unreadable);
                    return None;
                };
                // The specification requires that progress increases; a value that does not is dropped and does not
                // restart the timeout.
                if progress.progress <= self.last_progress || progress.progress.is_nan() {
                    inner.count_dropped(DroppedMessage::Notification);
                    return None;
                }
                self.last_progress = progress.progress;
                call.observers.notify(|observer| observer.progress(&progress));
                Some(NotificationEffect::Progress)
            }
            "notifications/message" => {
                let Some(message) = LogMessage::read(notification) else {
                    inner.count_dropped(DroppedMessage::Unreadable);
                    return None;
                };
                call.observers.notify(|observer| observer.log(&message));
                inner.log(&message);
                None
            }
            "notifications/cancelled" => {
                let id = era::cancelled_request(notification)?;
                let at = self.open_requests.iter().position(|open| open.request.id() == Some(&id))?;
                let OpenInputRequest { key, request } = self.open_requests.remove(at);
                request.resolve();
                Some(NotificationEffect::Withdrawn(key))
            }
            _ => {
                inner.handle_notification(notification);
                None
            }
        }
    }
}

/// Returns the request timeout of a call.
fn request_timeout(inner: &ClientInner, call: &ClientCall) -> Duration {
    call.timeout.unwrap_or(inner.plan.limits.request_timeout)
}

/// The effect of a notification on its call.
#[derive(Debug, PartialEq, Eq)]
enum NotificationEffect {
    Progress,
    Withdrawn(String),
}

/// A call that is suspended while its input requests are answered.
#[derive(Debug)]
pub struct LiveContinuation {
    /// Never locked: access is exclusive, and the mutex only makes the type `Sync`.
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
