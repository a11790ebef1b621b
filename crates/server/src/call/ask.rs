use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_protocol::model::{
    CreateMessageRequest, CreateMessageResult, ElicitAction, ElicitResult, FormElicitRequest, InputRequest,
    InputResponse, Root, UrlElicitRequest,
};
use trunkline_protocol::{JsonObject, RawJson, Refusal};

use super::call_state::CallState;
use super::context::Context;
use super::received_input::{AnsweredInput, InputRequestStatus, ReceivedInput};

/// An input request to the caller's user, model or host, and how its response is read.
#[must_use = "a question does nothing until it is given to `Context::ask`"]
pub struct TypedInputRequest<T> {
    key: Option<String>,
    request: InputRequest,
    early_answer: EarlyAnswer,
    read: fn(ReceivedInput) -> Result<T, AskError>,
}

impl<T> TypedInputRequest<T> {
    fn new(question: InputRequest, read: fn(ReceivedInput) -> Result<T, AskError>) -> Self {
        Self { key: None, request: question, early_answer: EarlyAnswer::Accept, read }
    }

    /// Sets the key of the input request; without one it is `q1`, `q2`, … in the order of the requests.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Whether a response that came before its input request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyAnswer {
    Accept,
    Ignore,
}

impl TypedInputRequest<InputResponse> {
    /// Relays an input request of another server under an unused key, and returns the response unchanged: a
    /// declined elicitation is a response, and so is anything else that fits.
    ///
    /// A response that came with the request under this key is ignored, since the client cannot have known the
    /// input request.
    pub fn relayed(key: impl Into<String>, question: InputRequest) -> Self {
        let ask = Self::new(question, |given| Ok(given.response)).key(key);
        Self { early_answer: EarlyAnswer::Ignore, ..ask }
    }
}

impl TypedInputRequest<RawJson> {
    /// Makes an input request with a response that is only checked and passed on.
    pub(crate) fn raw(key: String, question: InputRequest) -> Self {
        Self::new(question, |given| Ok(given.raw)).key(key)
    }
}

impl<T> fmt::Debug for TypedInputRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedInputRequest")
            .field("key", &self.key)
            .field("question", &self.request)
            .finish_non_exhaustive()
    }
}

/// Elicits a form from the user; the type of the response defines the form.
pub fn ask<T: Form>(message: impl Into<String>) -> TypedInputRequest<T> {
    let question =
        FormElicitRequest { message: message.into(), schema: T::schema(), rest: JsonObject::new() };
    TypedInputRequest::new(InputRequest::Form(question), |given| {
        let result = elicited(given)?;
        match result.action {
            ElicitAction::Accept => {
                let content = result.content.unwrap_or(RawJson::EMPTY_OBJECT);
                T::read(&content).map_err(AskError::Malformed)
            }
            ElicitAction::Decline => Err(AskError::Declined),
            ElicitAction::Cancel => Err(AskError::Dismissed),
        }
    })
}

/// Elicits a form given as a schema, and returns the response unchanged.
pub fn elicit(message: impl Into<String>, schema: impl Into<RawJson>) -> TypedInputRequest<ElicitResult> {
    let question =
        FormElicitRequest { message: message.into(), schema: schema.into(), rest: JsonObject::new() };
    TypedInputRequest::new(InputRequest::Form(question), elicited)
}

/// Requests that the user open a URL; the response states whether the user agreed, not whether the user has
/// finished there.
pub fn open_url(message: impl Into<String>, url: impl Into<String>) -> TypedInputRequest<ElicitResult> {
    let question = UrlElicitRequest { message: message.into(), url: url.into(), rest: JsonObject::new() };
    TypedInputRequest::new(InputRequest::Url(question), elicited)
}

/// Requests sampling from the caller's model.
pub fn sample(question: CreateMessageRequest) -> TypedInputRequest<CreateMessageResult> {
    TypedInputRequest::new(InputRequest::Sampling(question), |given| match given.response {
        InputResponse::Sampling(result) => Ok(result),
        _ => Err(AskError::wrong_kind()),
    })
}

