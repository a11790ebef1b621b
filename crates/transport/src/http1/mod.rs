//! What both ends of HTTP/1.1 have in common: how bytes are read, and where heads and bodies end in them.

mod framing;
mod intake;
#[cfg(test)]
pub(crate) mod nearly;
mod written;

pub use self::framing::{Chunks, Framing, Taken, read_length};
pub use self::intake::Intake;
pub use self::written::Written;

/// The bytes that a head may have, all together.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// The number of headers that a head may have.
pub const MOST_HEADERS: usize = 100;

/// A body up to this is copied behind its head, which is cheaper than to write from two places.
pub const COPIED_BYTES: usize = 8 * 1024;
