use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageOrBatch};
use trunkline_protocol::{Message, Method, RawJson, RequestId, Response, emit};
use trunkline_transport::http::{HttpError, HttpResponseBody};

use super::CLOSED_MESSAGE;
use super::close_signal::CloseWaiter;
use super::response_head::{BodyMedia, body_media};
use super::response_head::{InSession, ResponseKind, malformed, with_excerpt};
use super::resumption::StreamResumption;
use super::shared::{HttpShared, StreamUnavailable, http_failure};
use super::sse_messages::{SseItem, SseMessages};
use crate::client_transport::{
    ExchangeEvent, FailureCause, HeaderMirror, OutgoingRequest, RequestDelivery, TransportFailure,
    TransportFailureKind,
};
use crate::dropped_message::DroppedMessage;

/// Consecutive failures to resume a broken stream before the request fails.
const MAX_RESUME_FAILURES: u32 = 5;

/// Consecutive resumed streams without any event before the request fails. A server that makes its clients poll
/// ends streams for as long as a call runs, so the limit is high; the deadlines of the call bound the wait.
const MAX_EMPTY_STREAMS: u32 = 1000;

/// Bytes read of a body that is not JSON, for the error message.
const EXCERPT_BYTES: usize = 2048;

/// The exchange of one request over HTTP. Nothing is sent before it is first polled.
pub(in crate::client_transport) struct HttpExchange {
    stage: HttpExchangeStage,
    shared: Arc<HttpShared>,
    is_started: bool,
    /// The slot of this request in the close signal.
    close_waiter: CloseWaiter,
}

impl HttpExchange {
    pub(super) fn new(shared: Arc<HttpShared>, outgoing: OutgoingRequest) -> Self {
        let stage = HttpExchangeStage::Waiting(Box::pin(send_request(shared.clone(), outgoing)));
        Self { stage, shared, is_started: false, close_waiter: CloseWaiter::default() }
    }

    /// Polls for the next event; `None` after the last one.
    pub(in crate::client_transport) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<ExchangeEvent>> {
        if self.shared.is_closed() {
            return Poll::Ready(Some(self.closed()));
        }
        self.is_started = true;
        if let Poll::Ready(arrived) = self.poll_stage(cx) {
            return Poll::Ready(arrived);
        }
        if self.shared.close_signal.register(&mut self.close_waiter, cx.waker()) {
            return Poll::Ready(Some(self.closed()));
        }
        Poll::Pending
    }

    fn poll_stage(&mut self, cx: &mut Context<'_>) -> Poll<Option<ExchangeEvent>> {
        loop {
            if let HttpExchangeStage::Waiting(next) = &mut self.stage {
                let (arrived, stage) = ready!(next.as_mut().poll(cx));
                self.stage = stage;
                return Poll::Ready(Some(arrived));
            }
            self.stage = match std::mem::replace(&mut self.stage, HttpExchangeStage::Finished) {
                HttpExchangeStage::Streaming(reply) => HttpExchangeStage::Waiting(Box::pin(reply.next())),
                HttpExchangeStage::Waiting(_) | HttpExchangeStage::Finished => return Poll::Ready(None),
            };
        }
    }

    fn closed(&self) -> ExchangeEvent {
        let failure = if self.is_started { TransportFailure::maybe_sent } else { TransportFailure::not_sent };
        ExchangeEvent::Failed(failure(CLOSED_MESSAGE))
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        self.shared.close_signal.unregister(&mut self.close_waiter);
    }
}

/// The stage of an exchange.
enum HttpExchangeStage {
    /// Sending or reading: resolves to the next event and the next stage.
    Waiting(Pin<Box<dyn Future<Output = (ExchangeEvent, HttpExchangeStage)> + Send>>),
    Streaming(Box<StreamedResponse>),
    Finished,
}

