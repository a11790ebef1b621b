//! Rounds: how a call that asked something waits for the request that brings the answer.

mod digest;
mod lot;
mod seal;

pub(crate) use self::digest::digest;
pub(crate) use self::lot::{Lot, Reclaimed};
pub(crate) use self::seal::{Binding, Sealer, Then};
pub use self::seal::{StateKeys, StateKeysError};
