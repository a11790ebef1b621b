use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::Either;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use tracing::Instrument as _;
use trunkline_protocol::envelope::{self, Incoming, Malformed};
use trunkline_protocol::era::{self, Mirrored, Route};
use trunkline_protocol::{Id, Message, Refusal};
use trunkline_session::Principal;

use super::arrival::{Arrival, RequestHead, Responder};
use super::auth::Challenge;
use super::body::{self, ResponseBody, exact};
use super::carry::{Wakes, first_event};
use super::cors;
use super::guard::{self, Foreign};
use super::heads::Heads;
use super::options::HttpOptions;
use super::refused::{refused, spoken_by, unauthorized};
use super::sse_pair::SseStreams;
use super::taken::Taken;
use super::trail;
use super::websocket::Sockets;
use crate::call::BoxFuture;
use crate::core::Core;
use crate::edge::Answer;
use crate::edge::legacy::{Carriage, Sessions};
use crate::env::Env;
use crate::metrics::process::Present;
use crate::tally::Tally;
use crate::unanswered::Reserved;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An MCP endpoint as an HTTP service: both eras on one path.
///
/// It is a [`Responder`] for our own listener, and a [`tower_service::Service`] for those of others; with the feature `hyper` it
/// is a service of hyper's too. Clones share everything.
#[derive(Clone)]
pub struct HttpService {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) sessions: Sessions,
    pub(super) sse: SseStreams,
    pub(super) sockets: Sockets,
    warned: guard::Warned,
    pub(super) options: HttpOptions,
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl HttpService {
    pub(crate) fn new(core: Arc<Core>, options: HttpOptions) -> Self {
        let limits = options.session_limits.clone();
        // A standing channel is a session, whichever revision is spoken on it.
        let tally = Tally::new(limits.total, limits.per_principal);
        let sessions = Sessions::new(core.clone(), options.session_store(), options.event_store(), limits);
        let (sse, sockets) = (SseStreams::new(tally.clone()), Sockets::new(tally));
        Self {
            inner: Arc::new(Inner {
                core,
                sessions,
                sse,
                sockets,
                warned: guard::Warned::default(),
                options,
            }),
        }
    }

    /// Returns how many legacy sessions this node serves.
    pub fn sessions(&self) -> usize {
        self.inner.sessions.count()
    }

    /// Returns how many channels stand: streams of HTTP+SSE, and WebSockets.
    pub fn channels(&self) -> usize {
        self.inner.sse.count() + self.inner.sockets.count()
    }

    /// Ends legacy sessions whose time is over. Whoever serves the endpoint by other means than ours calls this now and
    /// then; sessions that are over are refused in any case.
    pub async fn sweep(&self) {
        self.inner.sessions.sweep().await;
    }

    /// Returns the answer to a request whose `Host` or `Origin` is not allowed, and `None` for any other.
    ///
    /// The endpoint checks its own requests; this is for a service that adds paths beside it.
    pub fn refuse_foreign(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        let HttpOptions { hosts, origins, .. } = &self.inner.options;
        let heads = Heads::of_map(&parts.headers);
        let foreign = guard::check(&heads, parts.uri.authority(), hosts, origins).err()?;
        Some(refused(&self.inner.warned.refuse(foreign), None, spoken_by(&heads)))
    }

    /// Returns the answer to a request that is foreign, as above, or that has no credential which is accepted.
    pub fn refuse_stranger(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        self.refuse_foreign(parts).or_else(|| {
            let challenge = self.inner.principal(|| parts).err()?;
            Some(unauthorized(&challenge, spoken_by(&Heads::of_map(&parts.headers))))
        })
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let (parts, body) = request.into_parts();
        self.inner.serve(parts.into(), body, Wakes::Nobody).await
    }
}

/// Why a request is not taken for a message to the endpoint.
enum Aside {
    /// It is something else, or for another path.
    Other,
    Foreign(Foreign),
    Unauthorized(Challenge),
}

