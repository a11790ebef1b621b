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

/// Receives every line of a server that is not a message: all of standard error, and noise on standard output.
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

/// The state of a server that the reader of its pipes needs.
#[derive(Clone)]
pub struct ChildWatch {
    shared: Arc<SharedProcess>,
    /// Receives lines that are not messages.
    observer: Option<LineCallback>,
}

impl ChildWatch {
    /// Returns the phase of the server, and wakes the task when it changes.
    pub fn phase(&self, cx: &Context<'_>) -> ProcessPhase {
        self.shared.phase_for_channel(cx)
    }

    /// Requests the exit of the server, unless it was requested before.
    pub fn request_exit(&self, cause: ExitCause) {
        self.shared.request_exit(cause);
    }

    /// Returns the exit report, once the server has exited.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.shared.exit_report()
    }

    /// Records a line of standard output that is not a message.
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
/// Dropping this terminates the server in the background, by the same steps as [`ServerProcess::shut_down`].
#[derive(Debug)]
pub struct ServerProcess {
    shared: Arc<SharedProcess>,
    id: u32,
}

impl ServerProcess {
    /// Starts a server, and returns its pipes.
    ///
    /// One task supervises it and reads its standard error, independent of the pipes.
    ///
    /// # Errors
    /// The program cannot be started.
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

    /// Returns the process id, which is also the id of the process group.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the exit, once the server has exited.
    pub fn exit(&self) -> Option<ProcessExit> {
        self.shared.exit()
    }

    /// Waits until the server has exited and is reaped.
    ///
    /// Cancel safe.
    pub async fn exited(&self) -> ProcessExit {
        self.shared.exited().await
    }

    /// Shuts the server down: closes its standard input, waits, sends `SIGTERM` to its group, waits, and kills the
    /// group.
    ///
    /// If the future is dropped, the shutdown continues in the background.
    pub async fn shut_down(self) -> ProcessExit {
        self.shared.request_exit(ExitCause::Requested);
        self.shared.exited().await
    }

    /// Returns the end of its standard error.
    pub fn stderr(&self) -> StderrTail {
        self.shared.stderr()
    }

    /// Returns the lines of its standard output that were no messages.
    pub fn noise(&self) -> StdoutNoise {
        self.shared.noise().clone()
    }

    /// Returns the exit report, once the server has exited.
    pub fn exit_report(&self) -> Option<ExitReport> {
        self.shared.exit_report()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.shared.request_exit(ExitCause::Requested);
    }
}
