use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::command::Command;
use super::error::SpawnError;
use super::exit::{ExitCause, ProcessExit};
use super::line_splitter::LineSplitter;
use super::output::{CapturedOutput, CommandObserver, OutputLine, OutputReader, OutputStream};
use super::system::{self, ChildProcess, StartedChild, StdinMode};
use super::termination;

/// The resource limits of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// The most bytes of standard output that are captured; the rest is read and counted. One MiB by default.
    pub stdout_bytes: usize,
    /// The most bytes of standard error that are captured; the rest is read and counted. 256 KiB by default.
    pub stderr_bytes: usize,
    /// The most bytes of a line that an observer receives; 8 KiB by default.
    pub line_bytes: usize,
    /// The timeout of the command; `None` for no timeout. One minute by default.
    pub timeout: Option<Duration>,
    /// The grace period between `SIGTERM` and `SIGKILL`; two seconds by default.
    pub kill_after: Duration,
    /// How long descendants that still hold one of the outputs may run after the command has exited. Then they are
    /// killed. Half a second by default.
    pub drain_timeout: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            stdout_bytes: 1024 * 1024,
            stderr_bytes: 256 * 1024,
            line_bytes: 8 * 1024,
            timeout: Some(Duration::from_secs(60)),
            kill_after: Duration::from_secs(2),
            drain_timeout: Duration::from_millis(500),
        }
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOutput {
    /// How the command exited.
    pub exit: ProcessExit,
    /// Why the command exited: by itself, or by its timeout.
    pub cause: ExitCause,
    /// The captured standard output.
    pub stdout: CapturedOutput,
    /// The captured standard error.
    pub stderr: CapturedOutput,
}

/// Runs a command with an empty standard input, and waits for its exit.
///
/// Dropping the future terminates the command and its descendants.
///
/// # Errors
/// The command cannot be started.
pub async fn run(command: &Command, limits: &RunLimits) -> Result<RunOutput, SpawnError> {
    run_with_observer(command, limits, &mut ()).await
}

/// Runs a command as [`run`] does, and passes every line of output to a callback as it arrives.
///
/// # Errors
/// The command cannot be started.
pub async fn run_with_lines(
    command: &Command,
    limits: &RunLimits,
    observe: impl FnMut(OutputLine<'_>) + Send,
) -> Result<RunOutput, SpawnError> {
    run_with_observer(command, limits, &mut LineObserver(observe)).await
}

/// Runs a command as [`run`] does, and reports its progress to an observer.
///
/// # Errors
/// The command cannot be started.
pub async fn run_with_observer(
    command: &Command,
    limits: &RunLimits,
    observer: &mut impl CommandObserver,
) -> Result<RunOutput, SpawnError> {
    let running = RunningCommand::start(command, limits, observer)?;
    Ok(running.finish(limits, observer).await)
}

/// Passes lines to a function.
struct LineObserver<F>(F);

impl<F: FnMut(OutputLine<'_>) + Send> CommandObserver for LineObserver<F> {
    fn wants_lines(&self) -> bool {
        true
    }

    fn line(&mut self, line: OutputLine<'_>) {
        (self.0)(line);
    }
}

/// A running command; dropping this terminates it.
struct RunningCommand {
    /// Present until the command is reaped.
    child: Option<ChildProcess>,
    outputs: OutputReaders,
    kill_after: Duration,
}

struct OutputReaders {
    stdout: OutputReader,
    stderr: OutputReader,
}

impl RunningCommand {
    fn start(
        command: &Command,
        limits: &RunLimits,
        observer: &mut dyn CommandObserver,
    ) -> Result<Self, SpawnError> {
        let StartedChild { child, stdout, stderr, .. } = system::start(command, StdinMode::Empty)?;
        observer.started(child.id());
        let wants_lines = observer.wants_lines();
        let splitter = || wants_lines.then(|| LineSplitter::new(limits.line_bytes));
        let outputs = OutputReaders {
            stdout: OutputReader::new(stdout, OutputStream::Stdout, limits.stdout_bytes, splitter()),
            stderr: OutputReader::new(stderr, OutputStream::Stderr, limits.stderr_bytes, splitter()),
        };
        Ok(Self { child: Some(child), outputs, kill_after: limits.kill_after })
    }

    async fn finish(mut self, limits: &RunLimits, observer: &mut dyn CommandObserver) -> RunOutput {
        let (cause, has_ended) = self.until_exit(limits, observer).await;
        let Self { child, outputs, .. } = &mut self;
        let mut exit = ProcessExit::Unknown;
        if let Some(running) = child {
            let is_read = outputs.is_read();
            let reading = pin!(poll_fn(|cx| outputs.poll_read(cx, observer)));
            let reading = (!is_read).then_some(reading);
            exit = termination::drain_and_reap(running, has_ended, reading, limits.drain_timeout).await;
        }
        *child = None;
        let OutputReaders { stdout, stderr } = outputs;
        RunOutput { exit, cause, stdout: stdout.take_captured(), stderr: stderr.take_captured() }
    }

    /// Reads both outputs until the command has exited, and terminates it at its timeout.
    ///
    /// Returns the cause, and whether the command exited at all: a process can hang in the kernel.
    async fn until_exit(
        &mut self,
        limits: &RunLimits,
        observer: &mut dyn CommandObserver,
    ) -> (ExitCause, bool) {
        let Some(within) = limits.timeout else {
            poll_fn(|cx| self.poll_exit(cx, observer)).await;
            return (ExitCause::Voluntary, true);
        };
        let mut deadline = pin!(tokio::time::sleep(within));
        if self.exits_before(deadline.as_mut(), observer).await {
            return (ExitCause::Voluntary, true);
        }
        for end in [ChildProcess::terminate, ChildProcess::kill] {
            self.child.as_mut().map(end);
            deadline.as_mut().reset(Instant::now() + limits.kill_after);
            if self.exits_before(deadline.as_mut(), observer).await {
                return (ExitCause::TimedOut, true);
            }
        }
        (ExitCause::TimedOut, false)
    }

    async fn exits_before(
        &mut self,
        mut deadline: Pin<&mut Sleep>,
        observer: &mut dyn CommandObserver,
    ) -> bool {
        // The deadline is polled first: endless output must not delay the timeout.
        poll_fn(|cx| match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(false),
            Poll::Pending => self.poll_exit(cx, observer).map(|()| true),
        })
        .await
    }

    /// Polls for the exit of the command, and reads its output until then.
    fn poll_exit(&mut self, cx: &mut Context<'_>, observer: &mut dyn CommandObserver) -> Poll<()> {
        let exited = self.child.as_mut().map_or(Poll::Ready(()), |child| child.poll_exited(cx));
        if exited.is_pending() {
            let _ = self.outputs.poll_read(cx, observer);
        }
        exited
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let outputs = [self.outputs.stdout.take_pipe(), self.outputs.stderr.take_pipe()];
            termination::terminate_in_background(child, outputs, self.kill_after);
        }
    }
}

impl OutputReaders {
    /// Polls both outputs to their end.
    fn poll_read(&mut self, cx: &mut Context<'_>, observer: &mut dyn CommandObserver) -> Poll<()> {
        let stdout = self.stdout.poll_end(cx, observer);
        let stderr = self.stderr.poll_end(cx, observer);
        if stdout.is_ready() && stderr.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_read(&self) -> bool {
        self.stdout.is_at_end() && self.stderr.is_at_end()
    }
}
