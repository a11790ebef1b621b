use trunkline_protocol::Raw;
use trunkline_protocol::model::{Answer, Question};

use super::ask::AskError;

/// How a question stands when it has just been put.
#[allow(clippy::large_enum_variant, reason = "it is matched at once, and kept nowhere")]
pub(crate) enum Put {
    Answered(Answered),
    Open(String),
}

/// A question that is no longer open, with what came for it.
pub(crate) struct Answered {
    pub(crate) key: String,
    pub(crate) question: Question,
    pub(crate) given: Result<Given, AskError>,
}

/// An answer, as it was understood and as it came.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) answer: Answer,
    pub(crate) raw: Raw,
}
