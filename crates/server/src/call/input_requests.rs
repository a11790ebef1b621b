use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::InputRequest;
use trunkline_protocol::{RawJson, RequestId};

use super::ask::{AskError, EarlyAnswer, InputFuture, TypedInputRequest};
use super::call_state::{CallState, UNDECLARED, wake};
use super::locked_state::{LockedCallState, PendingInput};
use super::notification::CallNotification;
use super::received_input::{AnsweredInput, InputRequestStatus, ReceivedInput};

/// Input requests of the handler.
impl CallState {
    /// Consumes the response that came with the request, or makes the input request; returns the key of the latter.
    pub(crate) fn request_input(
        &self,
        key: Option<String>,
        question: InputRequest,
        early: EarlyAnswer,
    ) -> Result<InputRequestStatus, AskError> {
        let mut state = self.lock();
        if !self.method().may_require_input() {
            return Err(AskError::unsupported(&question, "this method cannot put questions"));
        }
        let key = key.unwrap_or_else(|| {
            state.unnamed_requests += 1;
            unnamed_key(state.unnamed_requests)
        });
        state.check_unused(&key)?;
        let given = state.unused_responses.iter().position(|(given, _)| *given == key);
        if let Some(at) = given.filter(|_| early == EarlyAnswer::Accept) {
            let (key, raw) = state.unused_responses.remove(at);
            // A malformed response is not an error: the input request is simply repeated.
            if let Ok(answer) = question.read_response(&raw) {
                if let Some(used) = &mut state.used_responses {
                    used.push((key.clone(), raw.clone()));
                }
                return Ok(InputRequestStatus::Answered(AnsweredInput {
                    key,
                    request: question,
                    response: Ok(ReceivedInput { response: answer, raw }),
                }));
            }
        }
        state.open_request(key.clone(), question)?;
        // A handler may request input from a task of its own, and the exchange does not see the polls of that task.
        wake(state.exchange_waker.take(), state);
        Ok(InputRequestStatus::Pending(key))
    }

    /// Repeats an input request after an unusable response.
    pub(crate) fn request_again(&self, key: String, question: InputRequest) -> Result<(), AskError> {
        let mut state = self.lock();
        if let Some(used) = &mut state.used_responses {
            // Or the call would get it again when it is replayed.
            used.retain(|(used, _)| *used != key);
        }
        state.open_request(key, question)?;
        wake(state.exchange_waker.take(), state);
        Ok(())
    }

    /// Checks, before any of them is sent, that all input requests of a group can be sent.
    ///
    /// # Errors
    /// The error of [`CallState::request_input`] for the first that cannot.
    pub(crate) fn check_all(&self, questions: &[(Option<&str>, &InputRequest)]) -> Result<(), AskError> {
        let state = self.lock();
        let (mut unnamed, mut keys) = (state.unnamed_requests, Vec::with_capacity(questions.len()));
        for (key, question) in questions {
            let key = match key {
                Some(key) => (*key).to_owned(),
                None => {
                    unnamed += 1;
                    unnamed_key(unnamed)
                }
            };
            if keys.contains(&key) || state.requests.iter().any(|entry| entry.key == key) {
                return Err(AskError::KeyInUse(key));
            }
            let given = state.unused_responses.iter().find(|(given, _)| *given == key);
            if given.is_none_or(|(_, raw)| question.read_response(raw).is_err()) {
                state.check_supported(question)?;
            }
            keys.push(key);
        }
        Ok(())
    }

