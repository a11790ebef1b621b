use bytes::Bytes;
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{InputRequest, InputResponse};

use super::{ClientCall, InputRoundEvent, LiveContinuation};
use crate::client::Client;
use crate::error::Error;

/// How a step of a call ends.
///
/// The server has a type of its own for the same outcomes, `HandlerOutcome`, since what they carry differs in kind:
/// here the result is the JSON of a server, which no code has interpreted, and the round holds the connection and the
/// call that it continues; there the result is a value that is still to be written in the revision of the caller, and
/// the round is data alone. A type in a lower crate would have both as parameters, so that each side would name its
/// instance again, and the edges of the server could not match all outcomes without a wildcard. A proxy converts
/// between the two where it has something to decide: it repairs a result, and checks a round against its caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The call is complete; the result is as the server wrote it.
    Done(RawResult),
    /// The server requires input before it can continue.
    InputRequired(Box<ClientInputRound>),
}

/// Input requests of one round, and how to resume the call with the responses.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientInputRound {
    /// The input requests by their keys; an empty round means that the client retries later.
    pub requests: Vec<(String, InputRequest)>,
    /// How to resume the call.
    pub continuation: ClientContinuation,
    client: Client,
    call: ClientCall,
}

/// The responses of an input round, by their keys. A refusal is sent to the server where the revision has a form
/// for it, and otherwise ends the call.
pub type InputResponses = Vec<(String, Result<InputResponse, Refusal>)>;

/// How a suspended call is resumed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientContinuation {
    /// The call is repeated with the responses and these bytes. The server keeps no state, so that any client of
    /// the same server can resume the call.
    Portable(Bytes),
    /// The call is still open; dropping it cancels the call.
    Live(Box<LiveContinuation>),
}

/// Returns the response that declines an input request, by its kind.
fn declined_response(input_request: &InputRequest) -> Result<InputResponse, Refusal> {
    match input_request {
        InputRequest::Form(_) | InputRequest::Url(_) => Ok(InputResponse::cancel()),
        InputRequest::Sampling(_) => Err(Refusal::application(-1, "no input handler answers this request")),
        InputRequest::Roots => Err(Refusal::INTERNAL.with_message("no input handler answers this request")),
    }
}

impl ClientInputRound {
    pub(crate) fn new(
        client: Client,
        call: ClientCall,
        input_requests: Vec<(String, InputRequest)>,
        continuation: ClientContinuation,
    ) -> Self {
        Self { requests: input_requests, continuation, client, call }
    }

    /// Waits for the next event of the round. Cancel safe.
    ///
    /// It completes only if something happens: the server can end a live call, or cancel an input request, before
    /// the responses are sent.
    pub async fn next_event(&mut self) -> InputRoundEvent {
        match &mut self.continuation {
            ClientContinuation::Live(suspended) => {
                suspended.get_mut().next_round_event(self.client.inner(), &self.call).await
            }
            ClientContinuation::Portable(_) => std::future::pending().await,
        }
    }

    /// Abandons the call: declines its input requests and cancels it.
    pub async fn abandon(self) {
        let ClientContinuation::Live(mut suspended) = self.continuation else { return };
        suspended.get_mut().release_uncertain();
        let answers =
            self.requests.into_iter().map(|(key, input_request)| (key, declined_response(&input_request)));
        // Best effort: the server may be gone, or may not read.
        let _ = suspended.get_mut().respond(self.client.inner(), &self.call, answers.collect()).await;
    }

    /// Resumes the call with the responses.
    ///
    /// # Errors
    /// As [`Client::step`].
    pub async fn respond(self, answers: InputResponses) -> Result<StepOutcome, Error> {
        self.client.step(self.call.resume(self.continuation, answers)).await
    }

    /// Returns the input requests and the continuation, for [`ClientCall::resume`].
    pub fn into_parts(self) -> (Vec<(String, InputRequest)>, ClientContinuation) {
        (self.requests, self.continuation)
    }
}
