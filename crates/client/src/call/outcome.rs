use bytes::Bytes;
use trunkline_protocol::model::{Answer, Question};
use trunkline_protocol::{Raw, Refusal};

use super::{Call, Suspended};
use crate::client::Client;
use crate::error::Error;

/// How a step of a call ends.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "an outcome is looked at once and gone")]
pub enum Outcome {
    /// The call is answered; the result is as the server wrote it.
    Done(Raw),
    /// The server needs answers before it can go on.
    Ask(Round),
}

/// Questions that a server asks together, and how the call goes on once they are answered.
#[derive(Debug)]
#[non_exhaustive]
pub struct Round {
    /// The questions, each under its key; none means "ask me again later".
    pub questions: Vec<(String, Question)>,
    /// How the call goes on.
    pub then: Continuation,
    client: Client,
    call: Call,
}

/// The answers to the questions of a round, by their keys. A refusal is told to the server where it can be, and else ends
/// the call.
pub type Answers = Vec<(String, Result<Answer, Refusal>)>;

/// How an interrupted call goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Continuation {
    /// The call is made again with the answers and with these bytes: the server keeps nothing, and any client of the same
    /// server can go on.
    Portable(Bytes),
    /// The call is still open. Dropping it cancels it.
    Live(Box<Suspended>),
}

impl Round {
    pub(crate) fn new(
        client: Client,
        call: Call,
        questions: Vec<(String, Question)>,
        then: Continuation,
    ) -> Self {
        Self { questions, then, client, call }
    }

    /// Goes on with the answers.
    ///
    /// # Errors
    /// As [`Client::step`].
    pub async fn answer(self, answers: Answers) -> Result<Outcome, Error> {
        self.client.step(self.call.resume(self.then, answers)).await
    }

    /// Returns the questions and the continuation by themselves, for [`Call::resume`].
    pub fn into_parts(self) -> (Vec<(String, Question)>, Continuation) {
        (self.questions, self.then)
    }
}