/// Requests the roots of the caller's host.
pub fn roots() -> TypedInputRequest<Vec<Root>> {
    TypedInputRequest::new(InputRequest::Roots, |given| match given.response {
        InputResponse::Roots(roots) => Ok(roots),
        _ => Err(AskError::wrong_kind()),
    })
}

fn elicited(given: ReceivedInput) -> Result<ElicitResult, AskError> {
    match given.response {
        InputResponse::Elicit(result) => Ok(result),
        _ => Err(AskError::wrong_kind()),
    }
}

/// A flat set of fields that a user fills in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    label = "not a form that a user can fill in",
    note = "ask for `Confirm`, for a type that derives `Form`, or for `SchemaForm<T>` of a type that has a JSON Schema"
)]
pub trait Form: Sized {
    /// Returns the JSON Schema of the fields: an object with properties that are strings, numbers, booleans or
    /// choices.
    fn schema() -> RawJson;

    /// Reads what the user filled in.
    ///
    /// # Errors
    /// A message that names the field which does not fit.
    fn read(content: &RawJson) -> Result<Self, String>;
}

/// A yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm(pub bool);

impl Form for Confirm {
    fn schema() -> RawJson {
        serde_json::json!({
            "type": "object",
            "properties": { "confirm": { "type": "boolean", "title": "Confirm", "default": false } },
            "required": ["confirm"],
        })
        .into()
    }

    fn read(content: &RawJson) -> Result<Self, String> {
        let fields: serde_json::Value = content.decode().map_err(|error| error.to_string())?;
        let confirm = fields.get("confirm").and_then(serde_json::Value::as_bool);
        confirm.map(Self).ok_or_else(|| "`confirm` must be true or false".to_owned())
    }
}

/// A form made from a type that has a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaForm<T>(pub T);

impl<T: JsonSchema + DeserializeOwned> Form for SchemaForm<T> {
    fn schema() -> RawJson {
        crate::schema::form_schema::<T>()
    }

    fn read(content: &RawJson) -> Result<Self, String> {
        content.decode().map(Self).map_err(|error| error.to_string())
    }
}

/// Why an input request has no response.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The user declined.
    #[error("the user declined")]
    Declined,
    /// The user dismissed the input request without a response.
    #[error("the user dismissed the question")]
    Dismissed,
    /// The client does not support this input request.
    #[error("the client cannot be asked for {method}: {reason}")]
    Unsupported {
        /// The method of the request that would have been sent.
        method: &'static str,
        /// Why not.
        reason: String,
        /// The capability that would be needed, as a capabilities object.
        required: RawJson,
    },
    /// The response does not fit the input request.
    #[error("the answer does not fit the question: {0}")]
    Malformed(String),
    /// The client responded with an error.
    #[error("the client refused: {0}")]
    Refused(Refusal),
    /// Two open input requests have the same key.
    #[error("a question with the key `{0}` is already open")]
    KeyInUse(String),
    /// The call or its session ended before a response came, or the client has ended its side and can send none.
    #[error("the client is gone, or can answer no more")]
    Ended,
}

impl AskError {
    pub(crate) fn unsupported(question: &InputRequest, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            method: question.method(),
            reason: reason.into(),
            required: question.required_capability(),
        }
    }

    fn wrong_kind() -> Self {
        Self::Malformed("it answers another kind of question".to_owned())
    }

    /// Returns the refusal for the caller when a handler fails with this error.
    pub fn to_refusal(&self) -> Refusal {
        match self {
            Self::Unsupported { required, .. } => {
                Refusal::missing_capability(required).with_message(self.to_string())
            }
            _ => Refusal::INTERNAL.with_message(self.to_string()),
        }
    }
}

/// An input request that was made and waits for its response.
pub(crate) struct InputFuture<T> {
    shared: Arc<CallState>,
    state: InputFutureState<T>,
    answer: PhantomData<fn() -> T>,
}

enum InputFutureState<T> {
    New(Option<TypedInputRequest<T>>),
    Open { key: String, read: fn(ReceivedInput) -> Result<T, AskError>, retries: usize },
    Done,
}

/// How often an input request is repeated after a response that does not fit it.
const MAX_RETRIES: usize = 2;

