//! Handles messages outside of any call: changes, log messages, and input requests that no call caused.
//!
//! # Invariants
//!
//! - An idle session that the server dropped is opened again while there are subscribers:
//!   `lost_session_is_reopened_for_subscribers_without_any_call`.
//! - A server without a standalone stream keeps its session: `missing_standalone_stream_does_not_reopen_the_session`.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use futures_util::stream::StreamExt as _;
use tokio::time::Instant;
use trunkline_protocol::{Message, Method, Refusal, Request};

use crate::call::{AnswerFuture, ClientCall};
use crate::client::{ClientInner, CurrentSession};
use crate::client_transport::{OpenRequest, ServerRequest, UnsolicitedMessage, UnsolicitedReceiver};
use crate::dropped_message::DroppedMessage;
use crate::input::InputOrigin;
use crate::polled_value::PolledValue;
use crate::subscribe::ChangeEvent;

/// Pending responses to the server, refusals included; beyond it input requests stay queued, and are refused on
/// arrival once that queue is full.
const MAX_PENDING_ANSWERS: usize = 64;

/// Answers in progress that outlive their call.
#[derive(Default)]
pub(crate) struct DetachedAnswers(PolledValue<Vec<BoxFuture<'static, ()>>>);

impl fmt::Debug for DetachedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedAnswers").field(&self.0.with(|waiting| waiting.len())).finish()
    }
}

impl DetachedAnswers {
    /// Adds an answer, or returns it if there are too many.
    fn add(&self, answering: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        self.0.update(|waiting| {
            if waiting.len() >= MAX_PENDING_ANSWERS {
                return Err(answering);
            }
            waiting.push(answering);
            Ok(())
        })
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<BoxFuture<'static, ()>> {
        self.0.poll(cx, Vec::pop)
    }
}

impl ClientInner {
    /// Continues to answer an input request after its call has ended. Beyond a limit it is dropped instead, which
    /// routes it again.
    pub(crate) fn detach_answer(
        &self,
        session: Arc<CurrentSession>,
        request: ServerRequest,
        answer: AnswerFuture,
    ) {
        let transport = Arc::downgrade(&self.transport);
        let answering: BoxFuture<'static, ()> = Box::pin(async move {
            let answer = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or(Err(Refusal::PANICKED));
            let (Some(transport), Some(id)) = (transport.upgrade(), request.id()) else { return };
            let posted = session.edge.write_response(id, answer.as_ref());
            request.resolve();
            // Best effort: the connection may be closed.
            let _ = transport.post(posted).await;
        });
        // Dropped here, outside of the lock, since the drop runs code of the handler.
        drop(self.detached_answers.add(answering));
    }
}

/// Handles messages for as long as the client exists.
///
/// The task holds the client weakly: otherwise it would keep a client alive that all its owners have dropped.
pub(crate) fn listen(
    inner: &Arc<ClientInner>,
    unsolicited: UnsolicitedReceiver,
) -> impl Future<Output = ()> + Send + use<> {
    let inner = Arc::downgrade(inner);
    let mut answering = FuturesUnordered::new();
    let mut backoff = SessionCheckBackoff::default();
    async move {
        loop {
            let event = std::future::poll_fn(|cx| {
                // Input requests are answered concurrently.
                while let Poll::Ready(Some(())) = answering.poll_next_unpin(cx) {}
                if let Some(client) = inner.upgrade() {
                    if let Poll::Ready(uri) = client.changes.poll_unsubscribed(cx) {
                        return Poll::Ready(SessionEvent::Unsubscribed(uri));
                    }
                    if let Poll::Ready(answering) = client.detached_answers.poll_next(cx) {
                        return Poll::Ready(SessionEvent::DetachedAnswer(answering));
                    }
                }
                // Backpressure: further input requests of a server that does not read the responses stay queued.
                if answering.len() >= MAX_PENDING_ANSWERS {
                    return unsolicited.poll_next_except_requests(cx).map(SessionEvent::Unsolicited);
                }
                unsolicited.poll_next(cx).map(SessionEvent::Unsolicited)
            });
            let event = event.await;
            let Some(client) = inner.upgrade() else { return };
            match event {
                SessionEvent::DetachedAnswer(answer) => answering.push(answer),
                SessionEvent::Unsubscribed(uri) => answering.extend(unsubscribe(&client, &uri)),
                SessionEvent::Unsolicited(UnsolicitedMessage::Notification(notification)) => {
                    client.observe_received(|| Message::Notification(notification.clone()));
                    client.handle_notification(&notification);
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::Request(request, open)) => {
                    client.observe_received(|| Message::Request(request.clone()));
                    let has_capacity = answering.len() < client.plan.limits.session_requests;
                    answering.push(answer_request(&inner, &client, (request, open), has_capacity));
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::Interrupted) => {
                    client.publish_change(&ChangeEvent::Missed);
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::SessionLost) => {
                    answering.push(check_session(&inner, backoff.next_delay(&client)));
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::Closed) => {
                    client.changes.close();
                    client.closed.notify_waiters();
                }
            }
        }
    }
}

