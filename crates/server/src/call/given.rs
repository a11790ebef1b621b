use trunkline_protocol::Raw;
use trunkline_protocol::model::Answer;

/// How a question stands when it has just been put.
pub(crate) enum Put {
    Answered(Given),
    Open(String),
}

/// An answer, as it was understood and as it came.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) answer: Answer,
    pub(crate) raw: Raw,
}
