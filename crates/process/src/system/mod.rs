//! What differs between operating systems: how a child is started, signalled and reaped.

#[cfg(unix)]
mod exited;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub(super) use self::unix::{Child, start};
#[cfg(unix)]
pub use self::unix::{Reader, Writer};
#[cfg(not(unix))]
pub(super) use self::windows::{Child, start};
#[cfg(not(unix))]
pub use self::windows::{Reader, Writer};

/// What a child finds as its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A pipe that we write to.
    Pipe,
    /// Nothing: it is at its end from the start.
    Empty,
}

/// A child that was just started, with our ends of its pipes.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    /// Present if [`Input::Pipe`] was asked for.
    pub(super) stdin: Option<Writer>,
    pub(super) stdout: Reader,
    pub(super) stderr: Reader,
}
