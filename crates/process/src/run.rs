use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::command::Command;
use super::ending;
use super::error::SpawnError;
use super::exit::{Cause, Exit};
use super::observe::Cutter;
use super::output::{Captured, Line, Output, Source, Watcher};
use super::system::{self, Child, Input, Started};

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
    pub within: Option<Duration>,
    /// How long a command that is made to end has from `SIGTERM` until it is killed; two seconds by default.
    pub term: Duration,
    /// How long what a command started is waited for after it has ended itself, while that still holds one of its
    /// outputs. Then it is killed. Half a second by default.
    pub stragglers: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            stdout_bytes: 1024 * 1024,
            stderr_bytes: 256 * 1024,
            line_bytes: 8 * 1024,
            within: Some(Duration::from_secs(60)),
            term: Duration::from_secs(2),
            stragglers: Duration::from_millis(500),
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Why it ended: by itself, or because its time was up.
    pub cause: Cause,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
}

/// Runs a command whose standard input is empty, and waits for its end.
///
/// Dropping the future ends the command and all that it started.
///
/// # Errors
/// The command cannot be started.
pub async fn run(command: &Command, limits: &RunLimits) -> Result<Finished, SpawnError> {
    run_watched(command, limits, &mut ()).await
}

/// Runs a command as [`run`] does, and shows every line that it writes to a watcher as soon as it is there.
///
/// # Errors
/// The command cannot be started.
pub async fn run_observed(
    command: &Command,
    limits: &RunLimits,
    observe: impl FnMut(Line<'_>) + Send,
) -> Result<Finished, SpawnError> {
    run_watched(command, limits, &mut Lines(observe)).await
}

/// Runs a command as [`run`] does, and tells a watcher what happens meanwhile.
///
/// # Errors
/// The command cannot be started.
pub async fn run_watched(
    command: &Command,
    limits: &RunLimits,
    watcher: &mut impl Watcher,
) -> Result<Finished, SpawnError> {
    let running = Running::start(command, limits, watcher)?;
    Ok(running.finish(limits, watcher).await)
}

/// Shows lines to a function.
struct Lines<F>(F);

impl<F: FnMut(Line<'_>) + Send> Watcher for Lines<F> {
    fn wants_lines(&self) -> bool {
        true
    }

    fn line(&mut self, line: Line<'_>) {
        (self.0)(line);
    }
}

/// A command that runs; it is made to end when this is dropped.
struct Running {
    /// Present until it was concluded.
    child: Option<Child>,
    outputs: Outputs,
    term: Duration,
}

struct Outputs {
    stdout: Output,
    stderr: Output,
}

impl Running {
    fn start(command: &Command, limits: &RunLimits, watcher: &mut dyn Watcher) -> Result<Self, SpawnError> {
        let Started { child, stdout, stderr, .. } = system::start(command, Input::Empty)?;
        watcher.started(child.id());
        let wants_lines = watcher.wants_lines();
        let cutter = || wants_lines.then(|| Cutter::new(limits.line_bytes));
        let outputs = Outputs {
            stdout: Output::new(stdout, Source::Stdout, limits.stdout_bytes, cutter()),
            stderr: Output::new(stderr, Source::Stderr, limits.stderr_bytes, cutter()),
        };
        Ok(Self { child: Some(child), outputs, term: limits.term })
    }

    async fn finish(mut self, limits: &RunLimits, watcher: &mut dyn Watcher) -> Finished {
        let (cause, has_ended) = self.until_exit(limits, watcher).await;
        let Self { child, outputs, .. } = &mut self;
        let mut exit = Exit::Unknown;
        if let Some(running) = child {
            let is_read = outputs.is_read();
            let reading = pin!(poll_fn(|cx| outputs.poll_read(cx, watcher)));
            let reading = (!is_read).then_some(reading);
            exit = ending::conclude(running, has_ended, reading, limits.stragglers).await;
        }
        *child = None;
        let Outputs { stdout, stderr } = outputs;
        Finished { exit, cause, stdout: stdout.take_captured(), stderr: stderr.take_captured() }
    }

    /// Reads both outputs until the command has ended, and makes it end when its time is up.
    ///
    /// Tells why it ended, and whether it did: a process can hang in the kernel.
    async fn until_exit(&mut self, limits: &RunLimits, watcher: &mut dyn Watcher) -> (Cause, bool) {
        let Some(within) = limits.within else {
            poll_fn(|cx| self.poll_exit(cx, watcher)).await;
            return (Cause::Itself, true);
        };
        let mut deadline = pin!(tokio::time::sleep(within));
        if self.exits_before(deadline.as_mut(), watcher).await {
            return (Cause::Itself, true);
        }
        for end in [Child::terminate, Child::kill] {
            self.child.as_mut().map(end);
            deadline.as_mut().reset(Instant::now() + limits.term);
            if self.exits_before(deadline.as_mut(), watcher).await {
                return (Cause::TimedOut, true);
            }
        }
        (Cause::TimedOut, false)
    }

    async fn exits_before(&mut self, mut deadline: Pin<&mut Sleep>, watcher: &mut dyn Watcher) -> bool {
        // The clock comes first: a command that never stops writing must not keep us from looking at it.
        poll_fn(|cx| match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(false),
            Poll::Pending => self.poll_exit(cx, watcher).map(|()| true),
        })
        .await
    }

    /// Polls for the end of the command, and reads what it writes until then.
    fn poll_exit(&mut self, cx: &mut Context<'_>, watcher: &mut dyn Watcher) -> Poll<()> {
        let exited = self.child.as_mut().map_or(Poll::Ready(()), |child| child.poll_exited(cx));
        if exited.is_pending() {
            let _ = self.outputs.poll_read(cx, watcher);
        }
        exited
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let outputs = [self.outputs.stdout.take_pipe(), self.outputs.stderr.take_pipe()];
            ending::in_background(child, outputs, self.term);
        }
    }
}

impl Outputs {
    /// Polls for the end of both.
    fn poll_read(&mut self, cx: &mut Context<'_>, watcher: &mut dyn Watcher) -> Poll<()> {
        let stdout = self.stdout.poll_end(cx, watcher);
        let stderr = self.stderr.poll_end(cx, watcher);
        if stdout.is_ready() && stderr.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn is_read(&self) -> bool {
        self.stdout.is_at_end() && self.stderr.is_at_end()
    }
}
