use bytes::Bytes;
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{Answer, Question};

use super::{Call, Meanwhile, Suspended};
use crate::client::Client;
use crate::error::Error;

/// How a step of a call ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The call is answered; the result is as the server wrote it.
    Done(RawResult),
    /// The server needs answers before it can go on.
    Ask(Box<Round>),
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

/// Says that a question will not be answered, in the words that its kind has for it.
fn unanswered(question: &Question) -> Result<Answer, Refusal> {
    match question {
        Question::Form(_) | Question::Url(_) => Ok(Answer::cancel()),
        Question::Sample(_) => Err(Refusal::application(-1, "nobody answers for this request")),
        Question::Roots => Err(Refusal::INTERNAL.because("nobody answers for this request")),
    }
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

    /// Listens on while the questions are being answered. Cancel safe.
    ///
    /// It ends only where there is something to know: a call that its server keeps open can be over before it is answered.
    pub async fn meanwhile(&mut self) -> Meanwhile {
        match &mut self.then {
            Continuation::Live(suspended) => {
                suspended.get_mut().listen(self.client.inner(), &self.call).await
            }
            Continuation::Portable(_) => std::future::pending().await,
        }
    }

    /// Gives the call up: whoever asked hears that nobody will answer, and that nobody waits any more.
    pub async fn abandon(self) {
        let Continuation::Live(mut suspended) = self.then else { return };
        suspended.get_mut().give_up_uncertain();
        let answers = self.questions.into_iter().map(|(key, question)| (key, unanswered(&question)));
        // A server that is gone, or does not read, need not be told.
        let _ = suspended.get_mut().answer(self.client.inner(), &self.call, answers.collect()).await;
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