    pub(crate) fn poll_response(
        &self,
        key: &str,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<AnsweredInput, AskError>> {
        let mut state = self.lock();
        let Some(at) = state.requests.iter().position(|entry| entry.key == key) else {
            return Poll::Ready(Err(AskError::Ended));
        };
        let Some(entry) = state.requests.get_mut(at) else { return Poll::Pending };
        if entry.response.is_none() {
            entry.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let PendingInput { key, request: question, response: answer, .. } = state.requests.remove(at);
        Poll::Ready(Ok(AnsweredInput {
            key,
            request: question,
            response: answer.unwrap_or(Err(AskError::Ended)),
        }))
    }

    /// Sends input requests and keeps their responses for the next run of the handler.
    ///
    /// # Errors
    /// The method of the first input request without a response, and the reason.
    pub(crate) async fn collect_responses(
        self: &Arc<Self>,
        questions: Vec<(String, InputRequest)>,
    ) -> Result<(), (Option<&'static str>, AskError)> {
        let each: Vec<_> = questions.iter().map(|(key, question)| (Some(key.as_str()), question)).collect();
        self.check_all(&each).map_err(|error| (None, error))?;
        let mut pending: Vec<_> = questions
            .into_iter()
            .map(|(key, question)| {
                (
                    key.clone(),
                    question.method(),
                    InputFuture::new(self.clone(), TypedInputRequest::raw(key, question)),
                )
            })
            .collect();
        let mut answers = Vec::with_capacity(pending.len());
        // Every input request is polled in every turn, so that all of them are made before the round closes.
        std::future::poll_fn(|cx| {
            let mut failed = None;
            pending.retain_mut(|(key, method, asking)| match Pin::new(asking).poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(raw)) => {
                    answers.push((std::mem::take(key), raw));
                    false
                }
                Poll::Ready(Err(error)) => {
                    failed.get_or_insert((Some(*method), error));
                    false
                }
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if pending.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await?;
        // As in the other era, the next run of the handler gets only the responses of the last round.
        self.lock().unused_responses = answers;
        Ok(())
    }

    /// Returns the open input request with this key.
    pub(crate) fn open_request_of(&self, key: &str) -> Option<InputRequest> {
        let state = self.lock();
        let open = state.requests.iter().find(|entry| entry.key == key && entry.response.is_none());
        open.map(|entry| entry.request.clone())
    }

    /// Delivers an operator's response to an open input request, and notifies the client that the request it was sent
    /// needs none any more.
    pub(crate) fn answer_by_operator(&self, key: &str, id: RequestId, response: RawJson) {
        let mut state = self.lock();
        state.operator_answers.push(key.to_owned());
        state.notifications.push(CallNotification::RequestCancelled { id });
        wake(state.exchange_waker.take(), state);
        self.deliver_response(key, Ok(response));
    }

    /// Reports whether an operator answered the latest input request with this key.
    pub(crate) fn is_operator_answer(&self, key: &str) -> bool {
        self.lock().operator_answers.iter().any(|answered| answered == key)
    }

    pub(crate) fn has_open_requests(&self) -> bool {
        self.lock().requests.iter().any(|entry| entry.response.is_none())
    }

    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().requests.retain(|entry| entry.key != key);
    }
}

impl LockedCallState {
    fn check_unused(&self, key: &str) -> Result<(), AskError> {
        match self.requests.iter().any(|entry| entry.key == key) {
            true => Err(AskError::KeyInUse(key.to_owned())),
            false => Ok(()),
        }
    }

    /// Adds an input request for the exchange to send.
    fn open_request(&mut self, key: String, question: InputRequest) -> Result<(), AskError> {
        self.check_unused(&key)?;
        self.check_supported(&question)?;
        let question = question.adapted_to(&self.caller.capabilities(), Dialect::of(self.caller.revision));
        if !self.operator_answers.is_empty() {
            self.operator_answers.retain(|answered| *answered != key);
        }
        self.requests.push(PendingInput { key, request: question, sent: false, response: None, waker: None });
        Ok(())
    }

    /// Checks that the caller supports an input request, and that its revision can express it.
    fn check_supported(&self, question: &InputRequest) -> Result<(), AskError> {
        if !question.is_supported_by(&self.caller.capabilities()) {
            return Err(AskError::unsupported(question, UNDECLARED));
        }
        question
            .check_supported(Dialect::of(self.caller.revision))
            .map_err(|inexpressible| AskError::unsupported(question, inexpressible.to_string()))
    }
}

/// Makes the key of an input request without one, by the number of those before it.
fn unnamed_key(number: usize) -> String {
    format!("q{number}")
}
