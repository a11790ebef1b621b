use std::fmt;
use std::sync::Arc;

use super::channel::{Noise, ProcessChannel};
use super::command::Command;
use super::ending::Grace;
use super::error::{Ended, SpawnError, display_name};
use super::exit::{Cause, Exit};
use super::output::Line;
use super::supervise::{Shared, supervise};
use super::system::{self, Input, Started};
use super::tail::Tail;

/// Who is shown every line that a server writes beside the protocol: to standard error, and to standard output where it is no
/// message.
pub type Observer = Arc<dyn Fn(&Line<'_>) + Send + Sync>;

/// How a server is spoken to, and how it is ended.
#[derive(Clone)]
pub struct Options {
    /// How long a message of the server may be, in bytes; 4 MiB by default.
    pub message_bytes: usize,
    /// How long the server has to end by itself.
    pub grace: Grace,
    /// Who is shown the lines that are no messages, at most 8 KiB of each; nobody by default. The last 64 KiB of standard
    /// error are kept anyway.
    pub on_line: Option<Observer>,
}

impl Default for Options {
    fn default() -> Self {
        Self { message_bytes: 4 * 1024 * 1024, grace: Grace::default(), on_line: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("message_bytes", &self.message_bytes)
            .field("grace", &self.grace)
            .field("on_line", &self.on_line.is_some())
            .finish()
    }
}

/// A server that runs as a child of this process.
///
/// Dropping this ends it in the background, by the same steps as [`Process::end`].
#[derive(Debug)]
pub struct Process {
    shared: Arc<Shared>,
    id: u32,
}

impl Process {
    /// Starts a server, and gives the channel to it.
    ///
    /// One task watches over it and reads its standard error, whatever becomes of the channel.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(command: &Command, options: Options) -> Result<(ProcessChannel, Self), SpawnError> {
        let Started { child, stdin, stdout, stderr } = system::start(command, Input::Pipe)?;
        let shared = Arc::new(Shared::new(display_name(&command.program)));
        let Options { message_bytes, grace, on_line } = options;
        let channel = ProcessChannel::new(stdout, stdin, message_bytes, Arc::clone(&shared), on_line.clone());
        let process = Self { shared: Arc::clone(&shared), id: child.id() };
        let runtime = child.runtime().clone();
        runtime.spawn(supervise(child, stderr, shared, grace, on_line));
        Ok((channel, process))
    }

    /// Returns its process id, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns how it ended, once it has.
    pub fn exit(&self) -> Option<Exit> {
        self.shared.exit()
    }

    /// Waits until it has ended and is reaped.
    ///
    /// Cancel safe.
    pub async fn exited(&self) -> Exit {
        self.shared.exited().await
    }

    /// Ends it: closes its standard input, waits, asks its group by a signal, waits, and kills the group.
    ///
    /// If the future is dropped, that goes on in the background.
    pub async fn end(self) -> Exit {
        self.shared.ask(Cause::Asked);
        self.shared.exited().await
    }

    /// Returns the last that it wrote to standard error.
    pub fn stderr(&self) -> Tail {
        self.shared.stderr()
    }

    /// Returns what it wrote to standard output beside the protocol.
    pub fn noise(&self) -> Noise {
        self.shared.noise().clone()
    }

    /// Returns all that is known of it, once it has ended.
    pub fn ended(&self) -> Option<Ended> {
        self.shared.ended()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.ask(Cause::Asked);
    }
}
