//! Rounds: how a call that asked something waits for the request that brings the answer.
//!
//! # Invariants
//!
//! - Sealed state with a changed or an added bit does not open: `no_changed_bit_and_no_addition_opens`.

mod digest;
mod seal;
mod suspended_calls;

pub(crate) use self::digest::params_digest;
pub(crate) use self::seal::{SealedContinuation, StateBinding, StateSealer};
pub use self::seal::{StateKeys, StateKeysError};
pub(crate) use self::suspended_calls::{ResumedContent, SuspendedCalls};
