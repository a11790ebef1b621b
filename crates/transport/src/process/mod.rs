//! Servers that are programs: started by [`trunkline_process`], with a channel over their pipes.

mod channel;

use std::fmt;

pub use trunkline_process::*;

pub use self::channel::ProcessChannel;

/// The options of a server process.
#[derive(Clone)]
pub struct ProcessOptions {
    /// The most bytes of a message of the server; 4 MiB by default.
    pub message_bytes: usize,
    /// The grace periods of its shutdown.
    pub grace: GracePeriods,
    /// Receives the lines that are not messages, at most 8 KiB of each; none by default. The last 64 KiB of standard
    /// error are stored anyway.
    pub on_line: Option<LineCallback>,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self { message_bytes: 4 * 1024 * 1024, grace: GracePeriods::default(), on_line: None }
    }
}

impl fmt::Debug for ProcessOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessOptions")
            .field("message_bytes", &self.message_bytes)
            .field("grace", &self.grace)
            .field("on_line", &self.on_line.is_some())
            .finish()
    }
}

/// Starts a server, and returns its channel.
///
/// One task supervises it and reads its standard error, independent of the channel.
///
/// # Errors
/// The program cannot be started.
pub fn spawn(
    command: &Command,
    options: ProcessOptions,
) -> Result<(ProcessChannel, ServerProcess), SpawnError> {
    let ProcessOptions { message_bytes, grace, on_line } = options;
    let (pipes, process) = ServerProcess::spawn(command, grace, on_line)?;
    Ok((ProcessChannel::new(pipes, message_bytes), process))
}
