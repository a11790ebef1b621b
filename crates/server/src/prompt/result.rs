use trunkline_protocol::Refusal;
use trunkline_protocol::model::{GetPromptResult, PromptMessage};

use crate::error::ToolError;

/// What a prompt's handler may return; text is one message of the user.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a prompt can return",
    label = "a prompt cannot return this",
    note = "a prompt returns text, a `PromptMessage`, a `Vec` of them, a `GetPromptResult`, or a `Result` of one of these"
)]
pub trait IntoPromptResult {
    /// Makes the result.
    ///
    /// # Errors
    /// The refusal that the caller gets instead.
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        Ok(self)
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        vec![self].into_prompt_result()
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl<R: IntoPromptResult, E: Into<ToolError>> IntoPromptResult for Result<R, E> {
    fn into_prompt_result(self) -> Result<GetPromptResult, Refusal> {
        match self {
            Ok(result) => result.into_prompt_result(),
            Err(error) => Err(error.into().into_refusal()),
        }
    }
}
