use trunkline_protocol::RawJson;
use trunkline_protocol::model::{InputRequest, InputResponse};

use super::ask::AskError;

/// The status of an input request right after it was made.
#[allow(clippy::large_enum_variant, reason = "it is matched at once, and kept nowhere")]
pub(crate) enum InputRequestStatus {
    Answered(AnsweredInput),
    Pending(String),
}

/// An input request that is no longer open, with its response.
pub(crate) struct AnsweredInput {
    pub(crate) key: String,
    pub(crate) request: InputRequest,
    pub(crate) response: Result<ReceivedInput, AskError>,
}

/// A response, parsed and as received.
#[derive(Debug)]
pub(crate) struct ReceivedInput {
    pub(crate) response: InputResponse,
    pub(crate) raw: RawJson,
}
