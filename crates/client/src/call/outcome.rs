use bytes::Bytes;
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{InputRequest, InputResponse};

use super::{ClientCall, InputRoundEvent, LiveContinuation};
use crate::client::Client;
use crate::error::Error;

/// How a step of a call ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The call is answered; the result is as the server wrote it.
    Done(RawResult),
    /// The server needs answers before it can go on.
    InputRequired(Box<ClientInputRound>),
}

/// Questions that a server asks together, and how the call goes on once they are answered.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientInputRound {
    /// The questions, each under its key; none means "ask me again later".
    pub requests: Vec<(String, InputRequest)>,
    /// How the call goes on.
    pub continuation: ClientContinuation,
    client: Client,
    call: ClientCall,
}

/// The answers to the questions of a round, by their keys. A refusal is told to the server where it can be, and else ends
/// the call.
pub type InputResponses = Vec<(String, Result<InputResponse, Refusal>)>;

/// How an interrupted call goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientContinuation {
    /// The call is made again with the answers and with these bytes: the server keeps nothing, and any client of the same
    /// server can go on.
    Portable(Bytes),
    /// The call is still open. Dropping it cancels it.
    Live(Box<LiveContinuation>),
}

/// Says that a question will not be answered, in the words that its kind has for it.
fn declined_response(question: &InputRequest) -> Result<InputResponse, Refusal> {
    match question {
        InputRequest::Form(_) | InputRequest::Url(_) => Ok(InputResponse::cancel()),
        InputRequest::Sampling(_) => Err(Refusal::application(-1, "nobody answers for this request")),
        InputRequest::Roots => Err(Refusal::INTERNAL.with_message("nobody answers for this request")),
    }
}

impl ClientInputRound {
    pub(crate) fn new(
        client: Client,
        call: ClientCall,
        questions: Vec<(String, InputRequest)>,
        then: ClientContinuation,
    ) -> Self {
        Self { requests: questions, continuation: then, client, call }
    }

    /// Listens on while the questions are being answered. Cancel safe.
    ///
    /// It ends only where there is something to know: a call that its server keeps open can be over before it is answered.
    pub async fn next_event(&mut self) -> InputRoundEvent {
        match &mut self.continuation {
            ClientContinuation::Live(suspended) => {
                suspended.get_mut().next_round_event(self.client.inner(), &self.call).await
            }
            ClientContinuation::Portable(_) => std::future::pending().await,
        }
    }

    /// Gives the call up: whoever asked hears that nobody will answer, and that nobody waits any more.
    pub async fn abandon(self) {
        let ClientContinuation::Live(mut suspended) = self.continuation else { return };
        suspended.get_mut().release_uncertain();
        let answers = self.requests.into_iter().map(|(key, question)| (key, declined_response(&question)));
        // A server that is gone, or does not read, need not be told.
        let _ = suspended.get_mut().respond(self.client.inner(), &self.call, answers.collect()).await;
    }

    /// Goes on with the answers.
    ///
    /// # Errors
    /// As [`Client::step`].
    pub async fn respond(self, answers: InputResponses) -> Result<StepOutcome, Error> {
        self.client.step(self.call.resume(self.continuation, answers)).await
    }

    /// Returns the questions and the continuation by themselves, for [`ClientCall::resume`].
    pub fn into_parts(self) -> (Vec<(String, InputRequest)>, ClientContinuation) {
        (self.requests, self.continuation)
    }
}
