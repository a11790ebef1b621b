//! Servers that are programs: started by [`trunkline_process`], and spoken to over their pipes.

mod channel;

use std::fmt;

pub use trunkline_process::*;

pub use self::channel::ProcessChannel;

/// How a server is spoken to, and how it is ended.
#[derive(Clone)]
pub struct ProcessOptions {
    /// How long a message of the server may be, in bytes; 4 MiB by default.
    pub message_bytes: usize,
    /// How long the server has to end by itself.
    pub grace: GracePeriods,
    /// Who is shown the lines that are no messages, at most 8 KiB of each; nobody by default. The last 64 KiB of standard
    /// error are kept anyway.
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

/// Starts a server, and gives the channel to it.
///
/// One task watches over it and reads its standard error, whatever becomes of the channel.
///
/// # Errors
/// It cannot be started.
pub fn spawn(
    command: &Command,
    options: ProcessOptions,
) -> Result<(ProcessChannel, ServerProcess), SpawnError> {
    let ProcessOptions { message_bytes, grace, on_line } = options;
    let (pipes, process) = ServerProcess::spawn(command, grace, on_line)?;
    Ok((ProcessChannel::new(pipes, message_bytes), process))
}
