use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_protocol::codec::Reply;
use trunkline_protocol::envelope::Malformed;
use trunkline_protocol::{Level, Message, Method, Notification, Raw, Refusal, Request, era, meta, shorten};

use super::super::{Answer, id_in_use};
use super::call::LegacyCall;
use super::exchange::{LegacyExchange, together};
use super::live::LiveSession;
use super::refuse;
use crate::call::{Call, Context, Outcome, Running, Shared, Surroundings};
use crate::change::Filter;
use crate::core::Core;
use crate::env::Env;
use crate::unanswered::Reserved;

/// How a legacy message begins.
pub(crate) enum Begun {
    /// It was a notification or a response, and wants no answer.
    Accepted,
    /// It is answered already.
    Answer(Answer),
    /// It runs.
    Exchange(LegacyExchange),
}

impl Begun {
    /// Keeps the room of a large message for as long as what it began may hold any of it.
    pub(crate) fn keep(mut self, reserved: Option<Reserved>) -> Self {
        if let (Self::Exchange(exchange), Some(reserved)) = (&mut self, reserved) {
            exchange.keep(reserved);
        }
        self
    }
}

/// What carries a message, as far as its calls need to know.
pub(crate) struct Carriage {
    /// Whether it can carry the server's own requests too.
    pub(crate) may_ask: bool,
    /// The variables that came with the message itself; without any, those of the session count.
    pub(crate) env: Env,
}

/// Begins one message of a session.
pub(crate) fn begin(
    core: &Arc<Core>,
    session: &Arc<LiveSession>,
    message: Message,
    carriage: &Carriage,
) -> Begun {
    match start(core, session, message, carriage) {
        Started::Nothing => Begun::Accepted,
        Started::Answer(answer) => Begun::Answer(answer),
        Started::Call(call) => Begun::Exchange(LegacyExchange::Single(call)),
    }
}

/// Begins the messages of a batch, which only 2025-03-26 has.
pub(crate) fn begin_batch(
    core: &Arc<Core>,
    session: &Arc<LiveSession>,
    messages: Vec<Result<Message, Malformed>>,
    carriage: &Carriage,
) -> Begun {
    if !takes_batch(session, &messages) {
        return Begun::Answer(refuse(None, &no_batches(), session.revision()));
    }
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    for message in messages {
        let started = match message.map(|message| check_batched(session, &calls, message)) {
            Ok(Ok(message)) => start(core, session, message, carriage),
            Ok(Err(answer)) => Started::Answer(answer),
            Err(Malformed { refusal, id }) => {
                Started::Answer(refuse(id.as_ref(), &refusal, session.revision()))
            }
        };
        match started {
            Started::Nothing => {}
            Started::Answer(answer) => answers.push(answer.message),
            Started::Call(call) => calls.push(*call),
        }
    }
    if calls.is_empty() && answers.is_empty() {
        return Begun::Accepted;
    }
    Begun::Exchange(LegacyExchange::Batch { calls, answers, _reserved: None })
}

/// Refuses every request of a batch that cannot even begin.
pub(crate) fn refuse_batch(
    session: &LiveSession,
    messages: &[Result<Message, Malformed>],
    refusal: &Refusal,
) -> Answer {
    let revision = session.revision();
    if !takes_batch(session, messages) {
        return refuse(None, &no_batches(), revision);
    }
    let refused = messages.iter().filter_map(|message| match message {
        Ok(Message::Request(request)) => Some(refuse(Some(&request.id), refusal, revision).message),
        Ok(_) => None,
        Err(Malformed { refusal, id }) => Some(refuse(id.as_ref(), refusal, revision).message),
    });
    together(&refused.collect::<Vec<_>>())
}

/// Says that a batch may not stand where it does.
pub(crate) fn no_batches() -> Refusal {
    Refusal::INVALID_REQUEST.because("batches are part of revision 2025-03-26 only")
}

fn takes_batch(session: &LiveSession, messages: &[Result<Message, Malformed>]) -> bool {
    session.revision().has_batches() && !messages.iter().any(is_modern)
}

fn is_modern(message: &Result<Message, Malformed>) -> bool {
    matches!(message, Ok(Message::Request(request)) if meta::claims_modern(request.params.meta.as_ref()))
}

/// Refuses what may not stand in a batch: the handshake, and an id that another of its requests has.
fn check_batched(session: &LiveSession, calls: &[LegacyCall], message: Message) -> Result<Message, Answer> {
    let Message::Request(request) = message else { return Ok(message) };
    let refusal = if request.method == Method::Initialize.as_str() {
        Refusal::INVALID_REQUEST.because("this request may not be part of a batch")
    } else if calls.iter().any(|call| *call.id() == request.id) {
        id_in_use()
    } else {
        return Ok(Message::Request(request));
    };
    Err(refuse(Some(&request.id), &refusal, session.revision()))
}

