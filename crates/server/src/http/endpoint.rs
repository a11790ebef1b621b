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
use trunkline_http1::server::{IncomingRequest, RequestHead, Service};
use trunkline_protocol::era::HeaderOccurrence;
use trunkline_protocol::{Message, RawJson, Refusal, RequestId};

use super::allow_list::{self, DisallowedHeader};
use super::auth::{AuthRefusal, Authenticated, AuthenticationResult};
use super::body::{self, McpResponseBody, shrink_to_bytes};
use super::call_exchange::TimerOwner;
use super::cors;
use super::legacy_sse::SseStreams;
use super::mcp_headers::McpHeaders;
use super::open_channels::OpenChannels;
use super::options::HttpServerOptions;
use super::post_message::PostMessage;
use super::refusal_response::{header_revision, refusal_response};
use super::request_tracing;
use super::websocket::WebSocketTasks;
use crate::call::BoxFuture;
use crate::edge::RenderedResponse;
use crate::edge::legacy::LegacySessions;
use crate::metrics::process::GaugeGuard;
use crate::server_core::ServerCore;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An MCP endpoint as an HTTP service: both eras on one path.
///
/// It is a [`Service`] for our own listener, and a [`tower_service::Service`] for other servers; with the feature
/// `hyper` it is also a hyper service. Clones share everything.
#[derive(Clone)]
pub struct HttpService {
    pub(super) inner: Arc<HttpServiceInner>,
}

