//! The modern edge: every request stands alone, and a question ends it.

mod call;
mod listen;

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use bytes::Bytes;
use trunkline_protocol::codec::Reply;
use trunkline_protocol::era::Admitted;
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Id, Method, Params, Raw, Refusal, Request, Revision, Writer, emit, meta};
use trunkline_session::{Principal, SessionId};

pub(crate) use self::call::ModernCall;
pub(crate) use self::listen::Listen;
use super::Answer;
use crate::call::{BoxFuture, Call, Caller, Context, Shared, Surroundings};
use crate::change::{Filter, Listener};
use crate::core::{Core, now};
use crate::env::Env;
use crate::metrics::{Ended, process};
use crate::round::{Binding, Reclaimed, Then, digest};
use crate::unanswered::Reserved;

/// How a modern request begins.
pub(crate) enum Begun {
    /// It is answered already.
    Answer(Answer),
    /// It runs.
    Call(Box<ModernCall>),
    /// It begins once somebody else is ready: a parked call that has to be handed over, or whoever tells of changes.
    Resume(Id, BoxFuture<'static, Begun>),
    /// It is a standing stream of changes.
    Listen(Box<Listen>),
}

impl Begun {
    /// Keeps the room of a large request for as long as what it began may hold any of it.
    pub(crate) fn keep(self, reserved: Reserved) -> Self {
        match self {
            Self::Call(call) => {
                call.keep(reserved);
                Self::Call(call)
            }
            Self::Resume(id, future) => {
                Self::Resume(id, Box::pin(async move { future.await.keep(reserved) }))
            }
            Self::Answer(_) | Self::Listen(_) => self,
        }
    }
}

/// Where a request came from, which it does not say itself.
pub(crate) struct Sender {
    pub(crate) principal: Principal,
    /// The connection, if that lasts for longer than the request.
    pub(crate) connection: Option<SessionId>,
    pub(crate) env: Env,
}

/// Begins a request that passed the ladder.
pub(crate) fn begin(core: &Arc<Core>, request: Request, admitted: Admitted, sender: Sender) -> Begun {
    let id = request.id.clone();
    let begun = match admitted.method {
        Method::Discover => Ok(Begun::Answer(discover(core, &request.id, &admitted))),
        Method::Listen => begin_listen(core, &request.id, &request.params, sender),
        _ => begin_call(core, request, admitted, sender),
    };
    begun.unwrap_or_else(|refusal| Begun::Answer(refuse(Some(&id), &refusal)))
}

/// Renders a refusal as a modern answer.
#[cold]
pub(crate) fn refuse(id: Option<&Id>, refusal: &Refusal) -> Answer {
    process::refused(refusal);
    let revision = Revision::NEWEST;
    Answer { message: emit::error(id, refusal, revision), status: refusal.status(revision.era()) }
}

fn discover(core: &Core, id: &Id, admitted: &Admitted) -> Answer {
    let mut members = core.describe(admitted.revision);
    let mut versions = Writer::with_capacity(80);
    versions.open_array();
    core.revisions.newest_first().for_each(|revision| versions.string(revision.as_str()));
    versions.close_array();
    members.set("supportedVersions", versions.into_raw());
    members.set("ttlMs", Raw::from_value(&0).unwrap_or(Raw::NULL));
    members.set("cacheScope", Raw::from_text("private"));
    Answer { message: core.result(id, &Reply::Object(members), admitted.revision), status: 200 }
}

/// Begins a stream of changes, once the handler is ready to tell of them.
fn begin_listen(core: &Arc<Core>, id: &Id, params: &Params, sender: Sender) -> Result<Begun, Refusal> {
    let mut filter = Listen::filter(core, params)?;
    let principal = sender.principal;
    // A stream is its own connection where there is no other.
    let connection = sender.connection.unwrap_or_else(SessionId::random);
    let listener = Listener { principal: principal.clone(), session: None, connection: Some(connection) };
    filter.listener = Some(listener.clone());
    let listen = {
        let (core, id) = (core.clone(), id.clone());
        move |filter| match Listen::begin(&core, &id, filter, &principal) {
            Ok(listen) => Begun::Listen(Box::new(listen)),
            Err(refusal) => Begun::Answer(refuse(Some(&id), &refusal)),
        }
    };
    if filter.uris.is_empty() {
        return Ok(listen(filter));
    }
    let mut preparing = core.handler.prepare_watch(&listener, filter.uris.clone());
    // Most handlers need not wait for anybody, and then nothing that changes from here on may be missed.
    if let Poll::Ready(uris) = preparing.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
        return Ok(listen(Filter { uris, ..filter }));
    }
    let prepared = async move { listen(Filter { uris: preparing.await, ..filter }) };
    Ok(Begun::Resume(id.clone(), Box::pin(prepared)))
}

