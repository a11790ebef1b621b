//! The modern edge: every request is independent, and an input request ends it.
//!
//! See [Statelessness](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#statelessness).

mod call;
mod listen;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use bytes::Bytes;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::era::ValidatedRequest;
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{
    JsonWriter, Method, Params, RawJson, Refusal, Request, RequestId, Revision, emit, meta,
};
use trunkline_session::{Principal, SessionId};

pub(crate) use self::call::ModernCall;
pub(crate) use self::listen::SubscriptionStream;
use super::{EraExchange, MessageStart, RenderedResponse};
use crate::access_grant::AccessGrant;
use crate::bus::RemoteCall;
use crate::call::{CallScope, CallState, Caller, Context, IncomingCall};
use crate::caller_identity::CallerIdentity;
use crate::change::{ChangeSubscriber, SubscriptionFilter};
use crate::env::Env;
use crate::input_round::{ResumedContent, SealedContinuation, StateBinding, params_digest};
use crate::metrics::{MetricOutcome, process};
use crate::party::ClientParty;
use crate::server_core::{ServerCore, now};
use crate::shutdown::DrainPolicy;
use crate::wire_tap::ObservedClient;

/// The origin of a request, which is not part of its message.
pub(crate) struct RequestOrigin {
    pub(crate) principal: Principal,
    /// The connection, if that outlives the request.
    pub(crate) connection: Option<SessionId>,
    pub(crate) remote_address: Option<IpAddr>,
    /// The name of the transport.
    pub(crate) transport: &'static str,
    pub(crate) env: Env,
    /// What the credential of the request grants.
    pub(crate) grant: Option<Arc<AccessGrant>>,
}

impl RequestOrigin {
    fn identity(&self) -> CallerIdentity<'_> {
        CallerIdentity::new(&self.principal, self.grant.as_ref())
    }

    /// Describes the client for an observer.
    fn observed(&self, description: Option<RawJson>) -> ObservedClient {
        ObservedClient {
            principal: self.principal.clone(),
            id: self.connection,
            description,
            transport: self.transport,
            revision: Revision::NEWEST,
        }
    }
}

/// Begins a request that passed request validation.
pub(crate) fn begin(
    core: &Arc<ServerCore>,
    request: Request,
    admitted: ValidatedRequest,
    sender: RequestOrigin,
) -> MessageStart {
    let id = request.id.clone();
    let observed =
        core.attached_observer().map(|_| (request.clone(), sender.observed(admitted.client.clone())));
    let is_stream = admitted.method == Method::Listen;
    let begun = match admitted.method {
        Method::Discover => {
            Ok(MessageStart::Response(discover(core, &request.id, &admitted, sender.identity())))
        }
        Method::Listen => begin_subscription(core, &request.id, &request.params, sender),
        _ => begin_call(core, request, admitted, sender),
    };
    let begun = begun.unwrap_or_else(|refusal| MessageStart::Response(refuse(Some(&id), &refusal)));
    match (observed, &begun) {
        (Some((request, client)), MessageStart::Response(answer)) => {
            core.observe_answered(|| client, &request, &answer.message);
        }
        (Some((request, client)), _) if is_stream => core.observe_received(&client, &request),
        _ => {}
    }
    begun
}

/// Renders a refusal as a modern response.
#[cold]
pub(crate) fn refuse(id: Option<&RequestId>, refusal: &Refusal) -> RenderedResponse {
    process::count_refusal(refusal);
    let revision = Revision::NEWEST;
    RenderedResponse { message: emit::error(id, refusal, revision), status: refusal.status(revision.era()) }
}

