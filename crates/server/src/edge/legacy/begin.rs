use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_protocol::codec::Reply;
use trunkline_protocol::envelope::Malformed;
use trunkline_protocol::{Level, Message, Method, Notification, Raw, Refusal, Request, era, meta, shorten};

use super::super::Answer;
use super::call::LegacyCall;
use super::exchange::LegacyExchange;
use super::live::LiveSession;
use super::refuse;
use crate::call::{Call, Context, Outcome, Running, Shared, Surroundings};
use crate::change::Filter;
use crate::core::Core;
use crate::env::Env;

const ID_IN_USE: &str = "a request with this id is still running";

/// How a legacy message begins.
pub(crate) enum Begun {
    /// It was a notification or a response, and wants no answer.
    Accepted,
    /// It is answered already.
    Answer(Answer),
    /// It runs.
    Exchange(LegacyExchange),
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
    if !session.revision().has_batches() || messages.iter().any(is_modern) {
        let refusal = Refusal::INVALID_REQUEST.because("batches are part of revision 2025-03-26 only");
        return Begun::Answer(refuse(None, &refusal, session.revision()));
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
    Begun::Exchange(LegacyExchange::Batch { calls, answers })
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
        Refusal::INVALID_REQUEST.because(ID_IN_USE)
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
            session.watch(&*core.handler).update(|filter| {
                filter.uris.remove(&uri);
            });
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
    if session.has_call(&request.id) {
        return Err(Refusal::INVALID_REQUEST.because(ID_IN_USE));
    }
    let mut in_flight = core.admit_call()?;
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
    let told = core.handler.prepare_watch(BTreeSet::from([uri.clone()])).await;
    if !told.contains(&uri) {
        let problem = format!("nobody tells of changes of this resource: {}", shorten(&uri));
        return Err(Refusal::INVALID_PARAMS.because(problem));
    }
    let mut full = false;
    session.watch(&*core.handler).update(|filter| {
        if filter.uris.insert(uri.clone()) && filter.is_too_large() {
            filter.uris.remove(&uri);
            full = true;
        }
    });
    match full {
        true => Err(Refusal::INVALID_PARAMS.because("the session watches too many resources")),
        false => Ok(Outcome::Done(Reply::Empty)),
    }
}

fn notified(session: &LiveSession, note: &Notification) {
    match &*note.method {
        "notifications/cancelled" => {
            if let Some(id) = era::cancelled_request(note) {
                session.cancel(&id);
            }
        }
        "notifications/initialized" | "notifications/roots/list_changed" => session.keep().roots.refresh(),
        _ => {}
    }
}