enum Started {
    Nothing,
    Answer(Answer),
    Call(Box<LegacyCall>),
}

fn start(core: &Arc<Core>, session: &Arc<LiveSession>, message: Message, carriage: &Carriage) -> Started {
    let request = match message {
        Message::Request(request) => request,
        Message::Notification(note) => {
            notified(session, &note);
            return Started::Nothing;
        }
        Message::Response(response) => {
            session.answer(response);
            return Started::Nothing;
        }
    };
    let revision = session.revision();
    let Some(method) = Method::parse(&request.method, revision) else {
        return Started::Answer(refuse(Some(&request.id), &era::unknown_method(&request.method), revision));
    };
    let id = request.id.clone();
    let started = match at_the_edge(core, session, &request, method) {
        Ok(Some(reply)) => {
            let message = core.result(&id, &reply, revision);
            Ok(Started::Answer(Answer { message, status: 200 }))
        }
        Ok(None) => begin_call(core, session, request, method, carriage).map(Started::Call),
        Err(refusal) => Err(refusal),
    };
    started.unwrap_or_else(|refusal| Started::Answer(refuse(Some(&id), &refusal, revision)))
}

/// Answers what belongs to the session itself; `None` for what the handler answers.
fn at_the_edge(
    core: &Core,
    session: &LiveSession,
    request: &Request,
    method: Method,
) -> Result<Option<Reply>, Refusal> {
    match method {
        Method::Ping => {}
        _ if core.strict && !session.is_confirmed() => {
            return Err(Refusal::INVALID_REQUEST.because("send `notifications/initialized` first"));
        }
        Method::Initialize => {
            return Err(
                Refusal::INVALID_REQUEST.because("the session is already initialized; open another one")
            );
        }
        Method::SetLevel => {
            let level = Level::parse(&request.params.text("level")?);
            session.set_level(
                level.ok_or_else(|| Refusal::INVALID_PARAMS.because("`level` is not a log level"))?,
            );
        }
        Method::ResourcesUnsubscribe => {
            let uri = watched_uri(core, request)?;
            session.watch(&*core.handler).watch_no_longer(&uri);
        }
        _ => return Ok(None),
    }
    Ok(Some(Reply::Empty))
}

fn begin_call(
    core: &Arc<Core>,
    session: &Arc<LiveSession>,
    request: Request,
    method: Method,
    carriage: &Carriage,
) -> Result<Box<LegacyCall>, Refusal> {
    if !session.announce(&request.id) {
        return Err(id_in_use());
    }
    let mut in_flight = core.admit_call(session.principal())?;
    in_flight.time(method, &request.params, session.revision());
    let mut caller = session.caller(&request.id, meta::progress_token(request.params.meta.as_ref()));
    if !carriage.env.is_empty() {
        caller.env = carriage.env.clone();
    }
    if !carriage.may_ask {
        // A caller that can only be answered has, for this call, nothing to be asked with.
        caller.capabilities = Raw::EMPTY_OBJECT;
    }
    let surroundings = Surroundings::Session(session.keep().clone());
    let watched = match method {
        Method::ResourcesSubscribe => Some(watched_uri(core, &request)?),
        _ => None,
    };
    let shared = Shared::new(method, request.params, caller, Vec::new(), surroundings);
    let running = match watched {
        Some(uri) => Running::from_future(shared, Box::pin(subscribe(core.clone(), session.clone(), uri))),
        None => {
            let call = Call { method, continuation: None, context: Context::new(shared) };
            Running::start(&*core.handler, call)
        }
    };
    Ok(LegacyCall::start(session.clone(), in_flight, request.id, method, running))
}

/// Returns the resource that a request to watch, or to watch no longer, is about.
fn watched_uri(core: &Core, request: &Request) -> Result<String, Refusal> {
    if core.handler.capabilities().resources.is_none() {
        return Err(era::unknown_method(&request.method));
    }
    let uri = request.params.text("uri")?;
    match uri.len() <= Filter::MOST_URI_BYTES {
        true => Ok(uri.to_string()),
        false => Err(Refusal::INVALID_PARAMS.because("`uri` is longer than any that can be watched")),
    }
}

/// Begins to watch a resource for a session, once the handler is ready to tell of it.
async fn subscribe(core: Arc<Core>, session: Arc<LiveSession>, uri: String) -> Result<Outcome, Refusal> {
    let told = core.handler.prepare_watch(&session.listener(), BTreeSet::from([uri.clone()])).await;
    if !told.contains(&uri) {
        let problem = format!("nobody tells of changes of this resource: {}", shorten(&uri));
        return Err(Refusal::INVALID_PARAMS.because(problem));
    }
    session.watch(&*core.handler).watch_too(&uri, &core.watched)?;
    Ok(Outcome::Done(Reply::Empty))
}

