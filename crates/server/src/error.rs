use std::error::Error;
use std::fmt;

use trunkline_protocol::Refusal;
use trunkline_protocol::model::CallToolResult;

use crate::call::AskError;

/// The error of a handler.
///
/// Any error converts into it by `?`, and a tool's caller gets its text in a result with `isError`, for the model to
/// read and to act on. Two kinds of errors keep their meaning instead: a [`Refusal`] becomes its JSON-RPC error, and
/// an [`AskError`] for a missing capability becomes the refusal for that.
pub struct ToolError(ToolErrorKind);

#[derive(Debug)]
enum ToolErrorKind {
    Message(String),
    Input(AskError),
    Refused(Refusal),
}

impl ToolError {
    /// Fails with a message for the model to read.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(ToolErrorKind::Message(text.to_string()))
    }

    /// Refuses the call with a JSON-RPC error.
    pub fn refused(refusal: Refusal) -> Self {
        Self(ToolErrorKind::Refused(refusal))
    }

    /// Returns the result for the caller of a tool.
    ///
    /// # Errors
    /// The refusal, if the error is one.
    pub fn into_tool_result(self) -> Result<CallToolResult, Refusal> {
        match self.0 {
            ToolErrorKind::Message(text) => Ok(CallToolResult::error(text)),
            ToolErrorKind::Input(error @ AskError::Unsupported { .. }) => Err(error.to_refusal()),
            ToolErrorKind::Input(error) => Ok(CallToolResult::error(error.to_string())),
            ToolErrorKind::Refused(refusal) => Err(refusal),
        }
    }

    /// Returns the refusal for the caller of a prompt or a resource, where a failure cannot be a result.
    pub fn into_refusal(self) -> Refusal {
        match self.0 {
            ToolErrorKind::Message(text) => Refusal::INTERNAL.with_message(text),
            ToolErrorKind::Input(error) => error.to_refusal(),
            ToolErrorKind::Refused(refusal) => refusal,
        }
    }
}

// `ToolError` is deliberately no `std::error::Error`: that is what allows it to be made from every one.
impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let erased: &(dyn Error + 'static) = &error;
        if let Some(refusal) = erased.downcast_ref::<Refusal>() {
            return Self(ToolErrorKind::Refused(refusal.clone()));
        }
        if let Some(ask) = erased.downcast_ref::<AskError>() {
            return Self(ToolErrorKind::Input(ask.clone()));
        }
        // An error of the author's own may wrap that of an input request; the missing capability must still reach the
        // client.
        let mut causes =
            std::iter::successors(erased.source(), |&cause: &&(dyn Error + 'static)| cause.source());
        let unsupported = causes.find_map(|cause| {
            let ask = cause.downcast_ref::<AskError>()?;
            matches!(ask, AskError::Unsupported { .. }).then(|| ask.clone())
        });
        match unsupported {
            Some(ask) => Self(ToolErrorKind::Input(ask)),
            None => Self::new(error),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolErrorKind::Message(text) => f.write_str(text),
            ToolErrorKind::Input(error) => error.fmt(f),
            ToolErrorKind::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// Everything that is wrong with the parts of a server, one problem per line when displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    problems: Vec<String>,
}

impl BuildError {
    pub(crate) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// Returns the problems, each a message that names its part.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl Error for BuildError {}

/// Why a call without a transport failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The call was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::{Era, RawJson};

    use super::*;

    fn unsupported() -> AskError {
        AskError::Unsupported {
            method: "elicitation/create",
            reason: "not declared".to_owned(),
            required: RawJson::parse(r#"{"elicitation":{}}"#).unwrap(),
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the booking failed")]
    struct WrappedAskError(#[source] AskError);

    fn through_question_mark<E: Into<ToolError>>(error: E) -> ToolError {
        error.into()
    }

    #[test]
    fn tool_errors_become_error_results_and_refusals_stay_refusals() {
        let said = |text: &str| Ok(CallToolResult::error(text));
        for (error, expected) in [
            (ToolError::new("no seats"), said("no seats")),
            (through_question_mark(std::io::Error::other("disk full")), said("disk full")),
            (through_question_mark(AskError::Declined), said("the user declined")),
            (through_question_mark(WrappedAskError(AskError::Declined)), said("the booking failed")),
            (through_question_mark(Refusal::TOO_MANY), Err(Refusal::TOO_MANY)),
            (through_question_mark(unsupported()), Err(unsupported().to_refusal())),
            (through_question_mark(WrappedAskError(unsupported())), Err(unsupported().to_refusal())),
        ] {
            assert_eq!(error.into_tool_result(), expected);
        }
    }

    #[test]
    fn missing_capability_keeps_its_error_code_for_prompts_and_resources() {
        let refusal = through_question_mark(unsupported()).into_refusal();
        assert!(refusal.is_same_kind(&Refusal::MISSING_CAPABILITY));
        assert_eq!(refusal.code(Era::Modern), -32021);
        let said = ToolError::new("nothing there").into_refusal();
        assert!(said.is_same_kind(&Refusal::INTERNAL));
        assert_eq!(said.message(), "nothing there");
    }

    #[test]
    fn build_error_lists_one_problem_per_line() {
        let error = BuildError::new(vec!["one".into(), "two".into()]);
        assert_eq!(error.to_string(), "one\ntwo");
    }
}