/// Sends a request, and waits for the first event. Not an `async fn`: it would store its arguments twice, in every
/// call.
fn send_request(
    shared: Arc<HttpShared>,
    mut outgoing: OutgoingRequest,
) -> impl Future<Output = (ExchangeEvent, HttpExchangeStage)> + Send {
    let id = outgoing.id;
    async move {
        let permit = match shared.request_permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            // The semaphore is never closed.
            Err(_) => Box::pin(shared.request_permits.clone().acquire_owned()).await.ok(),
        };
        if outgoing.needs_standalone_stream()
            && let Some(listening) = shared.standalone_opened()
        {
            Box::pin(listening).await;
        }
        let mut guard = CancelGuard::new(&shared, &outgoing);
        let session = shared.session_number();
        let (answer, mut response) = match shared.send(&mut outgoing).await {
            Ok(answered) => answered,
            Err(failure) => return guard.finish(ExchangeEvent::Failed(failure)),
        };
        match answer {
            ResponseKind::Json => match read_body(&mut response.body, &shared).await {
                Ok(body) => guard.finish(read_response(&body, id, &shared)),
                Err(failure) => guard.finish(ExchangeEvent::Failed(failure)),
            },
            ResponseKind::Events => {
                let events = SseMessages::new(response.body, &shared.limits);
                let resumption = StreamResumption::default();
                let reply = StreamedResponse {
                    shared,
                    id,
                    session,
                    guard,
                    events,
                    resumption,
                    malformed_count: 0,
                    _permit: permit,
                };
                Box::new(reply).next().await
            }
            // A 5xx in reply to a probe is no evidence for either era, whatever its body is.
            ResponseKind::ErrorStatus(failure, session)
                if outgoing.is_probe() && response.status.is_server_error() =>
            {
                let beginning = Box::pin(response.body.read_prefix(EXCERPT_BYTES)).await;
                guard.finish(ExchangeEvent::Failed(with_excerpt(failure, &beginning, session)))
            }
            ResponseKind::ErrorStatus(failure, session) => {
                let kind = body_media(&response.headers);
                let reading = read_error_body(kind, &mut response.body, (failure, session), id, &shared);
                let last = Box::pin(reading).await;
                guard.finish(last)
            }
            ResponseKind::Failed(failure) => guard.finish(ExchangeEvent::Failed(failure)),
        }
    }
}

/// Reads a body within the limit of a message and the memory for all of them.
async fn read_body(body: &mut HttpResponseBody, shared: &HttpShared) -> Result<Bytes, TransportFailure> {
    let limits = &shared.limits;
    let (mut memory, mut exceeded) = (limits.message_memory.share(), None);
    let has_memory = |held| match memory.set(held) {
        Ok(()) => true,
        Err(error) => {
            exceeded = Some(error);
            false
        }
    };
    let read = body.read_all_while(limits.message_bytes, has_memory).await;
    read.map_err(|error| match exceeded {
        Some(exceeded) => {
            shared.unsolicited.count_dropped(exceeded.into());
            TransportFailure::maybe_sent(FailureCause::from_error(exceeded))
        }
        None => {
            if let HttpError::TooLong { limit } = error {
                shared.unsolicited.count_dropped(DroppedMessage::TooLong { limit });
            }
            http_failure(error)
        }
    })
}

/// Parses a JSON body as the response.
fn read_response(body: &Bytes, id: u64, shared: &HttpShared) -> ExchangeEvent {
    let response = match envelope::read_from_server(body, shared.limits.bounds) {
        Ok(MessageOrBatch::One(message)) => Ok(response_to(message, id, MissingIdPolicy::Accept)),
        Ok(MessageOrBatch::Batch(messages)) => Ok(response_in(messages, id, shared)),
        Err(unreadable) => Err(unreadable),
    };
    let (dropped, problem) = match response {
        Ok(Some(outcome)) => return ExchangeEvent::Response(outcome),
        Ok(None) => (DroppedMessage::Unmatched, "it does not answer the request".to_owned()),
        Err(unreadable) => (DroppedMessage::Unreadable, unreadable.refusal.to_string()),
    };
    shared.unsolicited.count_dropped(dropped);
    ExchangeEvent::Failed(malformed(format!("the response cannot be read: {problem}")))
}

