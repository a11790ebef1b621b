use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_protocol::model::{
    Action, Answer, ElicitResult, FormQuestion, Question, Root, SampleQuestion, SampleResult, UrlQuestion,
};
use trunkline_protocol::{Members, Raw, Refusal};

use super::context::Context;
use super::given::{Answered, Given, Put};
use super::shared::Shared;

/// A question to the caller's user, model or host, and how its answer is read.
#[must_use = "a question does nothing until it is given to `Context::ask`"]
pub struct Ask<T> {
    key: Option<String>,
    question: Question,
    early: Early,
    read: fn(Given) -> Result<T, AskError>,
}

impl<T> Ask<T> {
    fn new(question: Question, read: fn(Given) -> Result<T, AskError>) -> Self {
        Self { key: None, question, early: Early::Counts, read }
    }

    /// Names the question; without a name it is `q1`, `q2`, … by the order in which questions are put.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Whether an answer that came before its question counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Counts,
    DoesNot,
}

impl Ask<Answer> {
    /// Asks a question that somebody else has put, under a key that was never used before, and gives the answer whole: a
    /// user's no is an answer, and so is anything else that fits.
    ///
    /// What came with the request under the key is not taken for an answer, since nobody can have known the question.
    pub fn carried(key: impl Into<String>, question: Question) -> Self {
        let ask = Self::new(question, |given| Ok(given.answer)).key(key);
        Self { early: Early::DoesNot, ..ask }
    }
}

impl Ask<Raw> {
    /// Asks a question whose answer is only checked and carried.
    pub(crate) fn raw(key: String, question: Question) -> Self {
        Self::new(question, |given| Ok(given.raw)).key(key)
    }
}

impl<T> fmt::Debug for Ask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("key", &self.key)
            .field("question", &self.question)
            .finish_non_exhaustive()
    }
}

/// Asks the user to fill in a form; the type of the answer makes the form.
pub fn ask<T: Form>(message: impl Into<String>) -> Ask<T> {
    let question = FormQuestion { message: message.into(), schema: T::schema(), rest: Members::new() };
    Ask::new(Question::Form(question), |given| {
        let result = elicited(given)?;
        match result.action {
            Action::Accept => {
                let content = result.content.unwrap_or(Raw::EMPTY_OBJECT);
                T::read(&content).map_err(AskError::Malformed)
            }
            Action::Decline => Err(AskError::Declined),
            Action::Cancel => Err(AskError::Dismissed),
        }
    })
}

/// Asks the user to fill in a form given as a schema, and returns the answer as it came.
pub fn elicit(message: impl Into<String>, schema: impl Into<Raw>) -> Ask<ElicitResult> {
    let question = FormQuestion { message: message.into(), schema: schema.into(), rest: Members::new() };
    Ask::new(Question::Form(question), elicited)
}

/// Asks the user to open a page; the answer tells whether they agreed, not whether they finished there.
pub fn open_url(message: impl Into<String>, url: impl Into<String>) -> Ask<ElicitResult> {
    let question = UrlQuestion { message: message.into(), url: url.into(), rest: Members::new() };
    Ask::new(Question::Url(question), elicited)
}

/// Asks the caller's model.
pub fn sample(question: SampleQuestion) -> Ask<SampleResult> {
    Ask::new(Question::Sample(question), |given| match given.answer {
        Answer::Sample(result) => Ok(result),
        _ => Err(AskError::wrong_kind()),
    })
}

/// Asks the caller's host for its roots.
pub fn roots() -> Ask<Vec<Root>> {
    Ask::new(Question::Roots, |given| match given.answer {
        Answer::Roots(roots) => Ok(roots),
        _ => Err(AskError::wrong_kind()),
    })
}

fn elicited(given: Given) -> Result<ElicitResult, AskError> {
    match given.answer {
        Answer::Elicit(result) => Ok(result),
        _ => Err(AskError::wrong_kind()),
    }
}

/// A flat set of fields that a user fills in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    label = "not a form that a user can fill in",
    note = "ask for `Confirm`, for a type that derives `Form`, or for `Fields<T>` of a type that has a JSON Schema"
)]
pub trait Form: Sized {
    /// Returns the JSON Schema of the fields: an object whose properties are strings, numbers, booleans or choices.
    fn schema() -> Raw;

    /// Reads what the user filled in.
    ///
    /// # Errors
    /// A sentence that names the field which does not fit.
    fn read(content: &Raw) -> Result<Self, String>;
}

/// A yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm(pub bool);

impl Form for Confirm {
    fn schema() -> Raw {
        serde_json::json!({
            "type": "object",
            "properties": { "confirm": { "type": "boolean", "title": "Confirm", "default": false } },
            "required": ["confirm"],
        })
        .into()
    }

    fn read(content: &Raw) -> Result<Self, String> {
        let fields: serde_json::Value = content.decode().map_err(|error| error.to_string())?;
        let confirm = fields.get("confirm").and_then(serde_json::Value::as_bool);
        confirm.map(Self).ok_or_else(|| "`confirm` must be true or false".to_owned())
    }
}

/// A form made from a type that has a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<T>(pub T);

impl<T: JsonSchema + DeserializeOwned> Form for Fields<T> {
    fn schema() -> Raw {
        crate::schema::flat::<T>()
    }

    fn read(content: &Raw) -> Result<Self, String> {
        content.decode().map(Self).map_err(|error| error.to_string())
    }
}

