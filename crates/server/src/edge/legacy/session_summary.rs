use trunkline_session::{SessionRecord, Timestamp};

/// A legacy session, for operators.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// The session as it is stored.
    pub record: SessionRecord,
    /// When it was last used, if it was on this node.
    pub last_used: Option<Timestamp>,
    /// Whether a call runs or a stream is open on this node.
    pub is_busy: bool,
}
