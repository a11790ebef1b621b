//! Who answers what servers ask.
//!
//! # Invariants
//!
//! - An input request is answered, declined or left open in the same way in both eras:
//!   `a_question_is_answered_declined_or_left_open_in_the_same_way_in_both_eras`.
//! - An input request is answered even if the call that it was attributed to has ended:
//!   `a_question_is_answered_although_the_call_that_it_was_given_to_is_over`,
//!   `calls_of_many_threads_that_ask_at_one_time_all_end`.

use futures_util::future::BoxFuture;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{Method, Refusal};

/// Answers what servers ask while they work: forms and pages for the user, conversations for a model, roots.
///
/// It is the same in both eras. Servers ask only what [`InputHandler::capabilities`] declares; anything else is refused
/// without a word to the handler.
pub trait InputHandler: Send + Sync + 'static {
    /// Returns what can be answered.
    ///
    /// ```
    /// # use trunkline_client::protocol::model::ClientCapabilities;
    /// let both = ClientCapabilities::default().with_form().with_roots();
    /// assert!(both.form() && both.roots() && !both.url());
    /// ```
    fn capabilities(&self) -> ClientCapabilities;

    /// Answers one question. The future is dropped when nobody waits for the answer any more.
    fn answer(
        &self,
        origin: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>>;

    /// Hears from the server that the user is done at a page that it asked for, by the `elicitationId` of the question. Only
    /// servers of 2025-11-25 say so, and it may come long after the call.
    fn elicitation_complete(&self, _elicitation_id: &str) {}
}

/// Where a question came up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputOrigin {
    /// Within a call.
    Call {
        /// The method of the call.
        method: Method,
        /// The tool, prompt or resource that was called.
        name: Option<String>,
    },
    /// Outside of any call: a server that asks for roots as soon as it is connected, for one.
    Session,
}

/// Answers nothing, and declares so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoInputHandler;

impl InputHandler for NoInputHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let problem = format!("this client does not answer `{}`", question.method());
        Box::pin(std::future::ready(Err(Refusal::METHOD_NOT_FOUND.with_message(problem))))
    }
}
