//! The modern edge: every request stands alone, and a question ends it.

mod call;
mod listen;

use std::sync::Arc;

use trunkline_protocol::codec::Reply;
use trunkline_protocol::era::{Admitted, SUPPORTED};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Id, Method, Params, Raw, Refusal, Request, Writer, emit, meta};
use trunkline_session::Principal;

pub(crate) use self::call::ModernCall;
pub(crate) use self::listen::Listen;
use super::Answer;
use crate::call::{Call, Caller, Context, Shared};
use crate::core::{Core, now};
use crate::round::{Binding, Reclaimed, Then, digest};

/// How a modern request begins.
pub(crate) enum Begun {
    /// It is answered already.
    Answer(Answer),
    /// It runs.
    Call(Box<ModernCall>),
    /// It is a standing stream of changes.
    Listen(Box<Listen>),
}

/// Begins a request that passed the ladder.
pub(crate) async fn begin(core: &Arc<Core>, request: Request, admitted: Admitted, principal: Principal) -> Begun {
    let id = request.id.clone();
    match try_begin(core, request, admitted, principal).await {
        Ok(begun) => begun,
        Err(refusal) => Begun::Answer(refuse(Some(&id), &refusal)),
    }
}

/// Renders a refusal as a modern answer.
pub(crate) fn refuse(id: Option<&Id>, refusal: &Refusal) -> Answer {
    let revision = trunkline_protocol::Revision::NEWEST;
    Answer { message: emit::error(id, refusal, revision), status: refusal.status(revision.era()) }
}

async fn try_begin(
    core: &Arc<Core>,
    request: Request,
    admitted: Admitted,
    principal: Principal,
) -> Result<Begun, Refusal> {
    match admitted.method {
        Method::Discover => Ok(Begun::Answer(discover(core, &request.id, &admitted))),
        Method::Listen => Listen::begin(core, request.id, &request.params).map(|l| Begun::Listen(Box::new(l))),
        _ => begin_call(core, request, admitted, principal).await.map(|call| Begun::Call(Box::new(call))),
    }
}

fn discover(core: &Core, id: &Id, admitted: &Admitted) -> Answer {
    let mut members = core.describe(admitted.revision);
    let mut versions = Writer::with_capacity(80);
    versions.open_array();
    SUPPORTED.iter().for_each(|revision| versions.string(revision.as_str()));
    versions.close_array();
    members.set("supportedVersions", versions.into_raw());
    members.set("ttlMs", Raw::from_value(&0).unwrap_or(Raw::NULL));
    members.set("cacheScope", Raw::from_text("private"));
    Answer { message: core.result(id, &Reply::Object(members), admitted.revision), status: 200 }
}

async fn begin_call(
    core: &Arc<Core>,
    request: Request,
    admitted: Admitted,
    principal: Principal,
) -> Result<ModernCall, Refusal> {
    let in_flight = core.admit_call()?;
    let Request { id, params, .. } = request;
    let caller = Caller {
        principal: principal.clone(),
        revision: admitted.revision,
        capabilities: admitted.claim.capabilities,
        client: admitted.claim.client,
        session: None,
        log_level: admitted.log_level,
        progress_token: meta::progress_token(params.meta.as_ref()),
    };
    let method = admitted.method;
    let (answers, state) = if method.may_ask() { input(&params)? } else { (Vec::new(), None) };
    let mut call = ModernCall::new(core.clone(), in_flight, id, method, principal);
    match state {
        None => {
            let shared = Arc::new(Shared::new(method, caller, answers));
            let context = Context::new(shared);
            call.start(Call { method, params, continuation: None, context });
        }
        Some(state) => resume(core, &mut call, &state, caller, answers, params).await?,
    }
    Ok(call)
}

/// Goes on with a call that asked something in an earlier request.
async fn resume(
    core: &Arc<Core>,
    call: &mut ModernCall,
    state: &str,
    caller: Caller,
    answers: Vec<(String, Raw)>,
    params: Params,
) -> Result<(), Refusal> {
    let principal = caller.principal.clone();
    let binding = Binding { principal: principal.clone(), method: call.method(), digest: digest(&params) };
    let (round, then) = core.sealer.open(state, &binding, now()).ok_or(Refusal::STALE_STATE)?;
    call.set_round(round);
    let bytes = match then {
        Then::Portable(bytes) => bytes,
        Then::Parked(number) => {
            match core.lot.reclaim(number, &principal, round).await.ok_or(Refusal::STALE_STATE)? {
                Reclaimed::Bytes(bytes) => bytes,
                Reclaimed::Call(running) => {
                    running.shared().resume(caller, answers);
                    call.carry(running, params);
                    return Ok(());
                }
            }
        }
    };
    let context = Context::new(Arc::new(Shared::new(call.method(), caller, answers)));
    call.start(Call { method: call.method(), params, continuation: Some(bytes), context });
    Ok(())
}

/// Reads the answers and the state that came with a request.
fn input(params: &Params) -> Result<(Vec<(String, Raw)>, Option<String>), Refusal> {
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
            Some(text.ok_or_else(|| Refusal::INVALID_PARAMS.because("`requestState` must be a string"))?.into_owned())
        }
        _ => None,
    };
    Ok((answers, state))
}
