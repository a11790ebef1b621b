//! Messages that are posted to the endpoint.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use trunkline_http1::server::RequestHead;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageOrBatch};
use trunkline_protocol::era::{self, HeaderOccurrence, MessageRoute};
use trunkline_protocol::{Message, Refusal, RequestId};

use super::accept::AcceptedFormats;
use super::auth::{AuthRefusal, Authenticated, ScopeChallenge, until_revoked};
use super::body::McpResponseBody;
use super::call_exchange::{CallExchange, TimerOwner, first_event};
use super::endpoint::{
    HttpServiceInner, accepted, event_stream_response, id_of, respond, respond_empty_stream,
};
use super::mcp_headers::McpHeaders;
use super::refusal_response::refusal_response;
use super::request_tracing;
use super::stream::CallEventStream;
use crate::admission::BytePermit;
use crate::call::BoxFuture;
use crate::edge::legacy::TransportCapabilities;
use crate::edge::{CallEvent, RenderedResponse};
use crate::env::Env;
use crate::party::ClientParty;
use crate::shutdown::DrainPolicy;

/// The call that a posted message begins, or else the future of its response.
///
/// A message is handled by plain functions, down to the call that it begins. Nested futures would have to be moved
/// with all that they hold, for every request; so there is one only where there is no call, or something has to be
/// waited for before it.
pub(super) type PostStart<'a> = Result<CallExchange, BoxFuture<'a, Response<McpResponseBody>>>;

/// What is known of a posted message before its body is read.
#[derive(Clone, Copy)]
pub(super) struct PostMessage<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) headers: &'a McpHeaders<'a>,
    pub(super) sender: &'a Authenticated,
    pub(super) timer: TimerOwner,
}

impl PostMessage<'_> {
    /// Returns the party that its memory counts for.
    pub(super) fn party(&self) -> ClientParty {
        ClientParty::new(&self.sender.principal, self.head.remote_address())
    }

    /// Checks the headers about the body and the response, and returns the variables that the message carries.
    pub(super) fn check_headers(&self, service: &HttpServiceInner) -> Result<Env, Refusal> {
        self.headers.check_body()?;
        if self.headers.accepts().is_nothing() {
            return Err(Refusal::NOT_ACCEPTABLE);
        }
        service.env(self.head)
    }

    fn transport_capabilities(&self, env: Env) -> TransportCapabilities {
        let server_requests = self.headers.accepts().stream;
        TransportCapabilities {
            server_requests,
            while_draining: DrainPolicy::Serve,
            env,
            grant: self.sender.grant.clone(),
        }
    }
}

