use http::Response;
use trunkline_protocol::{Refusal, RequestId};

use super::accept::AcceptedFormats;
use super::auth::ScopeChallenge;
use super::body::McpResponseBody;
use super::call_exchange::CallExchange;
use super::endpoint::{HttpServiceInner, event_stream_response, respond, respond_empty_stream};
use super::stream::CallEventStream;
use crate::call::BoxFuture;
use crate::edge::CallEvent;

/// The outcome of a posted message.
///
/// A message is handled by plain functions, down to the call that it begins. Nested futures would have to be moved
/// with all that they hold, for every request; so there is one only where something has to be waited for.
pub(super) enum PostOutcome<'a> {
    /// It has its response.
    Responded(Response<McpResponseBody>),
    /// It is refused, under its id if it has one that could be read.
    Refused(Refusal, Option<RequestId>),
    /// It runs, and its first event decides the kind of the response.
    Call(CallExchange),
    /// It waits for a store, or for a suspended call to be resumed.
    Deferred(BoxFuture<'a, PostOutcome<'a>>),
}

impl HttpServiceInner {
    /// Makes the response to a call from its first event; `None` if that is not ready yet.
    pub(super) fn begin_response(
        &self,
        call: CallExchange,
        first: Option<CallEvent>,
        accepts: AcceptedFormats,
    ) -> Response<McpResponseBody> {
        match first {
            Some(CallEvent::Response(answer)) => {
                let challenge = ScopeChallenge::for_response(&answer);
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