pub(super) struct HttpServiceInner {
    pub(super) core: Arc<ServerCore>,
    pub(super) sessions: Arc<LegacySessions>,
    pub(super) sse_streams: SseStreams,
    pub(super) web_sockets: WebSocketTasks,
    header_warnings: allow_list::HeaderWarnings,
    pub(super) options: HttpServerOptions,
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl HttpService {
    pub(crate) fn new(core: Arc<ServerCore>, options: HttpServerOptions) -> Self {
        let limits = options.session_limits.clone();
        // A long-lived channel counts as a session, whichever revision it uses.
        let channels = OpenChannels::new(limits.per_principal, limits.total);
        let store = options.session_store();
        if let Some(metrics) = &core.metrics {
            metrics.attach_store(&store);
        }
        let sessions = Arc::new(LegacySessions::new(core.clone(), store, options.event_store(), limits));
        if let Some(bus) = &core.bus {
            bus.attach(&core, &sessions);
        }
        let (sse, sockets) = (SseStreams::new(channels.clone()), WebSocketTasks::new(channels));
        Self {
            inner: Arc::new(HttpServiceInner {
                core,
                sessions,
                sse_streams: sse,
                web_sockets: sockets,
                header_warnings: allow_list::HeaderWarnings::default(),
                options,
            }),
        }
    }

    /// Returns how many legacy sessions this node serves.
    pub fn sessions(&self) -> usize {
        self.inner.sessions.count()
    }

    /// Returns how many channels are open: streams of HTTP+SSE, and WebSockets.
    pub fn channels(&self) -> usize {
        self.inner.sse_streams.count() + self.inner.web_sockets.count()
    }

    /// Ends expired legacy sessions. A program that serves the endpoint with its own listener calls this from time to
    /// time; requests of expired sessions are refused in any case.
    pub async fn sweep(&self) {
        self.inner.sessions.sweep().await;
    }

    /// Returns the response to a request with a `Host` or `Origin` that is not allowed, and `None` for any other.
    ///
    /// The endpoint checks its own requests; this is for a service that adds other paths.
    pub fn refuse_disallowed_origin(&self, parts: &Parts) -> Option<Response<McpResponseBody>> {
        let HttpServerOptions { hosts, origins, .. } = &self.inner.options;
        let headers = McpHeaders::from_map(&parts.headers);
        let header = allow_list::check(&headers, parts.uri.authority(), hosts, origins).err()?;
        Some(refusal_response(&self.inner.header_warnings.refuse(header), None, header_revision(&headers)))
    }

    /// Returns the response to a request with a disallowed origin, as above, or without an accepted credential.
    pub async fn refuse_unauthorized(&self, parts: &Parts) -> Option<Response<McpResponseBody>> {
        if let Some(refused) = self.refuse_disallowed_origin(parts) {
            return Some(refused);
        }
        let refusal = self.inner.authenticate(|| parts).wait().await.err()?;
        Some(self.inner.auth_response(refusal))
    }

    /// Authenticates a request that another page of the same program got, by the endpoint's own rules.
    ///
    /// # Errors
    /// The request has no accepted credential.
    pub async fn authenticate(&self, parts: &Parts) -> Result<Authenticated, AuthRefusal> {
        self.inner.authenticate(|| parts).wait().await
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<McpResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let (parts, body) = request.into_parts();
        self.inner.serve(parts.into(), body, TimerOwner::Call).await
    }
}

/// Why a request is not a message to the endpoint.
enum PostRejection<'a> {
    /// It has another method or path.
    Other,
    /// It is for a document that pages of every origin may read.
    Public(BoxFuture<'a, Response<McpResponseBody>>),
    Disallowed(DisallowedHeader),
    Unauthorized(AuthRefusal),
}

impl HttpServiceInner {
    /// Answers one request, within its span. The future is large, and instrumenting it moves it: that cost occurs
    /// only where the span is enabled.
    fn serve<B>(
        self: &Arc<Self>,
        head: RequestHead,
        body: B,
        wakes: TimerOwner,
    ) -> impl Future<Output = Response<McpResponseBody>> + Send
    where
        B: Body<Data = Bytes> + Send,
    {
        let span = request_tracing::request_span(head.method());
        if span.is_disabled() {
            return Either::Left(self.answer(head, body, wakes));
        }
        Either::Right(Box::pin(async move {
            let response = self.answer(head, body, wakes).instrument(span.clone()).await;
            request_tracing::log_response(&span, &response);
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
        wakes: TimerOwner,
    ) -> impl Future<Output = Response<McpResponseBody>> + Send
    where
        B: Body<Data = Bytes> + Send,
    {
        async move {
            let headers = McpHeaders::of(&head);
            let authorized = match self.authorize(&head, &headers) {
                Ok(AuthenticationResult::Ready(result)) => result.map_err(PostRejection::Unauthorized),
                Ok(AuthenticationResult::Pending(future)) => {
                    future.await.map_err(PostRejection::Unauthorized)
                }
                Err(rejection) => Err(rejection),
            };
            let mut response = match authorized {
                Ok(sender) => {
                    let post = PostMessage { head: &head, headers: &headers, sender: &sender, timer: wakes };
                    let started = match post.check_headers(self) {
                        Ok(env) => match body::read_body(body, &self.core, &post.party()).await {
                            Ok((bytes, reserved)) => self.handle_post(post, bytes, env, reserved),
                            Err(refusal) => self.refuse_post(post, &refusal, None),
                        },
                        Err(refusal) => self.refuse_post(post, &refusal, None),
                    };
                    let mut response = match started {
                        Ok(call) => self.respond_call(post, call).await,
                        Err(response) => response.await,
                    };
                    sender.finish(&mut response);
                    response
                }
                // Boxed, or the future of every call would reserve space for it, and that future is moved before it
                // runs.
                Err(PostRejection::Other) => Box::pin(self.serve_other_route(&head, &headers, body)).await,
                Err(PostRejection::Public(document)) => return document.await,
                Err(PostRejection::Disallowed(header)) => {
                    let refusal = self.header_warnings.refuse(header);
                    return refusal_response(&refusal, None, header_revision(&headers));
                }
                Err(PostRejection::Unauthorized(refusal)) => self.auth_response(refusal),
            };
            if !matches!(headers.origin, HeaderOccurrence::Absent) {
                cors::allow_origin(head.parts(), &mut response);
            }
            response
        }
    }

    /// Checks the `Host` and `Origin` of a request, and authenticates a message to the endpoint.
    fn authorize<'a>(
        &'a self,
        head: &'a RequestHead,
        headers: &McpHeaders<'_>,
    ) -> Result<AuthenticationResult<'a>, PostRejection<'a>> {
        let (hosts, origins) = (&self.options.hosts, &self.options.origins);
        if let Err(header) = allow_list::check(headers, head.authority(), hosts, origins) {
            return Err(match self.well_known(head).filter(|_| header == DisallowedHeader::Origin) {
                Some(document) => PostRejection::Public(document),
                None => PostRejection::Disallowed(header),
            });
        }
        if *head.method() != Method::POST || !self.options.is_endpoint(head.path()) {
            return Err(match self.well_known(head) {
                Some(document) => PostRejection::Public(document),
                None => PostRejection::Other,
            });
        }
        Ok(self.authenticate_message(head, headers))
    }

    /// Authenticates a message to the endpoint: by its `Authorization` header alone where that is enough.
    fn authenticate_message<'a>(
        &'a self,
        head: &'a RequestHead,
        headers: &McpHeaders<'_>,
    ) -> AuthenticationResult<'a> {
        if let HeaderOccurrence::Once(authorization) = headers.authorization
            && head.query().is_none()
            && let Some(sender) = self.options.authenticator.recognize(authorization)
        {
            return AuthenticationResult::Ready(Ok(sender));
        }
        self.authenticate(|| head.parts())
    }