/// Finds the response in a batch, and drops the other messages.
fn response_in(
    messages: Vec<Result<Message, MalformedMessage>>,
    id: u64,
    shared: &HttpShared,
) -> Option<RpcOutcome> {
    let mut response = None;
    for message in messages {
        let dropped = match message {
            Ok(Message::Notification(_)) => DroppedMessage::Notification,
            Ok(Message::Request(_)) => DroppedMessage::Request,
            Ok(message @ Message::Response(_)) if response.is_none() => {
                response = response_to(message, id, MissingIdPolicy::Reject);
                if response.is_some() {
                    continue;
                }
                DroppedMessage::Unmatched
            }
            Ok(Message::Response(_)) => DroppedMessage::Unmatched,
            Err(_) => DroppedMessage::Unreadable,
        };
        shared.unsolicited.count_dropped(dropped);
    }
    response
}

/// Reads the body of an error status: a JSON-RPC error with the request's id is its response.
async fn read_error_body(
    media: BodyMedia,
    body: &mut HttpResponseBody,
    (failure, session): (TransportFailure, InSession),
    id: u64,
    shared: &HttpShared,
) -> ExchangeEvent {
    if media != BodyMedia::Json {
        return ExchangeEvent::Failed(with_excerpt(failure, &body.read_prefix(EXCERPT_BYTES).await, session));
    }
    let Ok(body) = read_body(body, shared).await else {
        return ExchangeEvent::Failed(failure);
    };
    match envelope::read(body.clone(), shared.limits.bounds) {
        Ok(MessageOrBatch::One(message)) => match response_to(message, id, MissingIdPolicy::Reject) {
            Some(Err(error)) => ExchangeEvent::Response(Err(error)),
            _ => ExchangeEvent::Failed(with_excerpt(failure, &body, session)),
        },
        _ => ExchangeEvent::Failed(with_excerpt(failure, &body, session)),
    }
}

/// Whether an error without an id is accepted as the response, since only one request can be meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingIdPolicy {
    Accept,
    Reject,
}

type RpcOutcome = Result<RawResult, RawJson>;

fn response_to(message: Message, id: u64, policy: MissingIdPolicy) -> Option<RpcOutcome> {
    let Message::Response(Response { id: named, outcome }) = message else { return None };
    match named {
        Some(named) => (named == RequestId::from_number(id)).then_some(outcome),
        None => (policy == MissingIdPolicy::Accept && outcome.is_err()).then_some(outcome),
    }
}

/// A request with a streamed response.
struct StreamedResponse {
    shared: Arc<HttpShared>,
    id: u64,
    /// The number of its session.
    session: u64,
    guard: CancelGuard,
    events: SseMessages,
    resumption: StreamResumption,
    malformed_count: usize,
    _permit: Option<OwnedSemaphorePermit>,
}

impl StreamedResponse {
    async fn next(mut self: Box<Self>) -> (ExchangeEvent, HttpExchangeStage) {
        loop {
            match self.events.next(&mut self.resumption).await {
                SseItem::Message(Message::Notification(notification)) => {
                    return (ExchangeEvent::Notification(notification), HttpExchangeStage::Streaming(self));
                }
                SseItem::Message(Message::Request(request)) => {
                    if self.guard.is_stateless {
                        // Stateless requests receive input requests as their result only.
                        self.shared.unsolicited.count_dropped(DroppedMessage::Request);
                        tracing::debug!(method = %request.method, "dropped a request of the server");
                    } else if request.method == Method::Ping.as_str() {
                        self.shared.answer_ping(&request.id);
                    } else {
                        return (ExchangeEvent::Request(request.into()), HttpExchangeStage::Streaming(self));
                    }
                }
                SseItem::Message(Message::Response(Response { id: Some(id), outcome }))
                    if id == RequestId::from_number(self.id) =>
                {
                    let Self { mut guard, events, .. } = *self;
                    events.finish();
                    return guard.finish(ExchangeEvent::Response(outcome));
                }
                SseItem::Message(Message::Response(response)) => {
                    self.shared.unsolicited.count_dropped(DroppedMessage::Unmatched);
                    tracing::debug!(id = ?response.id, "dropped a response without a pending request");
                }
                // Of all responses only that to its own request is expected on the stream.
                SseItem::Malformed(unreadable, true)
                    if unreadable.id.as_ref().is_none_or(|id| *id == RequestId::from_number(self.id)) =>
                {
                    let problem = format!("the response cannot be read: {}", unreadable.refusal);
                    return self.fail(DroppedMessage::Unreadable, malformed(problem));
                }
                SseItem::Malformed(unreadable, _) => {
                    self.shared.unsolicited.count_dropped(DroppedMessage::Unreadable);
                    self.malformed_count += 1;
                    tracing::debug!(problem = %unreadable.refusal, "skipped a malformed message");
                    if self.malformed_count > self.shared.limits.malformed_messages {
                        let problem = "the server sent too many malformed messages".to_owned();
                        return self.guard.finish(ExchangeEvent::Failed(malformed(problem)));
                    }
                }
                SseItem::OutOfMemory(exceeded) => {
                    let failure = TransportFailure::maybe_sent(FailureCause::from_error(exceeded));
                    return self.fail(exceeded.into(), failure);
                }
                SseItem::Paused => self.shared.unsolicited.count_dropped(DroppedMessage::Paused),
                SseItem::TooLong(limit) => {
                    return self.fail(DroppedMessage::TooLong { limit }, too_long(limit));
                }
                SseItem::End(how) => {
                    if let Err(failure) = Box::pin(self.resume(how)).await {
                        return self.guard.finish(ExchangeEvent::Failed(failure));
                    }
                }
            }
        }
    }

