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

/// What a command may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// How many bytes of standard output are kept; the rest is read and counted. One MiB by default.
    pub stdout_bytes: usize,
    /// How many bytes of standard error are kept; the rest is read and counted. 256 KiB by default.
    pub stderr_bytes: usize,
    /// How many bytes of a line a watcher is given; 8 KiB by default.
    pub line_bytes: usize,
    /// How long the command may run; `None` for as long as it wants. One minute by default.
    pub timeout: Option<Duration>,
    /// How long a command that is made to end has from `SIGTERM` until it is killed; two seconds by default.
    pub kill_after: Duration,
    /// How long what a command started is waited for after it has ended itself, while that still holds one of its
    /// outputs. Then it is killed. Half a second by default.
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

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOutput {
    /// How it ended.
    pub exit: ProcessExit,
    /// Why it ended: by itself, or because its time was up.
    pub cause: ExitCause,
    /// What it wrote to standard output.
    pub stdout: CapturedOutput,
    /// What it wrote to standard error.
    pub stderr: CapturedOutput,
}

/// Runs a command whose standard input is empty, and waits for its end.
///
/// Dropping the future ends the command and all that it started.
///
/// # Errors
/// The command cannot be started.
pub async fn run(command: &Command, limits: &RunLimits) -> Result<RunOutput, SpawnError> {
    run_with_observer(command, limits, &mut ()).await
}

/// Runs a command as [`run`] does, and shows every line that it writes to a watcher as soon as it is there.
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

/// Runs a command as [`run`] does, and tells a watcher what happens meanwhile.
///
/// # Errors
/// The command cannot be started.
pub async fn run_with_observer(
    command: &Command,
    limits: &RunLimits,
    watcher: &mut impl CommandObserver,
) -> Result<RunOutput, SpawnError> {
    let running = RunningCommand::start(command, limits, watcher)?;
    Ok(running.finish(limits, watcher).await)
}

/// Shows lines to a function.
struct LineObserver<F>(F);

impl<F: FnMut(OutputLine<'_>) + Send> CommandObserver for LineObserver<F> {
    fn wants_lines(&self) -> bool {
        true
    }

    fn line(&mut self, line: OutputLine<'_>) {
        (self.0)(line);
    }
}

/// A command that runs; it is made to end when this is dropped.
struct RunningCommand {
    /// Present until it was concluded.
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
        watcher: &mut dyn CommandObserver,
    ) -> Result<Self, SpawnError> {
        let StartedChild { child, stdout, stderr, .. } = system::start(command, StdinMode::Empty)?;
        watcher.started(child.id());
        let wants_lines = watcher.wants_lines();
        let cutter = || wants_lines.then(|| LineSplitter::new(limits.line_bytes));
        let outputs = OutputReaders {
            stdout: OutputReader::new(stdout, OutputStream::Stdout, limits.stdout_bytes, cutter()),
            stderr: OutputReader::new(stderr, OutputStream::Stderr, limits.stderr_bytes, cutter()),
        };
        Ok(Self { child: Some(child), outputs, kill_after: limits.kill_after })
    }

    async fn finish(mut self, limits: &RunLimits, watcher: &mut dyn CommandObserver) -> RunOutput {
        let (cause, has_ended) = self.until_exit(limits, watcher).await;
        let Self { child, outputs, .. } = &mut self;
        let mut exit = ProcessExit::Unknown;
        if let Some(running) = child {
            let is_read = outputs.is_read();
            let reading = pin!(poll_fn(|cx| outputs.poll_read(cx, watcher)));
            let reading = (!is_read).then_some(reading);
            exit = termination::drain_and_reap(running, has_ended, reading, limits.drain_timeout).await;
        }
        *child = None;
        let OutputReaders { stdout, stderr } = outputs;
        RunOutput { exit, cause, stdout: stdout.take_captured(), stderr: stderr.take_captured() }
    }

    /// Reads both outputs until the command has ended, and makes it end when its time is up.
    ///
    /// Tells why it ended, and whether it did: a process can hang in the kernel.
    async fn until_exit(
        &mut self,
        limits: &RunLimits,
        watcher: &mut dyn CommandObserver,
    ) -> (ExitCause, bool) {
        let Some(within) = limits.timeout else {
            poll_fn(|cx| self.poll_exit(cx, watcher)).await;
            return (ExitCause::Voluntary, true);
        };
        let mut deadline = pin!(tokio::time::sleep(within));
        if self.exits_before(deadline.as_mut(), watcher).await {
            return (ExitCause::Voluntary, true);
        }
        for end in [ChildProcess::terminate, ChildProcess::kill] {
            self.child.as_mut().map(end);
            deadline.as_mut().reset(Instant::now() + limits.kill_after);
            if self.exits_before(deadline.as_mut(), watcher).await {
                return (ExitCause::TimedOut, true);
            }
        }
        (ExitCause::TimedOut, false)
    }

    async fn exits_before(
        &mut self,
        mut deadline: Pin<&mut Sleep>,
        watcher: &mut dyn CommandObserver,
    ) -> bool {
        // The clock comes first: a command that never stops writing must not keep us from looking at it.
        poll_fn(|cx| match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(false),
            Poll::Pending => self.poll_exit(cx, watcher).map(|()| true),
        })
        .await
    }

    /// Polls for the end of the command, and reads what it writes until then.
    fn poll_exit(&mut self, cx: &mut Context<'_>, watcher: &mut dyn CommandObserver) -> Poll<()> {
        let exited = self.child.as_mut().map_or(Poll::Ready(()), |child| child.poll_exited(cx));
        if exited.is_pending() {
            let _ = self.outputs.poll_read(cx, watcher);
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
    /// Polls for the end of both.
    fn poll_read(&mut self, cx: &mut Context<'_>, watcher: &mut dyn CommandObserver) -> Poll<()> {
        let stdout = self.stdout.poll_end(cx, watcher);
        let stderr = self.stderr.poll_end(cx, watcher);
        if stdout.is_ready() && stderr.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_read(&self) -> bool {
        self.stdout.is_at_end() && self.stderr.is_at_end()
    }
}
