//! Multi-round-trip requests: how a call that requested input is suspended until the request with the responses.
//!
//! # Invariants
//!
//! - Sealed state with a changed or an added bit does not open: `tampered_request_state_never_decrypts`.

mod digest;
mod seal;
mod suspended_calls;

pub(crate) use self::digest::params_digest;
pub(crate) use self::seal::{SealedContinuation, StateBinding, StateSealer};
pub(crate) use self::suspended_calls::{ResumedContent, SuspendedCalls, SuspendingClient};
