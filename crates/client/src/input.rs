//! Handlers for input requests of servers.
//!
//! # Invariants
//!
//! - An input request is answered, declined or left open in the same way in both eras:
//!   `elicitation_accept_decline_and_cancel_are_equal_in_both_eras`.
//! - An input request is answered even if the call that it was attributed to has ended:
//!   `input_request_is_answered_after_its_call_has_ended`,
//!   `concurrent_calls_of_many_threads_with_input_requests_all_complete`.

use futures_util::future::BoxFuture;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{Method, Refusal};

use crate::client::ClientInner;
use crate::dropped_message::{DropCallback, DroppedMessage};

/// Answers input requests: form and URL elicitation for the user, sampling for a model, and roots.
///
/// It is the same in both eras. Servers may request only what [`InputHandler::capabilities`] declares; anything
/// else is refused without calling the handler.
pub trait InputHandler: Send + Sync + 'static {
    /// Returns the capabilities to declare.
    ///
    /// ```
    /// # use trunkline_client::protocol::model::ClientCapabilities;
    /// let both = ClientCapabilities::default().with_form().with_roots();
    /// assert!(both.form() && both.roots() && !both.url());
    /// ```
    fn capabilities(&self) -> ClientCapabilities;

    /// Answers one input request. The future is dropped when the response is no longer needed.
    fn answer(
        &self,
        origin: InputOrigin,
        input_request: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>>;

    /// Called when the server notifies that a URL elicitation is complete, by its `elicitationId`. Only servers of
    /// 2025-11-25 send this notification, and it may arrive long after the call.
    fn elicitation_complete(&self, _elicitation_id: &str) {}
}

/// The origin of an input request.
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
    /// Outside of any call, such as a server that requests the roots as soon as it is connected.
    Session,
}

/// Declares no capability, and answers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoInputHandler;

impl InputHandler for NoInputHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    fn answer(
        &self,
        _: InputOrigin,
        input_request: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let problem = format!("this client does not answer `{}`", input_request.method());
        Box::pin(std::future::ready(Err(Refusal::METHOD_NOT_FOUND.with_message(problem))))
    }
}

impl ClientInner {
    /// Refuses an input request outside of calls, as one of too many.
    pub(crate) fn refuse_too_many(&self) -> Refusal {
        DropCallback::report(self.plan.on_dropped.as_ref(), DroppedMessage::Request);
        Refusal::TOO_MANY
    }
}