impl<T> InputFuture<T> {
    pub(crate) fn new(shared: Arc<CallState>, ask: TypedInputRequest<T>) -> Self {
        Self { shared, state: InputFutureState::New(Some(ask)), answer: PhantomData }
    }
}

impl<T> Future for InputFuture<T> {
    type Output = Result<T, AskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let (answered, read, repeats) = match &mut this.state {
                InputFutureState::New(ask) => {
                    let Some(ask) = ask.take() else { return Poll::Pending };
                    let answered = match this.shared.request_input(ask.key, ask.request, ask.early_answer) {
                        Ok(InputRequestStatus::Pending(key)) => {
                            this.state = InputFutureState::Open { key, read: ask.read, retries: 0 };
                            continue;
                        }
                        Ok(InputRequestStatus::Answered(answered)) => Ok(answered),
                        Err(error) => Err(error),
                    };
                    (answered, ask.read, 0)
                }
                InputFutureState::Open { key, read, retries: repeats } => {
                    (std::task::ready!(this.shared.poll_response(key, cx)), *read, *repeats)
                }
                InputFutureState::Done => return Poll::Pending,
            };
            this.state = InputFutureState::Done;
            match answered.and_then(|answered| this.resolve(answered, read, repeats)) {
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<T> InputFuture<T> {
    /// Reads the response, or repeats the input request if the response does not fit and may be a mistake.
    fn resolve(
        &mut self,
        answered: AnsweredInput,
        read: fn(ReceivedInput) -> Result<T, AskError>,
        repeats: usize,
    ) -> Result<Option<T>, AskError> {
        let AnsweredInput { key, request: question, response: given } = answered;
        match given.and_then(read) {
            Err(AskError::Malformed(_)) if repeats < MAX_RETRIES => {
                self.shared.request_again(key.clone(), question)?;
                self.state = InputFutureState::Open { key, read, retries: repeats + 1 };
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }
}

impl<T> Drop for InputFuture<T> {
    fn drop(&mut self) {
        if let InputFutureState::Open { key, .. } = &self.state {
            self.shared.withdraw(key);
        }
    }
}

/// Several input requests of one round.
pub trait AskAll {
    /// The responses, in the order of the input requests.
    type Answers;

    /// Makes the input requests together and waits for all responses.
    #[doc(hidden)]
    fn request_all(self, context: &Context) -> impl Future<Output = Result<Self::Answers, AskError>> + Send;
}

macro_rules! ask_all {
    ($($ask:ident: $answer:ident),+) => {
        impl<$($answer: Send),+> AskAll for ($(TypedInputRequest<$answer>,)+) {
            type Answers = ($($answer,)+);

            async fn request_all(self, context: &Context) -> Result<Self::Answers, AskError> {
                let ($($ask,)+) = self;
                // Unsupported input requests are found before the caller is sent any of the others.
                context.shared().check_all(&[$(($ask.key.as_deref(), &$ask.request)),+])?;
                $(let mut $ask = JoinedInput::new(context.shared().clone(), $ask);)+
                std::future::poll_fn(|cx| {
                    // Every input request is polled in every turn, so that all of them are made before the round
                    // closes.
                    let mut open = false;
                    $(open |= $ask.poll(cx).is_pending();)+
                    if open { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                Ok(($($ask.into_response()?,)+))
            }
        }
    };
}

ask_all!(a: A);
ask_all!(a: A, b: B);
ask_all!(a: A, b: B, c: C);
ask_all!(a: A, b: B, c: C, d: D);

/// One input request of several, with its response once that has come.
struct JoinedInput<T> {
    future: InputFuture<T>,
    response: Option<Result<T, AskError>>,
}

impl<T> JoinedInput<T> {
    fn new(shared: Arc<CallState>, ask: TypedInputRequest<T>) -> Self {
        Self { future: InputFuture::new(shared, ask), response: None }
    }

    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.response.is_none() {
            self.response = Some(std::task::ready!(Pin::new(&mut self.future).poll(cx)));
        }
        Poll::Ready(())
    }

    fn into_response(self) -> Result<T, AskError> {
        self.response.unwrap_or(Err(AskError::Ended))
    }
}
