use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::envelope::MalformedMessage;
use trunkline_protocol::{
    LoggingLevel, Message, Method, Notification, RawJson, Refusal, Request, era, meta, shorten,
};

use super::super::exchange::batch_response;
use super::super::{EraExchange, MessageStart, RenderedResponse, id_in_use};
use super::call::LegacyCall;
use super::live::LiveSession;
use super::refuse;
use crate::access_grant::AccessGrant;
use crate::call::{CallScope, CallState, Context, ExecutingCall, HandlerOutcome, IncomingCall};
use crate::change::{ChangeSubscriber, SubscriptionFilter};
use crate::env::Env;
use crate::server_core::ServerCore;
use crate::shutdown::DrainPolicy;

/// The transport of a message, as far as its calls depend on it.
pub(crate) struct TransportCapabilities {
    /// Whether it can carry the server's own requests too.
    pub(crate) server_requests: bool,
    /// What becomes of its calls while the server drains.
    pub(crate) while_draining: DrainPolicy,
    /// The variables that came with the message itself; without any, those of the session apply.
    pub(crate) env: Env,
    /// What the credential of the message grants.
    pub(crate) grant: Option<Arc<AccessGrant>>,
}

/// Begins one message of a session.
pub(crate) fn begin(
    core: &Arc<ServerCore>,
    session: &Arc<LiveSession>,
    message: Message,
    transport: &TransportCapabilities,
) -> MessageStart {
    match start(core, session, message, transport) {
        Ok(call) => MessageStart::Call(EraExchange::Legacy(call)),
        Err(Some(answer)) => MessageStart::Response(answer),
        Err(None) => MessageStart::Accepted,
    }
}

/// Begins the messages of a batch, which only 2025-03-26 has.
///
/// See [Batching](https://modelcontextprotocol.io/specification/2025-03-26/basic/index#batching).
pub(crate) fn begin_batch(
    core: &Arc<ServerCore>,
    session: &Arc<LiveSession>,
    messages: Vec<Result<Message, MalformedMessage>>,
    transport: &TransportCapabilities,
) -> MessageStart {
    if !accepts_batch(session, &messages) {
        return MessageStart::Response(refuse(None, &batch_not_allowed(), session.revision()));
    }
    let (mut calls, mut answers) = (Vec::new(), Vec::new());
    for message in messages {
        let started = match message.map(|message| check_batched(session, &calls, message)) {
            Ok(Ok(message)) => start(core, session, message, transport),
            Ok(Err(answer)) => Err(Some(answer)),
            Err(MalformedMessage { refusal, id }) => {
                Err(Some(refuse(id.as_ref(), &refusal, session.revision())))
            }
        };
        match started {
            Ok(call) => calls.push(*call),
            Err(answer) => answers.extend(answer.map(|answer| answer.message)),
        }
    }
    if calls.is_empty() && answers.is_empty() {
        return MessageStart::Accepted;
    }
    MessageStart::Call(EraExchange::batch(calls, answers))
}

/// Refuses every request of a batch that cannot even begin.
pub(crate) fn refuse_batch(
    session: &LiveSession,
    messages: &[Result<Message, MalformedMessage>],
    refusal: &Refusal,
) -> RenderedResponse {
    let revision = session.revision();
    if !accepts_batch(session, messages) {
        return refuse(None, &batch_not_allowed(), revision);
    }
    let refused = messages.iter().filter_map(|message| match message {
        Ok(Message::Request(request)) => Some(refuse(Some(&request.id), refusal, revision).message),
        Ok(_) => None,
        Err(MalformedMessage { refusal, id }) => Some(refuse(id.as_ref(), refusal, revision).message),
    });
    batch_response(&refused.collect::<Vec<_>>())
}

/// Refuses a batch where it is not allowed.
pub(crate) fn batch_not_allowed() -> Refusal {
    Refusal::INVALID_REQUEST.with_message("batches are part of revision 2025-03-26 only")
}

fn accepts_batch(session: &LiveSession, messages: &[Result<Message, MalformedMessage>]) -> bool {
    session.revision().has_batches() && !messages.iter().any(is_modern)
}

fn is_modern(message: &Result<Message, MalformedMessage>) -> bool {
    matches!(message, Ok(Message::Request(request)) if meta::has_modern_meta(request.params.meta.as_ref()))
}

/// Refuses what is not allowed in a batch: the handshake, and an id that another of its requests has.
fn check_batched(
    session: &LiveSession,
    calls: &[LegacyCall],
    message: Message,
) -> Result<Message, RenderedResponse> {
    let Message::Request(request) = message else { return Ok(message) };
    let refusal = if request.method == Method::Initialize.as_str() {
        Refusal::INVALID_REQUEST.with_message("this request may not be part of a batch")
    } else if calls.iter().any(|call| *call.id() == request.id) {
        id_in_use()
    } else {
        return Ok(Message::Request(request));
    };
    Err(refuse(Some(&request.id), &refusal, session.revision()))
}

