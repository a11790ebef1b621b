use http::Response;
use trunkline_protocol::{Refusal, RequestId};

use super::accept::AcceptedFormats;
use super::body::McpResponseBody;
use super::call_exchange::CallExchange;
use super::endpoint::{HttpServiceInner, event_stream_response, respond, respond_empty_stream};
use super::stream::CallEventStream;
use crate::call::BoxFuture;
use crate::edge::CallEvent;

/// What became of a message that was posted.
///
/// A message is taken by plain functions, down to the call that it begins. Futures within futures would have to be moved with
/// all that they hold, for every request; so there is one only where something has to be waited for.
pub(super) enum PostOutcome<'a> {
    /// It is answered.
    Responded(Response<McpResponseBody>),
    /// It is refused, under its id if it has one that could be read.
    Refused(Refusal, Option<RequestId>),
    /// It runs, and what it does first decides what the response is.
    Call(CallExchange),
    /// Somebody else is waited for: a store, or whoever holds a call that goes on.
    Deferred(BoxFuture<'a, PostOutcome<'a>>),
}

impl HttpServiceInner {
    /// Makes the response to a call from the first thing that it did; `None` if that takes its time.
    pub(super) fn begin_response(
        &self,
        call: CallExchange,
        first: Option<CallEvent>,
        accepts: AcceptedFormats,
    ) -> Response<McpResponseBody> {
        match first {
            Some(CallEvent::Response(answer)) => respond(answer, self.prefers_stream(accepts)),
            // A call that was cancelled is not answered: its stream ends without a word. A client that takes no stream is told,
            // since HTTP has to answer a request with one or the other.
            Some(CallEvent::NoResponse) if accepts.stream => respond_empty_stream(),
            Some(CallEvent::NoResponse) => respond(call.cancelled_response(), false),
            first => event_stream_response(CallEventStream::new(call, first, self.core.limits.keep_alive)),
        }
    }

    pub(super) fn prefers_stream(&self, accepts: AcceptedFormats) -> bool {
        (self.options.always_stream && accepts.stream) || !accepts.json
    }
}