impl Inner {
    /// Answers one request, within its span. The future is large, and putting it into a span moves it: only those who read the
    /// log pay for that.
    fn serve<B>(
        self: &Arc<Self>,
        head: RequestHead,
        body: B,
        wakes: Wakes,
    ) -> impl Future<Output = Response<ResponseBody>> + Send
    where
        B: Body<Data = Bytes> + Send,
    {
        let span = trail::span(head.method());
        if span.is_disabled() {
            return Either::Left(self.answer(head, body, wakes));
        }
        Either::Right(Box::pin(async move {
            let response = self.answer(head, body, wakes).instrument(span.clone()).await;
            trail::answered(&span, &response);
            response
        }))
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async function keeps its arguments twice, and these are large"
    )]
    fn answer<B>(
        self: &Arc<Self>,
        head: RequestHead,
        body: B,
        wakes: Wakes,
    ) -> impl Future<Output = Response<ResponseBody>> + Send
    where
        B: Body<Data = Bytes> + Send,
    {
        async move {
            let heads = head.heads();
            let mut response = match self.let_in(&head, &heads) {
                Ok(principal) => {
                    let mut taken = match self.check_post(&head, &heads) {
                        Ok(env) => match body::read(body, &self.core).await {
                            Ok((bytes, reserved)) => {
                                self.take(&head, &heads, bytes, &principal, env, reserved)
                            }
                            Err(refusal) => Taken::Refused(refusal, None),
                        },
                        Err(refusal) => Taken::Refused(refusal, None),
                    };
                    loop {
                        match taken {
                            Taken::Answered(response) => break response,
                            Taken::Refused(refusal, id) => {
                                break refused(&refusal, id.as_ref(), self.spoken(&heads, &principal));
                            }
                            Taken::Later(future) => taken = future.await,
                            Taken::Call(mut call) => {
                                let accepts = heads.accepts();
                                let stream_after = self.core.limits.stream_after;
                                let first = first_event(&mut call, accepts.stream, stream_after, wakes).await;
                                break self.begin_response(call, first, accepts);
                            }
                        }
                    }
                }
                // Boxed, or every call would have room for it in its own future, which is moved before it runs.
                Err(Aside::Other) => Box::pin(self.beside(&head, &heads, body)).await,
                Err(Aside::Foreign(foreign)) => {
                    refused(&self.warned.refuse(foreign), None, spoken_by(&heads))
                }
                Err(Aside::Unauthorized(challenge)) => unauthorized(&challenge, spoken_by(&heads)),
            };
            if !matches!(heads.origin, Mirrored::Absent) {
                cors::grant(head.parts(), &mut response);
            }
            response
        }
    }

    /// Checks who a request is for and from; of a message to the endpoint, returns whose it is.
    fn let_in(&self, head: &RequestHead, heads: &Heads<'_>) -> Result<Principal, Aside> {
        let (hosts, origins) = (&self.options.hosts, &self.options.origins);
        guard::check(heads, head.authority(), hosts, origins).map_err(Aside::Foreign)?;
        if *head.method() != Method::POST || head.path() != self.options.path {
            return Err(Aside::Other);
        }
        self.principal(|| head.parts()).map_err(Aside::Unauthorized)
    }

    /// Returns whom a request belongs to, and looks at it only if that makes a difference.
    pub(super) fn principal<'a>(&self, request: impl FnOnce() -> &'a Parts) -> Result<Principal, Challenge> {
        let authenticator = &self.options.authenticator;
        authenticator.everybody().map_or_else(|| authenticator.authenticate(request()), Ok)
    }

    /// Checks what the head of a message says of its body and of the answer, and returns the variables that it brings.
    fn check_post(&self, head: &RequestHead, heads: &Heads<'_>) -> Result<Env, Refusal> {
        heads.check_body()?;
        if heads.accepts().nothing() {
            return Err(Refusal::NOT_ACCEPTABLE);
        }
        self.env(head)
    }

    /// Takes what was posted.
    fn take<'a>(
        self: &'a Arc<Self>,
        head: &'a RequestHead,
        heads: &Heads<'_>,
        bytes: Bytes,
        principal: &'a Principal,
        env: Env,
        reserved: Option<Reserved>,
    ) -> Taken<'a> {
        let message = match envelope::read(bytes, self.core.limits.bounds) {
            Ok(Incoming::One(message)) => message,
            Ok(batch) => {
                if matches!(heads.session, Mirrored::Absent) {
                    let problem = "batches are part of revision 2025-03-26 only";
                    return Taken::Refused(Refusal::INVALID_REQUEST.because(problem), None);
                }
                let carriage = Carriage { may_ask: heads.accepts().stream, env };
                return self.legacy(heads, batch, principal, carriage, reserved);
            }
            Err(Malformed { refusal, id }) => return Taken::Refused(refusal, id),
        };
        let version = if let Mirrored::Once(version) = heads.version { Some(version) } else { None };
        let has_session = !matches!(heads.session, Mirrored::Absent);
        let route = era::route_http(&message, version, has_session);
        trail::routed(&message, &route);
        match (route, message) {
            (Route::Modern, Message::Request(request)) => {
                self.modern(head, heads, request, principal.clone(), env, reserved)
            }
            (Route::Session, message) => {
                let carriage = Carriage { may_ask: heads.accepts().stream, env };
                self.legacy(heads, Incoming::One(message), principal, carriage, reserved)
            }
            (Route::Initialize, Message::Request(request)) => {
                let accepts = heads.accepts();
                Taken::Later(Box::pin(async move {
                    let opened = self.legacy_initialize(&request, accepts, principal.clone(), env).await;
                    opened.map_or_else(|(refusal, id)| Taken::Refused(refusal, id), Taken::Answered)
                }))
            }
            (Route::Refuse(refusal), message) => Taken::Refused(refusal, id_of(&message).cloned()),
            _ => Taken::Answered(accepted()),
        }
    }
}

