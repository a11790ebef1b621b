//! The platform-specific parts: how a child is started, signalled and reaped.

#[cfg(target_os = "linux")]
mod descendants;
#[cfg(unix)]
mod exit_watcher;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
pub(super) use self::unix::{ChildProcess, start};
#[cfg(unix)]
pub use self::unix::{PipeReader, PipeWriter};
#[cfg(not(unix))]
pub(super) use self::windows::{ChildProcess, start};
#[cfg(not(unix))]
pub use self::windows::{PipeReader, PipeWriter};

/// The standard input of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinMode {
    /// A pipe that we write to.
    Pipe,
    /// Empty: at its end from the start.
    Empty,
}

/// A child that was just started, with our ends of its pipes.
#[derive(Debug)]
pub(super) struct StartedChild {
    pub(super) child: ChildProcess,
    /// Present with [`StdinMode::Pipe`].
    pub(super) stdin: Option<PipeWriter>,
    pub(super) stdout: PipeReader,
    pub(super) stderr: PipeReader,
}
