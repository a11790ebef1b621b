//! What a server says outside of any call: changes, log messages, and questions that no call caused.

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

use crate::call::{AnswerFuture, Call};
use crate::carrier::{AsideEvent, AsideReceiver, Asked};
use crate::client::{Inner, Session};
use crate::input::Origin;
use crate::mailbox::Mailbox;
use crate::subscribe::Change;

/// Answers on their way to the server, refusals included; beyond it questions wait, and are refused where they come in.
const MOST_ANSWERS: usize = 64;

/// Questions that are answered although the call that they were given to is over.
#[derive(Default)]
pub(crate) struct Adopted(Mailbox<Vec<BoxFuture<'static, ()>>>);

impl fmt::Debug for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adopted").field(&self.0.look(|waiting| waiting.len())).finish()
    }
}

impl Adopted {
    /// Takes one more, or gives it back if there are too many.
    fn add(&self, answering: BoxFuture<'static, ()>) -> Result<(), BoxFuture<'static, ()>> {
        self.0.change(|waiting| {
            if waiting.len() >= MOST_ANSWERS {
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

impl Inner {
    /// Goes on answering a question whose call is over. Beyond a bound it is given back instead, by being dropped.
    pub(crate) fn adopt(&self, session: Arc<Session>, asked: Asked, answer: AnswerFuture) {
        let carrier = Arc::downgrade(&self.carrier);
        let answering: BoxFuture<'static, ()> = Box::pin(async move {
            let answer = AssertUnwindSafe(answer).catch_unwind().await.unwrap_or(Err(Refusal::PANICKED));
            let (Some(carrier), Some(id)) = (carrier.upgrade(), asked.id()) else { return };
            let posted = session.edge.answer(id, answer.as_ref());
            asked.settle();
            // A connection that is gone needs no answers.
            let _ = carrier.post(posted).await;
        });
        // What is given back is somebody else's, and nothing of that is done under a lock.
        drop(self.adopted.add(answering));
    }
}

/// Listens for as long as the client lives.
///
/// It holds the client weakly: a client that nobody has any more must end although this task still listens.
pub(crate) fn listen(inner: &Arc<Inner>, aside: AsideReceiver) -> impl Future<Output = ()> + Send + use<> {
    let inner = Arc::downgrade(inner);
    let mut answering = FuturesUnordered::new();
    let mut patience = Patience::default();
    async move {
        loop {
            let event = std::future::poll_fn(|cx| {
                // Questions are answered at one time, each in its own time.
                while let Poll::Ready(Some(())) = answering.poll_next_unpin(cx) {}
                if let Some(client) = inner.upgrade() {
                    if let Poll::Ready(uri) = client.changes.poll_abandoned(cx) {
                        return Poll::Ready(Event::Abandoned(uri));
                    }
                    if let Poll::Ready(answering) = client.adopted.poll_next(cx) {
                        return Poll::Ready(Event::Adopted(answering));
                    }
                }
                // A server that does not read what it is answered is not asked what else it wants.
                if answering.len() >= MOST_ANSWERS {
                    return aside.poll_next_but_questions(cx).map(Event::Aside);
                }
                aside.poll_next(cx).map(Event::Aside)
            });
            let event = event.await;
            let Some(client) = inner.upgrade() else { return };
            match event {
                Event::Adopted(question) => answering.push(question),
                Event::Abandoned(uri) => answering.extend(unwatch(&client, &uri)),
                Event::Aside(AsideEvent::Notice(notice)) => client.notice(&notice),
                Event::Aside(AsideEvent::Question(request)) => {
                    let has_room = answering.len() < client.plan.limits.session_questions;
                    answering.push(answer(&inner, &client, request, has_room));
                }
                Event::Aside(AsideEvent::Interrupted) => client.changed(&Change::Missed),
                Event::Aside(AsideEvent::Forgotten) => {
                    answering.push(look_for_session(&inner, patience.next(&client)));
                }
                Event::Aside(AsideEvent::Closed) => {
                    client.changes.close();
                    client.over.notify_waiters();
                }
            }
        }
    }
}

enum Event {
    Aside(AsideEvent),
    /// A question that is being answered.
    Adopted(BoxFuture<'static, ()>),
    /// A resource that nobody watches any more.
    Abandoned(String),
}

/// How long it is waited before a session that seems to be forgotten is looked for.
#[derive(Debug, Default)]
struct Patience {
    last: Option<(Instant, Duration)>,
}

impl Patience {
    /// The longest wait.
    const LONGEST: Duration = Duration::from_secs(60);

    /// Doubles the wait, unless the last one was long ago: a server that forgets every session is not asked for ever.
    fn next(&mut self, client: &Inner) -> Duration {
        let now = Instant::now();
        let shortest = client.plan.limits.reopen_after;
        let wait = match self.last {
            Some((when, waited)) if now - when < waited * 10 => (waited * 2).min(Self::LONGEST),
            _ => shortest,
        };
        self.last = Some((now, wait));
        wait
    }
}

/// Asks whether the session is still there, after a while; one that is not is opened again by that.
///
/// A server that only has no stream to listen to is not to lose its session because of it.
fn look_for_session(inner: &Weak<Inner>, after: Duration) -> BoxFuture<'static, ()> {
    let inner = inner.clone();
    Box::pin(async move {
        tokio::time::sleep(after).await;
        let Some(client) = inner.upgrade() else { return };
        if let Err(error) = client.run(&Call::of(Method::Ping), None).await {
            tracing::debug!(%error, "the session could not be looked for");
        }
    })
}

/// Tells the server that a resource is no longer watched.
fn unwatch(client: &Arc<Inner>, uri: &str) -> Option<BoxFuture<'static, ()>> {
    let mut call = client.session.load().edge.unwatch(uri)?;
    call.may_reopen = false;
    let client = client.clone();
    Some(Box::pin(async move {
        if let Err(error) = client.run(&call, None).await {
            tracing::debug!(%error, "the server was not told that a resource is no longer watched");
        }
    }))
}

/// Answers a question that no call caused.
fn answer(
    inner: &Weak<Inner>,
    client: &Arc<Inner>,
    request: Request,
    has_room: bool,
) -> BoxFuture<'static, ()> {
    let id = request.id.detached();
    let session = client.session.load_full();
    let question = session.edge.question(request, &client.plan.capabilities);
    let question = if has_room { question.map_err(|(refusal, _)| refusal) } else { Err(Refusal::TOO_MANY) };
    let (input, inner) = (client.input.clone(), inner.clone());
    Box::pin(async move {
        let answer = match question {
            // A handler that panics is one question's misfortune, and not that of everything that comes after it.
            Ok(question) => AssertUnwindSafe(async { input.answer(Origin::Session, question).await })
                .catch_unwind()
                .await
                .unwrap_or(Err(Refusal::PANICKED)),
            Err(refusal) => Err(refusal),
        };
        let Some(client) = inner.upgrade() else { return };
        let posted = client.carrier.post(session.edge.answer(&id, answer.as_ref()));
        drop(client);
        if let Err(loss) = posted.await {
            tracing::debug!(?loss, "an answer could not be sent");
        }
    })
}

/// Tells a session that was opened again what the one before was told.
pub(crate) async fn restore(inner: &Arc<Inner>) {
    let session = inner.session.load_full();
    let level = inner.level().filter(|_| session.info.capabilities.logging);
    let calls = level.and_then(|level| session.edge.set_level(level)).into_iter();
    for mut call in
        calls.chain(inner.changes.watched().into_iter().filter_map(|uri| session.edge.watch(&uri)))
    {
        // A server that forgets the new session at once is not given a third.
        call.may_reopen = false;
        if let Err(error) = inner.run(&call, None).await {
            tracing::warn!(%error, method = &*call.method, "a session could not be restored whole");
        }
    }
    inner.changed(&Change::Missed);
}