/// Renders the result of `server/discover`.
///
/// See [Discovery, Response](https://modelcontextprotocol.io/specification/2026-07-28/server/discover#response).
fn discover(
    core: &ServerCore,
    id: &RequestId,
    admitted: &ValidatedRequest,
    caller: CallerIdentity<'_>,
) -> RenderedResponse {
    let mut members = core.describe(admitted.revision, caller);
    let mut versions = JsonWriter::with_capacity(80);
    versions.open_array();
    core.revisions.newest_first().for_each(|revision| versions.string(revision.as_str()));
    versions.close_array();
    members.set("supportedVersions", versions.into_raw());
    members.set("ttlMs", RawJson::from_value(&0).unwrap_or(RawJson::NULL));
    members.set("cacheScope", RawJson::from_text("private"));
    RenderedResponse {
        message: core.result(id, &ServerResult::Object(members), admitted.revision),
        status: 200,
    }
}

/// Begins a stream of change notifications, once the handler is ready to send them.
///
/// See [Subscriptions, Opening a Stream](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#opening-a-stream).
fn begin_subscription(
    core: &Arc<ServerCore>,
    id: &RequestId,
    params: &Params,
    sender: RequestOrigin,
) -> Result<MessageStart, Refusal> {
    let mut filter = SubscriptionStream::filter(core, params)?;
    let client = sender.observed(None);
    let principal = sender.principal;
    let party = ClientParty::new(&principal, sender.remote_address);
    // Without another connection, the stream is its own.
    let connection = sender.connection.unwrap_or_else(SessionId::random);
    let listener = ChangeSubscriber {
        principal: principal.clone(),
        session: None,
        connection: Some(connection),
        grant: sender.grant,
    };
    filter.subscriber = Some(listener.clone());
    let uris = filter.uris.clone();
    let listen = {
        let (core, id) = (core.clone(), id.clone());
        move |uris: Result<BTreeSet<String>, Refusal>| {
            let begun = uris.and_then(|uris| {
                SubscriptionStream::begin(&core, &id, SubscriptionFilter { uris, ..filter }, &party)
            });
            match begun {
                Ok(listen) => MessageStart::Subscription(Box::new(listen.observed_as(client))),
                Err(refusal) => MessageStart::Response(refuse(Some(&id), &refusal)),
            }
        }
    };
    if uris.is_empty() {
        return Ok(listen(Ok(uris)));
    }
    let mut preparing = core.handler.prepare_subscription(&listener, uris);
    // Most handlers are ready at once; then the subscription begins now, so that no change from here on is missed.
    if let Poll::Ready(uris) = preparing.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
        return Ok(listen(uris));
    }
    let prepared = async move { listen(preparing.await) };
    Ok(MessageStart::Deferred(id.clone(), Box::pin(prepared)))
}

fn begin_call(
    core: &Arc<ServerCore>,
    request: Request,
    admitted: ValidatedRequest,
    RequestOrigin { principal, connection, remote_address, transport, env, grant }: RequestOrigin,
) -> Result<MessageStart, Refusal> {
    // A connection that outlives the request is a channel.
    let policy = if connection.is_some() { DrainPolicy::Refuse } else { DrainPolicy::Serve };
    let mut in_flight = core.admit_call(ClientParty::new(&principal, remote_address), policy)?;
    let Request { id, params, .. } = request;
    let caller = Caller {
        principal: principal.clone(),
        revision: admitted.revision,
        capabilities: admitted.capabilities,
        client: admitted.client,
        request_id: Some(id.clone()),
        session: None,
        connection,
        remote_address,
        transport,
        state_id: None,
        log_level: admitted.log_level,
        progress_token: meta::progress_token(params.meta.as_ref()),
        env,
        grant,
    };
    let method = admitted.method;
    in_flight.start_timer(method, &params, admitted.revision);
    let (answers, state) = match method.may_require_input() {
        true => read_input(&params).inspect_err(|_| in_flight.record_outcome(MetricOutcome::Refused))?,
        false => (Vec::new(), None),
    };
    let call = Box::new(ModernCall::new(in_flight, id, method, principal));
    match state {
        None => Ok(MessageStart::Call(EraExchange::Modern(start(call, caller, answers, params, None)))),
        Some(state) => Ok(resume(call, &state, caller, answers, params)),
    }
}