enum SessionEvent {
    Unsolicited(UnsolicitedMessage),
    /// An answer in progress.
    DetachedAnswer(BoxFuture<'static, ()>),
    /// A resource without subscribers.
    Unsubscribed(String),
}

/// The backoff before a session is checked that the server seems to have lost.
#[derive(Debug, Default)]
struct SessionCheckBackoff {
    last: Option<(Instant, Duration)>,
}

impl SessionCheckBackoff {
    /// The longest delay.
    const MAX_DELAY: Duration = Duration::from_secs(60);

    /// Doubles the delay, unless the last check was long ago, so that a server that loses every session is not
    /// polled without backoff.
    fn next_delay(&mut self, client: &ClientInner) -> Duration {
        let now = Instant::now();
        let shortest = client.plan.limits.reopen_delay;
        let wait = match self.last {
            Some((when, waited)) if now - when < waited * 10 => (waited * 2).min(Self::MAX_DELAY),
            _ => shortest,
        };
        self.last = Some((now, wait));
        wait
    }
}

/// Pings the session after a delay; if the server has lost it, the ping opens it again.
///
/// A server that only lacks the standalone stream must not lose its session because of that.
fn check_session(inner: &Weak<ClientInner>, after: Duration) -> BoxFuture<'static, ()> {
    let inner = inner.clone();
    Box::pin(async move {
        tokio::time::sleep(after).await;
        let Some(client) = inner.upgrade() else { return };
        if let Err(error) = client.run(&ClientCall::with_method(Method::Ping), None).await {
            tracing::debug!(%error, "the session could not be looked for");
        }
    })
}

/// Unsubscribes from a resource at the server.
fn unsubscribe(client: &Arc<ClientInner>, uri: &str) -> Option<BoxFuture<'static, ()>> {
    let mut call = client.session.load().edge.unsubscribe_call(uri)?;
    call.may_reopen = false;
    let client = client.clone();
    Some(Box::pin(async move {
        if let Err(error) = client.run(&call, None).await {
            tracing::debug!(%error, "the server was not told that a resource is no longer watched");
        }
    }))
}

/// Answers an input request that no call caused.
fn answer_request(
    inner: &Weak<ClientInner>,
    client: &Arc<ClientInner>,
    (request, open): (Request, OpenRequest),
    has_capacity: bool,
) -> BoxFuture<'static, ()> {
    let id = request.id.to_owned_buffer();
    let session = client.session.load_full();
    let parsed =
        session.edge.parse_request(request, &client.plan.capabilities).map_err(|(refusal, _)| refusal);
    let input_request = if has_capacity { parsed } else { Err(client.refuse_too_many()) };
    let (input, inner) = (client.input.clone(), inner.clone());
    Box::pin(async move {
        let answer = match input_request {
            // A panic of the handler fails this input request only, and not the listener task.
            Ok(input_request) => {
                AssertUnwindSafe(async { input.answer(InputOrigin::Session, input_request).await })
                    .catch_unwind()
                    .await
                    .unwrap_or(Err(Refusal::PANICKED))
            }
            Err(refusal) => Err(refusal),
        };
        let Some(client) = inner.upgrade() else { return };
        let posted = session.edge.write_response(&id, answer.as_ref());
        client.observe_posted(&session, None, &posted);
        let posting = client.transport.post(posted);
        drop(client);
        if let Err(failure) = posting.await {
            tracing::debug!(?failure, "an answer could not be sent");
            if let Some(client) = inner.upgrade() {
                client.count_dropped(DroppedMessage::Answer);
            }
        }
        drop(open);
    })
}

/// Restores the log level and the subscriptions in a session that was opened again.
pub(crate) async fn restore_session(inner: &Arc<ClientInner>) {
    let session = inner.session.load_full();
    let level = inner.level().filter(|_| session.info.capabilities.logging);
    let calls = level.and_then(|level| session.edge.set_level_call(level)).into_iter();
    for mut call in calls.chain(
        inner.changes.subscribed_uris().into_iter().filter_map(|uri| session.edge.subscribe_call(&uri)),
    ) {
        // No further session is opened if the server loses this one at once.
        call.may_reopen = false;
        if let Err(error) = inner.run(&call, None).await {
            tracing::warn!(%error, method = &*call.method, "a session could not be restored whole");
        }
    }
    inner.publish_change(&ChangeEvent::Missed);
}
