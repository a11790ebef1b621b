use trunkline_session::StoreError;

/// Why a state is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The handle names no state of this caller: it is unknown, expired, or belongs to another caller.
    #[error("there is no state under this handle; call without one to start over")]
    NotFound,
    /// The handle names a state of another type, such as that of another tool.
    #[error("the state under this handle belongs to something else")]
    WrongType,
    /// The session is over, so that it can have no state.
    #[error("the session is over")]
    SessionEnded,
    /// The value has no JSON form, or is larger than the store keeps.
    #[error("the state cannot be stored: {0}")]
    Unstorable(String),
    /// Others replaced the value again and again while it was being changed.
    #[error("the state is being changed by too many calls at once")]
    Contended,
    /// The store cannot be reached.
    #[error("the state cannot be had now")]
    Unavailable,
}

impl From<StoreError> for StateError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooLarge => Self::Unstorable("it is larger than the store keeps".to_owned()),
            other => {
                // The store's error is for the operator; the model could do nothing with it.
                tracing::error!(error = %other, "the state store failed");
                Self::Unavailable
            }
        }
    }
}