/// Why a question has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The user said no.
    #[error("the user declined")]
    Declined,
    /// The user closed the question without an answer.
    #[error("the user dismissed the question")]
    Dismissed,
    /// The caller cannot be asked this.
    #[error("the client cannot be asked for {method}: {reason}")]
    Unsupported {
        /// The request that the question would have been.
        method: &'static str,
        /// Why not.
        reason: String,
        /// The capability that would be needed, as a capabilities object.
        required: Raw,
    },
    /// The answer does not fit the question.
    #[error("the answer does not fit the question: {0}")]
    Malformed(String),
    /// The client answered with an error.
    #[error("the client refused: {0}")]
    Refused(Refusal),
    /// Two open questions have the same key.
    #[error("a question with the key `{0}` is already open")]
    KeyInUse(String),
    /// The call or its session ended before an answer came, or the client has ended its side and can send none.
    #[error("the client is gone, or can answer no more")]
    Ended,
}

impl AskError {
    pub(crate) fn unsupported(question: &Question, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            method: question.method(),
            reason: reason.into(),
            required: question.required_capability(),
        }
    }

    fn wrong_kind() -> Self {
        Self::Malformed("it answers another kind of question".to_owned())
    }

    /// Returns the refusal that a caller gets when a handler gives up over this error.
    pub fn to_refusal(&self) -> Refusal {
        match self {
            Self::Unsupported { required, .. } => {
                Refusal::missing_capability(required).because(self.to_string())
            }
            _ => Refusal::INTERNAL.because(self.to_string()),
        }
    }
}

/// A question that has been put and waits for its answer.
pub(crate) struct Asking<T> {
    shared: Arc<Shared>,
    state: AskState<T>,
    answer: PhantomData<fn() -> T>,
}

enum AskState<T> {
    New(Option<Ask<T>>),
    Open { key: String, read: fn(Given) -> Result<T, AskError>, repeats: usize },
    Over,
}

/// How often a question is put again whose answer does not fit it.
const MOST_REPEATS: usize = 2;

impl<T> Asking<T> {
    pub(crate) fn new(shared: Arc<Shared>, ask: Ask<T>) -> Self {
        Self { shared, state: AskState::New(Some(ask)), answer: PhantomData }
    }
}

impl<T> Future for Asking<T> {
    type Output = Result<T, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let (answered, read, repeats) = match &mut this.state {
                AskState::New(ask) => {
                    let Some(ask) = ask.take() else { return Poll::Pending };
                    let answered = match this.shared.put(ask.key, ask.question, ask.early) {
                        Ok(Put::Open(key)) => {
                            this.state = AskState::Open { key, read: ask.read, repeats: 0 };
                            continue;
                        }
                        Ok(Put::Answered(answered)) => Ok(answered),
                        Err(error) => Err(error),
                    };
                    (answered, ask.read, 0)
                }
                AskState::Open { key, read, repeats } => {
                    (std::task::ready!(this.shared.poll_answer(key, cx)), *read, *repeats)
                }
                AskState::Over => return Poll::Pending,
            };
            this.state = AskState::Over;
            match answered.and_then(|answered| this.settle(answered, read, repeats)) {
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<T> Asking<T> {
    /// Reads what came, or puts the question again if that does not fit it and may be a slip.
    fn settle(
        &mut self,
        answered: Answered,
        read: fn(Given) -> Result<T, AskError>,
        repeats: usize,
    ) -> Result<Option<T>, AskError> {
        let Answered { key, question, given } = answered;
        match given.and_then(read) {
            Err(AskError::Malformed(_)) if repeats < MOST_REPEATS => {
                self.shared.put_again(key.clone(), question)?;
                self.state = AskState::Open { key, read, repeats: repeats + 1 };
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }
}

impl<T> Drop for Asking<T> {
    fn drop(&mut self) {
        if let AskState::Open { key, .. } = &self.state {
            self.shared.withdraw(key);
        }
    }
}

/// Several questions that are put in one round.
pub trait AskAll {
    /// The answers, in the order of the questions.
    type Answers;

    /// Puts the questions together and waits for all answers.
    #[doc(hidden)]
    fn put_all(self, context: &Context) -> impl Future<Output = Result<Self::Answers, AskError>> + Send;
}

macro_rules! ask_all {
    ($($ask:ident: $answer:ident),+) => {
        impl<$($answer: Send),+> AskAll for ($(Ask<$answer>,)+) {
            type Answers = ($($answer,)+);

            async fn put_all(self, context: &Context) -> Result<Self::Answers, AskError> {
                let ($($ask,)+) = self;
                // What cannot be asked is found out before the caller is troubled with the rest.
                context.shared().check_all(&[$(($ask.key.as_deref(), &$ask.question)),+])?;
                $(let mut $ask = Waiting::new(context.shared().clone(), $ask);)+
                std::future::poll_fn(|cx| {
                    // Every question is polled in every turn, so that all of them are put before the round closes.
                    let mut open = false;
                    $(open |= $ask.poll(cx).is_pending();)+
                    if open { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                Ok(($($ask.into_answer()?,)+))
            }
        }
    };
}

ask_all!(a: A);
ask_all!(a: A, b: B);
ask_all!(a: A, b: B, c: C);
ask_all!(a: A, b: B, c: C, d: D);

/// One question of several, with its answer once that has come.
struct Waiting<T> {
    asking: Asking<T>,
    answer: Option<Result<T, AskError>>,
}

impl<T> Waiting<T> {
    fn new(shared: Arc<Shared>, ask: Ask<T>) -> Self {
        Self { asking: Asking::new(shared, ask), answer: None }
    }

    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.answer.is_none() {
            self.answer = Some(std::task::ready!(Pin::new(&mut self.asking).poll(cx)));
        }
        Poll::Ready(())
    }

    fn into_answer(self) -> Result<T, AskError> {
        self.answer.unwrap_or(Err(AskError::Ended))
    }
}