/// Starts the call of a message; of a message without a call, returns the response, if it gets one.
fn start(
    core: &Arc<ServerCore>,
    session: &Arc<LiveSession>,
    message: Message,
    transport: &TransportCapabilities,
) -> Result<Box<LegacyCall>, Option<RenderedResponse>> {
    if !matches!(message, Message::Request(_)) {
        core.observe_session_message(session, &message);
    }
    let request = match message {
        Message::Request(request) => request,
        Message::Notification(note) => {
            handle_notification(session, &note);
            return Err(None);
        }
        Message::Response(response) => {
            session.deliver_response(response);
            return Err(None);
        }
    };
    let revision = session.revision();
    let Some(method) = Method::parse(&request.method, revision) else {
        return Err(Some(refuse(Some(&request.id), &era::unknown_method(&request.method), revision)));
    };
    let id = request.id.clone();
    let observed = core.attached_observer().map(|_| request.clone());
    let started = match answer_session_request(core, session, &request, method) {
        Ok(Some(reply)) => {
            let message = core.result(&id, &reply, revision);
            core.observe_answered(|| session.observed(), &request, &message);
            return Err(Some(RenderedResponse { message, status: 200 }));
        }
        Ok(None) => begin_call(core, session, request, method, transport),
        Err(refusal) => Err(refusal),
    };
    started.map_err(|refusal| {
        let answer = refuse(Some(&id), &refusal, revision);
        if let Some(request) = observed {
            core.observe_answered(|| session.observed(), &request, &answer.message);
        }
        Some(answer)
    })
}

/// Answers requests about the session itself; `None` for requests to the handler.
///
/// See [Ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping) and
/// [Setting Log Level](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging#setting-log-level).
fn answer_session_request(
    core: &ServerCore,
    session: &LiveSession,
    request: &Request,
    method: Method,
) -> Result<Option<ServerResult>, Refusal> {
    match method {
        Method::Ping => {}
        _ if core.require_initialized && !session.is_initialized() => {
            return Err(Refusal::INVALID_REQUEST.with_message("send `notifications/initialized` first"));
        }
        Method::Initialize => {
            return Err(
                Refusal::INVALID_REQUEST.with_message("the session is already initialized; open another one")
            );
        }
        Method::SetLevel => {
            let level = LoggingLevel::parse(&request.params.text("level")?);
            session.set_level(
                level.ok_or_else(|| Refusal::INVALID_PARAMS.with_message("`level` is not a log level"))?,
            );
        }
        Method::ResourcesUnsubscribe => {
            let uri = watched_uri(core, request)?;
            session.unwatch_resource(core, &uri);
        }
        _ => return Ok(None),
    }
    Ok(Some(ServerResult::Empty))
}

fn begin_call(
    core: &Arc<ServerCore>,
    session: &Arc<LiveSession>,
    request: Request,
    method: Method,
    transport: &TransportCapabilities,
) -> Result<Box<LegacyCall>, Refusal> {
    if !session.announce_call(&request.id) {
        return Err(id_in_use());
    }
    let mut in_flight = core.admit_call(session.party().clone(), transport.while_draining)?;
    in_flight.start_timer(method, &request.params, session.revision());
    let mut caller = session.caller(&request.id, meta::progress_token(request.params.meta.as_ref()));
    if !transport.env.is_empty() {
        caller.env = transport.env.clone();
    }
    caller.grant.clone_from(&transport.grant);
    if !transport.server_requests {
        // A transport that carries only responses cannot carry input requests, so none are supported for this call.
        caller.capabilities = RawJson::EMPTY_OBJECT;
    }
    let scope = CallScope::Session(session.state().clone());
    let watched = match method {
        Method::ResourcesSubscribe => Some(watched_uri(core, &request)?),
        _ => None,
    };
    let shared = CallState::new(method, request.params, caller, Vec::new(), scope);
    core.observe_call(&shared, &request.id);
    let running = match watched {
        Some(uri) => ExecutingCall::from_future(
            shared,
            Box::pin(subscribe(core.clone(), session.clone(), uri, transport.grant.clone())),
        ),
        None => {
            let call = IncomingCall { method, continuation: None, context: Context::new(shared) };
            ExecutingCall::start(&*core.handler, call)
        }
    };
    Ok(LegacyCall::start(session.clone(), in_flight, request.id, method, running))
}