fn begin_call(
    core: &Arc<Core>,
    request: Request,
    admitted: Admitted,
    Sender { principal, connection, env }: Sender,
) -> Result<Begun, Refusal> {
    let mut in_flight = core.admit_call(&principal)?;
    let Request { id, params, .. } = request;
    let caller = Caller {
        principal: principal.clone(),
        revision: admitted.revision,
        capabilities: admitted.capabilities,
        client: admitted.client,
        request_id: Some(id.clone()),
        session: None,
        connection,
        bag: None,
        log_level: admitted.log_level,
        progress_token: meta::progress_token(params.meta.as_ref()),
        env,
    };
    let method = admitted.method;
    in_flight.time(method, &params, admitted.revision);
    let (answers, state) = match method.may_ask() {
        true => input(&params).inspect_err(|_| in_flight.end(Ended::Refused))?,
        false => (Vec::new(), None),
    };
    let call = Box::new(ModernCall::new(in_flight, id, method, principal));
    match state {
        None => Ok(Begun::Call(start(call, caller, answers, params, None))),
        Some(state) => Ok(resume(call, &state, caller, answers, params)),
    }
}

fn start(
    mut call: Box<ModernCall>,
    caller: Caller,
    answers: Answers,
    params: Params,
    continuation: Option<Bytes>,
) -> Box<ModernCall> {
    let method = call.method();
    let surroundings = Surroundings::Alone(call.core().states.clone());
    let context = Context::new(Shared::new(method, params, caller, answers, surroundings));
    call.start(Call { method, continuation, context });
    call
}

/// Goes on with a call that asked something in an earlier request.
fn resume(mut call: Box<ModernCall>, state: &str, caller: Caller, answers: Answers, params: Params) -> Begun {
    let principal = caller.principal.clone();
    let binding = Binding { principal: principal.clone(), method: call.method(), digest: digest(&params) };
    let core = call.core().clone();
    let Some((round, then)) = core.sealer.open(state, &binding, now()) else {
        return Begun::Answer(call.refuse(&Refusal::STALE_STATE));
    };
    call.set_round(round);
    let number = match then {
        Then::Portable(bytes) => {
            return Begun::Call(start(call, caller, answers, params, Some(bytes)));
        }
        Then::Parked(number) => number,
    };
    let id = call.id().clone();
    let resumed = Box::pin(async move {
        match core.lot.reclaim(number, &principal, round).await {
            Some(Reclaimed::Bytes(bytes)) => Begun::Call(start(call, caller, answers, params, Some(bytes))),
            Some(Reclaimed::Call(running)) => {
                running.shared().resume(caller, answers);
                call.carry(running);
                Begun::Call(call)
            }
            None => Begun::Answer(call.refuse(&Refusal::STALE_STATE)),
        }
    });
    Begun::Resume(id, resumed)
}

/// Answers by the key of their question.
type Answers = Vec<(String, Raw)>;

/// Reads the answers and the state that came with a request.
fn input(params: &Params) -> Result<(Answers, Option<String>), Refusal> {
    let answers = match params.get("inputResponses") {
        None => Vec::new(),
        Some(raw) => {
            let members = raw.members().map_err(|_| {
                Refusal::INVALID_PARAMS.because("`inputResponses` must be an object of answers by key")
            })?;
            members.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
        }
    };
    let state = match params.get("requestState") {
        Some(raw) if raw.kind() != JsonKind::Null => {
            let text = raw.as_text();
            Some(
                text.ok_or_else(|| Refusal::INVALID_PARAMS.because("`requestState` must be a string"))?
                    .into_owned(),
            )
        }
        _ => None,
    };
    Ok((answers, state))
}