    /// Authenticates a request, and reads it only if that makes a difference.
    pub(super) fn authenticate<'a>(
        &'a self,
        request: impl FnOnce() -> &'a Parts,
    ) -> AuthenticationResult<'a> {
        let authenticator = &self.options.authenticator;
        match authenticator.fixed_principal() {
            Some(principal) => AuthenticationResult::Ready(Ok(Authenticated::new(principal))),
            None => authenticator.authenticate(request()),
        }
    }
}

/// A response, or a refusal with the id of the request that it answers.
pub(super) type HttpResult = Result<Response<McpResponseBody>, (Refusal, Option<RequestId>)>;

/// Returns the id of a message that is a request.
pub(super) fn id_of(message: &Message) -> Option<&RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Makes the response to a message that gets no JSON-RPC response.
pub(super) fn accepted() -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Makes the response to a message with a JSON-RPC response on another stream.
pub(super) fn accepted_with(text: &'static str) -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::whole(text));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// Makes a response of one message, in a media type that the client accepts.
pub(super) fn respond(answer: RenderedResponse, as_stream: bool) -> Response<McpResponseBody> {
    let retry_after = match answer.status {
        429 => retry_seconds(&answer.message),
        _ => 0,
    };
    let (kind, body) = if as_stream {
        let mut out = Vec::with_capacity(answer.message.len() + 32);
        super::stream::write_message(&mut out, None, &answer.message);
        (EVENT_STREAM, McpResponseBody::whole(shrink_to_bytes(out)))
    } else {
        (JSON, McpResponseBody::whole(shrink_to_bytes(answer.message.into_bytes())))
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// Returns the seconds after which a refused call can be retried.
#[cold]
fn retry_seconds(message: &str) -> u64 {
    let wait = RawJson::parse(message.to_owned()).ok().as_ref().and_then(Refusal::retry_after_in);
    wait.map_or(1, |wait| wait.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX).max(1))
}

/// Makes a response that is an empty event stream.
pub(super) fn respond_empty_stream() -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response
}

/// Makes a response that is an event stream.
pub(super) fn event_stream_response(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::stream(body, GaugeGuard::stream()));
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
    type Response = Response<McpResponseBody>;
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

impl Service for HttpService {
    type Body = McpResponseBody;

    /// Answers a request as [`handle`](Self::handle) does. A slow call needs no timer here: the connection task polls
    /// it when its response has to begin. A call in a task of its own would not be polled then, and `handle` is for
    /// that.
    fn respond(&self, request: IncomingRequest) -> impl Future<Output = Response<McpResponseBody>> + Send {
        // Destructured before there is a future, which would otherwise reserve space for it twice.
        let (head, body) = request.into_head_and_body();
        self.inner.serve(head, body, TimerOwner::Connection)
    }
}

#[cfg(feature = "hyper")]
impl<B> hyper::service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<McpResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}