fn start(
    mut call: Box<ModernCall>,
    caller: Caller,
    answers: KeyedResponses,
    params: Params,
    continuation: Option<Bytes>,
) -> Box<ModernCall> {
    let method = call.method();
    let scope = CallScope::Sessionless(call.core().states.clone());
    let state = CallState::new(method, params, caller, answers, scope);
    call.core().observe_call(&state, call.id());
    let context = Context::new(state);
    call.start(IncomingCall { method, continuation, context });
    call
}

/// Resumes a call that requested input in an earlier request.
///
/// See [Multi Round-Trip Requests, Basic Workflow](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#basic-workflow).
fn resume(
    mut call: Box<ModernCall>,
    state: &str,
    caller: Caller,
    answers: KeyedResponses,
    params: Params,
) -> MessageStart {
    let principal = caller.principal.clone();
    let binding = StateBinding {
        principal: principal.clone(),
        method: call.method(),
        params_digest: params_digest(&params),
    };
    let core = call.core().clone();
    let Some((round, then)) = core.sealer.open(state, &binding, now()) else {
        return MessageStart::Response(call.refuse(&Refusal::STALE_STATE));
    };
    call.set_round(round);
    let number = match then {
        SealedContinuation::Portable(bytes) => {
            return MessageStart::Call(EraExchange::Modern(start(
                call,
                caller,
                answers,
                params,
                Some(bytes),
            )));
        }
        SealedContinuation::Suspended(number, owner) => {
            let elsewhere = core.bus.clone().zip(owner).filter(|(bus, owner)| bus.process() != *owner);
            if let Some((bus, owner)) = elsewhere {
                let (id, request) = (call.id().clone(), request_text(&call, &params));
                let relayed = RemoteCall::begin(bus, call, owner, request, origin_of(caller));
                return MessageStart::Deferred(id, Box::pin(relayed));
            }
            number
        }
    };
    let id = call.id().clone();
    let resumed = Box::pin(async move {
        match core.suspended_calls.resume(number, &principal, round).await {
            Some(ResumedContent::Bytes(bytes)) => {
                MessageStart::Call(EraExchange::Modern(start(call, caller, answers, params, Some(bytes))))
            }
            Some(ResumedContent::Call(running)) => {
                running.shared().resume(caller, answers);
                core.observe_call(running.shared(), call.id());
                call.attach(running);
                MessageStart::Call(EraExchange::Modern(call))
            }
            None => MessageStart::Response(call.refuse(&Refusal::STALE_STATE)),
        }
    });
    MessageStart::Deferred(id, resumed)
}

/// Writes a request again, for the process that holds its call.
fn request_text(call: &ModernCall, params: &Params) -> String {
    let mut members = params.members.clone();
    if let Some(meta) = &params.meta {
        members.set("_meta", meta.to_raw());
    }
    emit::request(call.id(), call.method().as_str(), Some(&members.to_raw()))
}

fn origin_of(caller: Caller) -> RequestOrigin {
    let Caller { principal, connection, remote_address, transport, env, grant, .. } = caller;
    RequestOrigin { principal, connection, remote_address, transport, env, grant }
}

/// Input responses by the key of their input request.
type KeyedResponses = Vec<(String, RawJson)>;

/// Reads the input responses and the state that came with a request.
///
/// See [InputResponses](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputresponses).
fn read_input(params: &Params) -> Result<(KeyedResponses, Option<String>), Refusal> {
    let answers = match params.get("inputResponses") {
        None => Vec::new(),
        Some(raw) => {
            let members = raw.members().map_err(|_| {
                Refusal::INVALID_PARAMS.with_message("`inputResponses` must be an object of answers by key")
            })?;
            members.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
        }
    };
    let state = match params.get("requestState") {
        Some(raw) if raw.kind() != JsonKind::Null => {
            let text = raw.as_text();
            Some(
                text.ok_or_else(|| Refusal::INVALID_PARAMS.with_message("`requestState` must be a string"))?
                    .into_owned(),
            )
        }
        _ => None,
    };
    Ok((answers, state))
}
