use trunkline_protocol::model::{ClientCapabilities, Implementation};
use trunkline_protocol::{Id, Level, Raw, Revision};
use trunkline_session::{Principal, SessionId};

/// Who sent the latest request of a call, and what that request said about itself.
///
/// What the client says about itself is for display and for choosing how to answer; only the principal was verified.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who the request belongs to.
    pub principal: Principal,
    /// The revision that the request speaks.
    pub revision: Revision,
    /// The capabilities object, as declared.
    pub capabilities: Raw,
    /// The client's description of itself, as declared.
    pub client: Option<Raw>,
    /// The id of the request; a call from within this process has none.
    pub request_id: Option<Id>,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The name under which things may be kept for this caller between calls: that of its cookie, or else of its legacy
    /// session. It says where to look, and nothing about who may.
    pub bag: Option<SessionId>,
    /// The mildest log message that the caller wants, if it wants any.
    pub log_level: Option<Level>,
    /// The token under which the caller wants progress, if it does.
    pub progress_token: Option<Raw>,
}

impl Caller {
    /// Returns what the client declared that it can do; nothing, if what it declared is not legible.
    pub fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::read(&self.capabilities, self.revision).unwrap_or_default()
    }

    /// Returns what the client calls itself, if it says so legibly.
    pub fn client(&self) -> Option<Implementation> {
        Implementation::read(self.client.as_ref()?).ok()
    }
}