/// Returns the resource of a `resources/subscribe` or `resources/unsubscribe` request.
fn watched_uri(core: &ServerCore, request: &Request) -> Result<String, Refusal> {
    if core.handler.capabilities().resources.is_none() {
        return Err(era::unknown_method(&request.method));
    }
    let uri = request.params.text("uri")?;
    match uri.len() <= SubscriptionFilter::MAX_URI_BYTES {
        true => Ok(uri.to_string()),
        false => Err(Refusal::INVALID_PARAMS.with_message("`uri` is longer than any that can be watched")),
    }
}

/// Subscribes a session to a resource, once the handler is ready to notify of it.
///
/// See [Resources, Subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
async fn subscribe(
    core: Arc<ServerCore>,
    session: Arc<LiveSession>,
    uri: String,
    grant: Option<Arc<AccessGrant>>,
) -> Result<HandlerOutcome, Refusal> {
    let subscriber = ChangeSubscriber { grant, ..session.subscriber() };
    let accepted = core.handler.prepare_subscription(&subscriber, BTreeSet::from([uri.clone()])).await?;
    if !accepted.contains(&uri) {
        let problem = format!("this resource cannot be subscribed to: {}", shorten(&uri));
        return Err(Refusal::INVALID_PARAMS.with_message(problem));
    }
    session.subscription(&*core.handler).set_grant(subscriber.grant.as_ref());
    session.watch_resource(&core, &uri).await?;
    Ok(HandlerOutcome::Done(ServerResult::Empty))
}

fn handle_notification(session: &LiveSession, note: &Notification) {
    match &*note.method {
        "notifications/cancelled" => {
            if let Some(id) = era::cancelled_request(note) {
                session.cancel_call(&id);
            }
        }
        "notifications/initialized" => {
            session.mark_initialized();
            session.state().roots.refresh();
        }
        "notifications/roots/list_changed" => session.state().roots.refresh(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context as TaskContext, Poll, Waker};

    use serde_json::{Value, json};
    use trunkline_protocol::Revision;
    use trunkline_protocol::envelope::{self, MessageLimits, MessageOrBatch};

    use super::*;
    use crate::edge::CallEvent;
    use crate::server::Server;
    use crate::testing;
    use crate::tool::Tool;

    fn message(value: &Value) -> Message {
        match envelope::read(value.to_string().into(), MessageLimits::default()) {
            Ok(MessageOrBatch::One(message)) => message,
            _ => panic!("not one message: {value}"),
        }
    }

    /// Begins a call before any begun call is polled, as another thread may.
    fn begin_tool(core: &Arc<ServerCore>, session: &Arc<LiveSession>, tool: &str) -> EraExchange {
        let params = json!({ "name": tool });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        match begin(
            core,
            session,
            message(&call),
            &TransportCapabilities {
                server_requests: true,
                while_draining: DrainPolicy::Refuse,
                env: Env::NONE,
                grant: None,
            },
        ) {
            MessageStart::Call(exchange) => exchange,
            MessageStart::Response(answer) => panic!("answered with {}", answer.message),
            _ => panic!("not a call"),
        }
    }

    fn answer(polled: Poll<CallEvent>) -> Option<Value> {
        match polled {
            Poll::Ready(CallEvent::Response(answer)) => Some(serde_json::from_str(&answer.message).unwrap()),
            Poll::Pending => None,
            Poll::Ready(_) => panic!("neither an answer nor a wait"),
        }
    }

    #[test]
    fn only_one_of_two_concurrent_requests_with_the_same_id_continues() {
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
    fn cancellation_applies_during_the_first_poll_but_not_before_the_call() {
        let endless = Tool::new("endless").run(async || std::future::pending::<()>().await);
        let core = testing::core(&Server::new("s").with(endless));
        let session = testing::session(&core, Revision::NEWEST_LEGACY);
        let mut cx = TaskContext::from_waker(Waker::noop());
        let id = trunkline_protocol::RequestId::from_number(7);
        // Meant for an earlier call with this id that is over.
        session.cancel_call(&id);
        let mut call = begin_tool(&core, &session, "endless");
        assert!(call.poll_event(&mut cx).is_pending());
        drop(call);
        let mut call = begin_tool(&core, &session, "endless");
        // As from another thread, before the call has waited for anything and is registered.
        session.cancel_call(&id);
        assert!(call.poll_event(&mut cx).is_pending(), "its first step is over before it is looked at again");
        assert!(matches!(call.poll_event(&mut cx), Poll::Ready(CallEvent::NoResponse)));
        drop(call);
        assert!(!session.is_busy());
        assert_eq!(core.calls(), 0);
    }
}
