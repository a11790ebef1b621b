use std::fmt;
use std::sync::Arc;
use std::task::Context;

use super::command::Command;
use super::error::{ExitReport, SpawnError, display_name};
use super::exit::{ExitCause, ProcessExit};
use super::output::{OutputLine, OutputStream};
use super::stderr_tail::StderrTail;
use super::stdout_noise::StdoutNoise;
use super::supervise::{LINE_BYTES, ProcessPhase, SharedProcess, supervise};
use super::system::{self, PipeReader, PipeWriter, StartedChild, StdinMode};
use super::termination::GracePeriods;

/// Who is shown every line that a server writes beside the protocol: to standard error, and to standard output where it is no
/// message.
pub type LineCallback = Arc<dyn Fn(&OutputLine<'_>) + Send + Sync>;

/// Our ends of the pipes of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChildPipes {
    /// Its standard input.
    pub stdin: Option<PipeWriter>,
    /// Its standard output.
    pub stdout: PipeReader,
    /// The server itself.
    pub child: ChildWatch,
}

/// What whoever reads the pipes of a server needs of it.
#[derive(Clone)]
pub struct ChildWatch {
    shared: Arc<SharedProcess>,
    /// Who is shown what is no message.
    observer: Option<LineCallback>,
}

impl ChildWatch {
    /// Returns how far the server is, and wakes the task when that changes.
    pub fn phase(&self, cx: &Context<'_>) -> ProcessPhase {
        self.shared.phase_for_channel(cx)
    }

    /// Asks for the end of the server, unless that was done before.
    pub fn request_exit(&self, cause: ExitCause) {
        self.shared.request_exit(cause);
    }

    /// Returns all that is known of it, once it has ended.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.shared.exit_report()
    }

    /// Counts and shows a line of standard output that is not for the reader.
    pub fn record_noise(&self, line: &[u8]) {
        self.shared.noise().add(line);
        if let Some(observer) = &self.observer {
            let text = String::from_utf8_lossy(line.get(..LINE_BYTES).unwrap_or(line));
            observer(&OutputLine { stream: OutputStream::Stdout, text });
        }
    }
}

impl fmt::Debug for ChildWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildWatch").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// A server that runs as a child of this process.
///
/// Dropping this ends it in the background, by the same steps as [`ServerProcess::shut_down`].
#[derive(Debug)]
pub struct ServerProcess {
    shared: Arc<SharedProcess>,
    id: u32,
}

impl ServerProcess {
    /// Starts a server, and gives the pipes to it.
    ///
    /// One task watches over it and reads its standard error, whatever becomes of the pipes.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(
        command: &Command,
        grace: GracePeriods,
        observer: Option<LineCallback>,
    ) -> Result<(ChildPipes, Self), SpawnError> {
        let StartedChild { child, stdin, stdout, stderr } = system::start(command, StdinMode::Pipe)?;
        let shared = Arc::new(SharedProcess::new(display_name(&command.program)));
        let watch = ChildWatch { shared: Arc::clone(&shared), observer: observer.clone() };
        let process = Self { shared: Arc::clone(&shared), id: child.id() };
        let runtime = child.runtime().clone();
        runtime.spawn(supervise(child, stderr, shared, grace, observer));
        Ok((ChildPipes { stdin, stdout, child: watch }, process))
    }

    /// Returns its process id, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns how it ended, once it has.
    pub fn exit(&self) -> Option<ProcessExit> {
        self.shared.exit()
    }

    /// Waits until it has ended and is reaped.
    ///
    /// Cancel safe.
    pub async fn exited(&self) -> ProcessExit {
        self.shared.exited().await
    }

    /// Ends it: closes its standard input, waits, asks its group by a signal, waits, and kills the group.
    ///
    /// If the future is dropped, that goes on in the background.
    pub async fn shut_down(self) -> ProcessExit {
        self.shared.request_exit(ExitCause::Requested);
        self.shared.exited().await
    }

    /// Returns the last that it wrote to standard error.
    pub fn stderr(&self) -> StderrTail {
        self.shared.stderr()
    }

    /// Returns what it wrote to standard output beside the protocol.
    pub fn noise(&self) -> StdoutNoise {
        self.shared.noise().clone()
    }

    /// Returns all that is known of it, once it has ended.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.shared.exit_report()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.shared.request_exit(ExitCause::Requested);
    }
}