    /// Ends the request because of a message that was dropped.
    fn fail(
        mut self,
        dropped: DroppedMessage,
        failure: TransportFailure,
    ) -> (ExchangeEvent, HttpExchangeStage) {
        self.shared.unsolicited.count_dropped(dropped);
        self.guard.finish(ExchangeEvent::Failed(failure))
    }

    /// Resumes the stream after the last event. The server may have received the request, so that it cannot be
    /// retried.
    async fn resume(&mut self, how: String) -> Result<(), TransportFailure> {
        let mut how = how;
        if self.resumption.record_end() > MAX_EMPTY_STREAMS {
            return Err(TransportFailure::maybe_sent(how));
        }
        loop {
            let Some(last) = self.resumption.last_event_id().filter(|_| !self.guard.is_stateless) else {
                return Err(TransportFailure::maybe_sent(how));
            };
            let last = last.clone();
            tokio::time::sleep(self.resumption.retry_delay()).await;
            match self.shared.open_stream(self.session, Some(&last)).await {
                Ok(events) => {
                    self.events = events;
                    return Ok(());
                }
                Err(StreamUnavailable::Never(failure)) => {
                    return Err(TransportFailure { delivery: RequestDelivery::MaybeSent, ..failure });
                }
                Err(StreamUnavailable::Retry(why)) => how = why,
            }
            if self.resumption.record_failure() >= MAX_RESUME_FAILURES {
                return Err(TransportFailure::maybe_sent(how));
            }
        }
    }
}

/// Sends a cancellation when a session's request is dropped before its response.
///
/// A stateless request needs none: closing its connection cancels it.
struct CancelGuard {
    shared: Arc<HttpShared>,
    id: u64,
    /// The request is stateless.
    is_stateless: bool,
    is_armed: bool,
}

impl CancelGuard {
    fn new(shared: &Arc<HttpShared>, outgoing: &OutgoingRequest) -> Self {
        let is_stateless = matches!(outgoing.mirror, HeaderMirror::Full { .. });
        let is_armed = !is_stateless && outgoing.is_cancellable();
        Self { shared: shared.clone(), id: outgoing.id, is_stateless, is_armed }
    }

    /// Disarms the guard, and ends the request with its final event.
    fn finish(&mut self, last: ExchangeEvent) -> (ExchangeEvent, HttpExchangeStage) {
        self.is_armed = false;
        (last, HttpExchangeStage::Finished)
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let cancelled = emit::notification("notifications/cancelled", |params| {
            params.open_object();
            params.plain_key("requestId");
            params.unsigned(self.id);
            params.close_object();
        });
        self.shared.post_in_background(cancelled);
    }
}

/// The failure of a request with a response beyond the limit of a message.
fn too_long(limit: usize) -> TransportFailure {
    TransportFailure { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::TooLong { limit } }
}