impl HttpServiceInner {
    /// Handles a posted message.
    pub(super) fn handle_post<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        bytes: Bytes,
        env: Env,
        reserved: Option<BytePermit>,
    ) -> PostStart<'a> {
        let headers = post.headers;
        let mut message = match envelope::read(bytes, self.core.limits.bounds) {
            Ok(MessageOrBatch::One(message)) => message,
            Ok(batch) => {
                if matches!(headers.session, HeaderOccurrence::Absent) {
                    let problem = "batches are part of revision 2025-03-26 only";
                    return self.refuse_post(post, &Refusal::INVALID_REQUEST.with_message(problem), None);
                }
                return self.handle_legacy(post, batch, post.transport_capabilities(env), reserved);
            }
            Err(MalformedMessage { refusal, id }) => return self.refuse_post(post, &refusal, id.as_ref()),
        };
        let version =
            if let HeaderOccurrence::Once(version) = headers.version { Some(version) } else { None };
        let has_session = !matches!(headers.session, HeaderOccurrence::Absent);
        let route = era::route_http(&message, version, has_session);
        self.continue_trace(post.head, &mut message);
        request_tracing::log_route(&mut message, &route);
        match (route, message) {
            (MessageRoute::Modern, Message::Request(request)) => {
                self.handle_modern(post, request, env, reserved)
            }
            (MessageRoute::Session, message) => {
                let transport = post.transport_capabilities(env);
                self.handle_legacy(post, MessageOrBatch::One(message), transport, reserved)
            }
            (MessageRoute::Initialize, Message::Request(request)) => Err(Box::pin(async move {
                let (accepts, address) = (headers.accepts(), post.head.remote_address());
                let opened = self.legacy_initialize(&request, accepts, post.sender, env, address).await;
                opened.unwrap_or_else(|(refusal, id)| self.post_refusal(post, &refusal, id.as_ref()))
            })),
            (MessageRoute::Refuse(refusal), message) => self.refuse_post(post, &refusal, id_of(&message)),
            _ => ready_response(accepted()),
        }
    }

    /// Refuses a posted message, under its id if it has one that could be read.
    #[cold]
    pub(super) fn refuse_post<'a>(
        &self,
        post: PostMessage<'a>,
        refusal: &Refusal,
        id: Option<&RequestId>,
    ) -> PostStart<'a> {
        ready_response(self.post_refusal(post, refusal, id))
    }

    #[cold]
    fn post_refusal(
        &self,
        post: PostMessage<'_>,
        refusal: &Refusal,
        id: Option<&RequestId>,
    ) -> Response<McpResponseBody> {
        refusal_response(refusal, id, self.refusal_revision(post.headers, &post.sender.principal))
    }

    /// Waits for what a message becomes, and then for its response.
    pub(super) fn defer<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        start: impl Future<Output = PostStart<'a>> + Send + 'a,
    ) -> PostStart<'a> {
        Err(Box::pin(async move {
            match start.await {
                Ok(call) => self.respond_call(post, call).await,
                Err(response) => response.await,
            }
        }))
    }

    /// Runs a call up to its first event, which decides the kind of its response.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async function keeps its arguments twice, and calls are large"
    )]
    pub(super) fn respond_call<'a>(
        &'a self,
        post: PostMessage<'a>,
        mut call: CallExchange,
    ) -> impl Future<Output = Response<McpResponseBody>> + Send + 'a {
        async move {
            let accepts = post.headers.accepts();
            let first = {
                let stream_after = self.core.limits.stream_after;
                let waiting = first_event(&mut call, accepts.stream, stream_after, post.timer);
                until_revoked(post.sender.grant.as_ref(), pin!(waiting)).await
            };
            match first {
                Some(first) => self.begin_response(call, first, accepts, post.sender),
                None => self.auth_response(AuthRefusal::revoked_token()),
            }
        }
    }

    /// Makes the response to a call from its first event; `None` if that is not ready yet.
    fn begin_response(
        &self,
        call: CallExchange,
        first: Option<CallEvent>,
        accepts: AcceptedFormats,
        sender: &Authenticated,
    ) -> Response<McpResponseBody> {
        match first {
            Some(CallEvent::Response(answer)) => {
                let challenge = ScopeChallenge::for_response(&answer, sender.grant.as_ref());
                let mut response = respond(answer, self.prefers_stream(accepts));
                if let Some(challenge) = challenge {
                    self.with_protected_resource(|resource| challenge.add_to(&mut response, resource));
                }
                response
            }
            // A cancelled call gets no JSON-RPC response: its stream ends without an event. A client that accepts no
            // stream gets an error, since an HTTP request needs a response.
            Some(CallEvent::NoResponse) if accepts.stream => respond_empty_stream(),
            Some(CallEvent::NoResponse) => respond(call.cancelled_response(), false),
            first => event_stream_response(CallEventStream::new(call, first, self.core.limits.keep_alive)),
        }
    }

    pub(super) fn prefers_stream(&self, accepts: AcceptedFormats) -> bool {
        (self.options.always_stream && accepts.stream) || !accepts.json
    }
}

/// Wraps a response that is complete already.
pub(super) fn ready_response<'a>(response: Response<McpResponseBody>) -> PostStart<'a> {
    Err(Box::pin(std::future::ready(response)))
}

/// Wraps a response of one message that is complete already.
pub(super) fn ready_message<'a>(answer: RenderedResponse, as_stream: bool) -> PostStart<'a> {
    ready_response(respond(answer, as_stream))
}