/// A response, or a refusal with the id of the request that it answers.
pub(super) type Answered = Result<Response<ResponseBody>, (Refusal, Option<Id>)>;

/// Returns the id of a message that is a request.
pub(super) fn id_of(message: &Message) -> Option<&Id> {
    match message {
        Message::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Makes the response to a message that wants no answer.
pub(super) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Makes the response to a message that is answered elsewhere.
pub(super) fn accepted_with(text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// Makes a response of one message, in the form that the client takes.
pub(super) fn respond(answer: Answer, as_stream: bool) -> Response<ResponseBody> {
    let (kind, body) = if as_stream {
        let mut out = Vec::with_capacity(answer.message.len() + 32);
        super::stream::write_message(&mut out, None, &answer.message);
        (EVENT_STREAM, ResponseBody::whole(exact(out)))
    } else {
        (JSON, ResponseBody::whole(exact(answer.message.into_bytes())))
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Takes a message that is answered already.
pub(super) fn answered<'a>(answer: Answer, as_stream: bool) -> Taken<'a> {
    Taken::Answered(respond(answer, as_stream))
}

/// Makes a response that is a stream without an event.
pub(super) fn respond_nothing() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response
}

/// Makes a response that is a stream of events.
pub(super) fn streamed(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::stream(body, Present::stream()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

impl Responder for HttpService {
    type Body = ResponseBody;

    /// Answers a request as [`handle`](Self::handle) does. A call that takes its time needs no timer here: the connection sees
    /// to it that it is polled when its response has to begin. In a task of its own nobody would, and `handle` is for that.
    fn respond(&self, request: Arrival) -> impl Future<Output = Response<ResponseBody>> + Send {
        // Taken apart before there is a future, which would else have room for it twice.
        let Arrival { head, body } = request;
        self.inner.serve(head, body, Wakes::Connection)
    }
}

#[cfg(feature = "hyper")]
impl<B> hyper::service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}