fn notified(session: &LiveSession, note: &Notification) {
    match &*note.method {
        "notifications/cancelled" => {
            if let Some(id) = era::cancelled_request(note) {
                session.cancel(&id);
            }
        }
        "notifications/initialized" => {
            session.confirm();
            session.keep().roots.refresh();
        }
        "notifications/roots/list_changed" => session.keep().roots.refresh(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context as TaskContext, Poll, Waker};

    use serde_json::{Value, json};
    use trunkline_protocol::Revision;
    use trunkline_protocol::envelope::{self, Bounds, Incoming};

    use super::*;
    use crate::edge::Event;
    use crate::server::Server;
    use crate::testing;
    use crate::tool::Tool;

    fn message(value: &Value) -> Message {
        match envelope::read(value.to_string().into(), Bounds::default()) {
            Ok(Incoming::One(message)) => message,
            _ => panic!("not one message: {value}"),
        }
    }

    /// Begins a call before anything that was begun is polled, as another thread may.
    fn begin_tool(core: &Arc<Core>, session: &Arc<LiveSession>, tool: &str) -> LegacyExchange {
        let params = json!({ "name": tool });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        match begin(core, session, message(&call), &Carriage { may_ask: true, env: Env::NONE }) {
            Begun::Exchange(exchange) => exchange,
            Begun::Answer(answer) => panic!("answered with {}", answer.message),
            Begun::Accepted => panic!("accepted"),
        }
    }

    fn answer(polled: Poll<Event>) -> Option<Value> {
        match polled {
            Poll::Ready(Event::Answer(answer)) => Some(serde_json::from_str(&answer.message).unwrap()),
            Poll::Pending => None,
            Poll::Ready(_) => panic!("neither an answer nor a wait"),
        }
    }

    #[test]
    fn of_two_requests_with_one_id_that_come_at_once_only_one_goes_on() {
        let gone_on = Arc::new(AtomicUsize::new(0));
        let counted = gone_on.clone();
        let wait = Tool::new("wait").run(move || {
            let gone_on = counted.clone();
            async move {
                std::future::poll_fn(|_| match gone_on.fetch_add(1, Ordering::SeqCst) {
                    0 | 1 => Poll::Pending,
                    _ => Poll::Ready(()),
                })
                .await;
                "waited"
            }
        });
        let core =
            testing::core(&Server::new("s").with(wait).with(Tool::new("quick").run(async || "at once")));
        let session = testing::session(&core, Revision::NEWEST_LEGACY);
        let mut cx = TaskContext::from_waker(Waker::noop());
        let [mut first, mut second] = [(); 2].map(|()| begin_tool(&core, &session, "wait"));
        let mut quick = begin_tool(&core, &session, "quick");
        assert!(answer(second.poll_event(&mut cx)).is_none(), "the one that comes first has the id");
        let refused = answer(first.poll_event(&mut cx)).expect("the other ends");
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
        drop(first);
        let text = |answer: Value| answer["result"]["content"][0]["text"].as_str().map(str::to_owned);
        assert_eq!(answer(quick.poll_event(&mut cx)).and_then(text).as_deref(), Some("at once"));
        drop(quick);
        assert!(session.is_busy(), "the one that goes on is still known");
        assert_eq!(answer(second.poll_event(&mut cx)).and_then(text).as_deref(), Some("waited"));
        drop(second);
        assert!(!session.is_busy());
        assert_eq!(core.calls(), 0);
    }

    #[test]
    fn a_cancellation_during_the_first_step_of_a_call_counts_and_an_earlier_one_does_not() {
        let endless = Tool::new("endless").run(async || std::future::pending::<()>().await);
        let core = testing::core(&Server::new("s").with(endless));
        let session = testing::session(&core, Revision::NEWEST_LEGACY);
        let mut cx = TaskContext::from_waker(Waker::noop());
        let id = trunkline_protocol::Id::from_number(7);
        // Meant for another call that had this id, and is over.
        session.cancel(&id);
        let mut call = begin_tool(&core, &session, "endless");
        assert!(call.poll_event(&mut cx).is_pending());
        drop(call);
        let mut call = begin_tool(&core, &session, "endless");
        // As from another thread, before the call has waited for anything and is known.
        session.cancel(&id);
        assert!(call.poll_event(&mut cx).is_pending(), "its first step is over before it is looked at again");
        assert!(matches!(call.poll_event(&mut cx), Poll::Ready(Event::Nothing)));
        drop(call);
        assert!(!session.is_busy());
        assert_eq!(core.calls(), 0);
    }
}
