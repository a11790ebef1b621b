//! What a server says outside of any call: changes, log messages, and questions that no call caused.
//!
//! # Invariants
//!
//! - An idle session that the server dropped is opened again while there are subscribers:
//!   `a_session_that_is_forgotten_while_nobody_calls_is_opened_again_for_whoever_watches`.
//! - A server without a standalone stream keeps its session: `a_server_that_only_has_no_stream_keeps_its_session`.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use futures_util::stream::StreamExt as _;
use tokio::time::Instant;
use trunkline_protocol::{Method, Refusal, Request};

use crate::call::{AnswerFuture, ClientCall};
use crate::client::{ClientInner, CurrentSession};
use crate::client_transport::{ServerRequest, UnsolicitedMessage, UnsolicitedReceiver};
use crate::input::InputOrigin;
use crate::mailbox::Mailbox;
use crate::subscribe::ChangeEvent;

/// Answers on their way to the server, refusals included; beyond it questions wait, and are refused where they come in.
const MAX_PENDING_ANSWERS: usize = 64;

/// Questions that are answered although the call that they were given to is over.
#[derive(Default)]
pub(crate) struct DetachedAnswers(Mailbox<Vec<BoxFuture<'static, ()>>>);

impl fmt::Debug for DetachedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedAnswers").field(&self.0.with(|waiting| waiting.len())).finish()
    }
}

impl DetachedAnswers {
    /// Takes one more, or gives it back if there are too many.
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
    /// Goes on answering a question whose call is over. Beyond a bound it is given back instead, by being dropped.
    pub(crate) fn detach_answer(
        &self,
        session: Arc<CurrentSession>,
        asked: ServerRequest,
        answer: AnswerFuture,
    ) {
        let carrier = Arc::downgrade(&self.transport);
        let answering: BoxFuture<'static, ()> = Box::pin(async move {
            let answer = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or(Err(Refusal::PANICKED));
            let (Some(carrier), Some(id)) = (carrier.upgrade(), asked.id()) else { return };
            let posted = session.edge.write_response(id, answer.as_ref());
            asked.resolve();
            // A connection that is gone needs no answers.
            let _ = carrier.post(posted).await;
        });
        // What is given back is somebody else's, and nothing of that is done under a lock.
        drop(self.detached_answers.add(answering));
    }
}

/// Listens for as long as the client lives.
///
/// It holds the client weakly: a client that nobody has any more must end although this task still listens.
pub(crate) fn listen(
    inner: &Arc<ClientInner>,
    aside: UnsolicitedReceiver,
) -> impl Future<Output = ()> + Send + use<> {
    let inner = Arc::downgrade(inner);
    let mut answering = FuturesUnordered::new();
    let mut patience = SessionCheckBackoff::default();
    async move {
        loop {
            let event = std::future::poll_fn(|cx| {
                // Questions are answered at one time, each in its own time.
                while let Poll::Ready(Some(())) = answering.poll_next_unpin(cx) {}
                if let Some(client) = inner.upgrade() {
                    if let Poll::Ready(uri) = client.changes.poll_unsubscribed(cx) {
                        return Poll::Ready(SessionEvent::Unsubscribed(uri));
                    }
                    if let Poll::Ready(answering) = client.detached_answers.poll_next(cx) {
                        return Poll::Ready(SessionEvent::DetachedAnswer(answering));
                    }
                }
                // A server that does not read what it is answered is not asked what else it wants.
                if answering.len() >= MAX_PENDING_ANSWERS {
                    return aside.poll_next_except_requests(cx).map(SessionEvent::Unsolicited);
                }
                aside.poll_next(cx).map(SessionEvent::Unsolicited)
            });
            let event = event.await;
            let Some(client) = inner.upgrade() else { return };
            match event {
                SessionEvent::DetachedAnswer(question) => answering.push(question),
                SessionEvent::Unsubscribed(uri) => answering.extend(unsubscribe(&client, &uri)),
                SessionEvent::Unsolicited(UnsolicitedMessage::Notification(notice)) => {
                    client.handle_notification(&notice);
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::Request(request)) => {
                    let has_room = answering.len() < client.plan.limits.session_requests;
                    answering.push(answer_request(&inner, &client, request, has_room));
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::Interrupted) => {
                    client.publish_change(&ChangeEvent::Missed);
                }
                SessionEvent::Unsolicited(UnsolicitedMessage::SessionLost) => {
                    answering.push(check_session(&inner, patience.next_delay(&client)));
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
    /// A question that is being answered.
    DetachedAnswer(BoxFuture<'static, ()>),
    /// A resource that nobody watches any more.
    Unsubscribed(String),
}

/// How long it is waited before a session that seems to be forgotten is looked for.
#[derive(Debug, Default)]
struct SessionCheckBackoff {
    last: Option<(Instant, Duration)>,
}

impl SessionCheckBackoff {
    /// The longest wait.
    const MAX_DELAY: Duration = Duration::from_secs(60);

    /// Doubles the wait, unless the last one was long ago: a server that forgets every session is not asked for ever.
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

/// Asks whether the session is still there, after a while; one that is not is opened again by that.
///
/// A server that only has no stream to listen to is not to lose its session because of it.
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

/// Tells the server that a resource is no longer watched.
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

/// Answers a question that no call caused.
fn answer_request(
    inner: &Weak<ClientInner>,
    client: &Arc<ClientInner>,
    request: Request,
    has_room: bool,
) -> BoxFuture<'static, ()> {
    let id = request.id.to_owned_buffer();
    let session = client.session.load_full();
    let question = session.edge.parse_request(request, &client.plan.capabilities);
    let question = if has_room { question.map_err(|(refusal, _)| refusal) } else { Err(Refusal::TOO_MANY) };
    let (input, inner) = (client.input.clone(), inner.clone());
    Box::pin(async move {
        let answer = match question {
            // A handler that panics is one question's misfortune, and not that of everything that comes after it.
            Ok(question) => AssertUnwindSafe(async { input.answer(InputOrigin::Session, question).await })
                .catch_unwind()
                .await
                .unwrap_or(Err(Refusal::PANICKED)),
            Err(refusal) => Err(refusal),
        };
        let Some(client) = inner.upgrade() else { return };
        let posted = client.transport.post(session.edge.write_response(&id, answer.as_ref()));
        drop(client);
        if let Err(loss) = posted.await {
            tracing::debug!(?loss, "an answer could not be sent");
        }
    })
}

/// Tells a session that was opened again what the one before was told.
pub(crate) async fn restore_session(inner: &Arc<ClientInner>) {
    let session = inner.session.load_full();
    let level = inner.level().filter(|_| session.info.capabilities.logging);
    let calls = level.and_then(|level| session.edge.set_level_call(level)).into_iter();
    for mut call in calls.chain(
        inner.changes.subscribed_uris().into_iter().filter_map(|uri| session.edge.subscribe_call(&uri)),
    ) {
        // A server that forgets the new session at once is not given a third.
        call.may_reopen = false;
        if let Err(error) = inner.run(&call, None).await {
            tracing::warn!(%error, method = &*call.method, "a session could not be restored whole");
        }
    }
    inner.publish_change(&ChangeEvent::Missed);
}
