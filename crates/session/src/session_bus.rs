//! The trait of the bus between processes that share sessions.

use std::fmt::{self, Debug};

use bytes::Bytes;

use crate::StoreError;
use crate::session_store::BoxFuture;

/// The id of a process on a bus: random, and new with each start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(u64);

impl ProcessId {
    /// Creates an id from the operating system's random numbers.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        getrandom::u64().map(Self)
    }

    /// Makes the id with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits of the id.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Reads the written form: exactly 16 lowercase hexadecimal characters.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self(u64::from_str_radix(text, 16).ok()?);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a message to one process was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusDelivery {
    /// It is in the inbox of the process, which reads it unless it ends before.
    Delivered,
    /// The process has left the bus, or has not reported for some time.
    ProcessGone,
}

/// What a process receives over the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    /// A message to this process alone.
    Message(Bytes),
    /// A message to all processes, from another one.
    Published(Bytes),
    /// Messages may have been lost here: the process has to check what it has in memory of shared sessions.
    Gap,
}

/// Carries messages between the processes that share a [`SessionStore`](crate::SessionStore) and an
/// [`EventStore`](crate::EventStore), within [`BusLimits`](crate::BusLimits).
///
/// Messages from one process to one other process, and messages that one process publishes, arrive in the order in which
/// they were sent if each is waited for. What is sent and what is published arrive in no common order.
///
/// A message is only ever made by a process that shares the store: an implementation that uses a server of its own
/// authenticates what it reads there.
///
/// Every implementation passes [`contract::bus`](crate::contract::bus).
pub trait SessionBus: Send + Sync + Debug + 'static {
    /// Returns the id of this process.
    fn process(&self) -> ProcessId;

    /// Puts a message into the inbox of one process.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]; [`StoreError::Full`] for an inbox that its process does not empty;
    /// [`StoreError::Unavailable`], and the message may or may not be delivered.
    fn send(&self, to: ProcessId, message: Bytes) -> BoxFuture<'static, Result<BusDelivery, StoreError>>;

    /// Sends a message to all other processes.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]; [`StoreError::Unavailable`], and the message may or may not be delivered.
    fn publish(&self, message: Bytes) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Reports whether a process is on the bus. One that ended without leaving counts as alive for some seconds.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    fn is_alive(&self, process: ProcessId) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Waits for what arrives next; `None` once this process has left. For one task.
    ///
    /// Cancel safe: a future that is dropped has taken nothing.
    fn next(&self) -> BoxFuture<'_, Option<BusEvent>>;

    /// Leaves the bus: from now on this process counts as gone.
    fn leave(&self) -> BoxFuture<'static, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_id_reads_only_its_own_written_form() {
        for (text, accepted) in [
            ("0123456789abcdef", true),
            ("0000000000000001", true),
            ("1", false),
            ("0123456789ABCDEF", false),
            ("+123456789abcdef", false),
            ("", false),
        ] {
            let id = ProcessId::parse(text).map(|id| id.to_string());
            assert_eq!(id.as_deref(), accepted.then_some(text), "{text}");
        }
    }
}
