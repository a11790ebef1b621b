use http::Response;
use trunkline_protocol::{Id, Refusal};

use super::accept::Accepts;
use super::body::ResponseBody;
use super::carry::Carried;
use super::endpoint::{Inner, respond, respond_nothing, streamed};
use super::stream::CallStream;
use crate::call::BoxFuture;
use crate::edge::Event;

/// What became of a message that was posted.
///
/// A message is taken by plain functions, down to the call that it begins. Futures within futures would have to be moved with
/// all that they hold, for every request; so there is one only where something has to be waited for.
pub(super) enum Taken<'a> {
    /// It is answered.
    Answered(Response<ResponseBody>),
    /// It is refused, under its id if it has one that could be read.
    Refused(Refusal, Option<Id>),
    /// It runs, and what it does first decides what the response is.
    Call(Carried),
    /// Somebody else is waited for: a store, or whoever holds a call that goes on.
    Later(BoxFuture<'a, Taken<'a>>),
}

impl Inner {
    /// Makes the response to a call from the first thing that it did; `None` if that takes its time.
    pub(super) fn begin_response(
        &self,
        call: Carried,
        first: Option<Event>,
        accepts: Accepts,
    ) -> Response<ResponseBody> {
        match first {
            Some(Event::Answer(answer)) => respond(answer, self.as_stream(accepts)),
            // A call that was cancelled is not answered: its stream ends without a word. A client that takes no stream is told,
            // since HTTP has to answer a request with one or the other.
            Some(Event::Nothing) if accepts.stream => respond_nothing(),
            Some(Event::Nothing) => respond(call.cancelled(), false),
            first => streamed(CallStream::new(call, first, self.core.limits.keep_alive)),
        }
    }

    pub(super) fn as_stream(&self, accepts: Accepts) -> bool {
        (self.options.always_stream && accepts.stream) || !accepts.json
    }
}
