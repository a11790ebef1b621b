use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use super::child_counter::BackgroundExit;
use super::error::ExitReport;
use super::exit::{ExitCause, ProcessExit};
use super::handle::LineCallback;
use super::line_splitter::LineSplitter;
use super::output::{OutputLine, OutputStream};
use super::stderr_tail::{StderrBuffer, StderrTail};
use super::stdout_noise::StdoutNoise;
use super::system::{ChildProcess, PipeReader};
use super::termination::{self, GracePeriods};

/// The phase of a server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessPhase {
    /// The process is running.
    Running,
    /// The exit was requested, for this reason.
    Ending(ExitCause),
    /// The process is reaped.
    Exited(ProcessExit),
}

/// The state that the handle of a server, its channel and its supervisor share.
#[derive(Debug)]
pub(super) struct SharedProcess {
    program: String,
    state: watch::Sender<PhaseState>,
    /// Wakes the channel when the phase changes.
    channel: AtomicWaker,
    tail: Mutex<StderrBuffer>,
    noise: Mutex<StdoutNoise>,
    /// Set as soon as the exit is requested, not when the supervisor task runs.
    background_exit: Mutex<Option<BackgroundExit>>,
}

#[derive(Clone, Copy, Debug)]
struct PhaseState {
    phase: ProcessPhase,
    cause: ExitCause,
}

impl SharedProcess {
    pub(super) fn new(program: String) -> Self {
        Self {
            program,
            state: watch::Sender::new(PhaseState {
                phase: ProcessPhase::Running,
                cause: ExitCause::Voluntary,
            }),
            channel: AtomicWaker::new(),
            tail: Mutex::new(StderrBuffer::new()),
            noise: Mutex::new(StdoutNoise::default()),
            background_exit: Mutex::new(None),
        }
    }

    /// Requests the exit of the server, unless it was requested before.
    pub(super) fn request_exit(&self, cause: ExitCause) {
        self.state.send_if_modified(|state| {
            let is_first = state.phase == ProcessPhase::Running;
            // A request of the caller overrides an earlier cause: the caller does not need an error report any more.
            if is_first || cause == ExitCause::Requested {
                state.cause = cause;
            }
            if is_first {
                state.phase = ProcessPhase::Ending(cause);
                *self.background_exit.lock() = Some(BackgroundExit::start());
            }
            is_first
        });
        self.channel.wake();
    }

    fn finish(&self, exit: ProcessExit, outcome: TerminationOutcome) {
        self.state.send_if_modified(|state| {
            let first = !matches!(state.phase, ProcessPhase::Exited(_));
            if first {
                state.phase = ProcessPhase::Exited(exit);
            }
            // A process that exits closes its pipes, so a pipe closed just before is not the cause.
            if outcome == TerminationOutcome::Exited && state.cause != ExitCause::Requested {
                state.cause = ExitCause::Voluntary;
            }
            first
        });
        self.channel.wake();
        *self.background_exit.lock() = None;
    }

    /// Returns the phase, and wakes the channel when it changes.
    pub(super) fn phase_for_channel(&self, cx: &Context<'_>) -> ProcessPhase {
        self.channel.register(cx.waker());
        self.state.borrow().phase
    }

    pub(super) fn exit(&self) -> Option<ProcessExit> {
        match self.state.borrow().phase {
            ProcessPhase::Exited(exit) => Some(exit),
            ProcessPhase::Running | ProcessPhase::Ending(_) => None,
        }
    }

    /// Waits until the server has exited.
    pub(super) async fn exited(&self) -> ProcessExit {
        let mut state = self.state.subscribe();
        let exited = state.wait_for(|state| matches!(state.phase, ProcessPhase::Exited(_))).await;
        // The sender is ours, so the wait cannot fail.
        exited.map_or(ProcessExit::Unknown, |state| {
            if let ProcessPhase::Exited(exit) = state.phase { exit } else { ProcessExit::Unknown }
        })
    }

    /// Waits until the exit is requested.
    async fn exit_requested(&self) -> ExitCause {
        let mut state = self.state.subscribe();
        let requested = state.wait_for(|state| state.phase != ProcessPhase::Running).await;
        requested.map_or(ExitCause::Requested, |state| state.cause)
    }

    pub(super) fn exit_report(&self) -> Option<ExitReport> {
        let PhaseState { phase: ProcessPhase::Exited(exit), cause } = *self.state.borrow() else {
            return None;
        };
        let noise = self.noise().clone();
        Some(ExitReport { program: self.program.clone(), exit, cause, stderr: self.stderr(), noise })
    }

    pub(super) fn stderr(&self) -> StderrTail {
        self.tail.lock().snapshot()
    }

    pub(super) fn noise(&self) -> MutexGuard<'_, StdoutNoise> {
        self.noise.lock()
    }
}

/// The grace period of a server that closed one of its pipes: usually it is about to exit.
const CLOSED_PIPE_GRACE: Duration = Duration::from_millis(500);

/// How long standard error is read after the server has exited, while a descendant still holds it.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The most bytes of a line that an observer receives.
pub(super) const LINE_BYTES: usize = 8 * 1024;

/// Supervises one server until it is reaped, and reads its standard error.
pub(super) async fn supervise(
    mut child: ChildProcess,
    stderr: PipeReader,
    shared: Arc<SharedProcess>,
    grace: GracePeriods,
    observer: Option<LineCallback>,
) {
    let finish_on_drop = FinishOnDrop(&shared);
    let mut reading = pin!(read_stderr(stderr, &shared, observer));
    let (outcome, is_read) =
        termination::while_reading(wait_for_exit(&mut child, &shared, grace), reading.as_mut()).await;
    let reading = (!is_read).then_some(reading);
    let exit = termination::drain_and_reap(
        &mut child,
        outcome != TerminationOutcome::Hung,
        reading,
        STDERR_DRAIN_TIMEOUT,
    )
    .await;
    // The channel owns standard output, so the supervisor cannot know whether a descendant still holds it.
    child.kill_pipe_holders();
    drop(child);
    shared.finish(exit, outcome);
    drop(finish_on_drop);
}

/// The outcome of a termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminationOutcome {
    /// The server exited without a signal of ours.
    Exited,
    /// The server was terminated or killed.
    Killed,
    /// The server was killed and did not exit: a process can hang in the kernel.
    Hung,
}

/// Waits until the server has exited, by itself or by termination.
async fn wait_for_exit(
    child: &mut ChildProcess,
    shared: &SharedProcess,
    grace: GracePeriods,
) -> TerminationOutcome {
    let cause = tokio::select! {
        () = termination::exited(child) => return TerminationOutcome::Exited,
        cause = shared.exit_requested() => cause,
    };
    let grace_period = if cause == ExitCause::Requested {
        grace.after_stdin_close
    } else {
        CLOSED_PIPE_GRACE.min(grace.after_stdin_close)
    };
    if tokio::time::timeout(grace_period, termination::exited(child)).await.is_ok() {
        return TerminationOutcome::Exited;
    }
    if termination::terminate_then_kill(child, grace.after_sigterm).await {
        TerminationOutcome::Killed
    } else {
        TerminationOutcome::Hung
    }
}

async fn read_stderr(mut stderr: PipeReader, shared: &SharedProcess, observer: Option<LineCallback>) {
    let mut buffer = vec![0; 16 * 1024];
    let mut splitter = LineSplitter::new(LINE_BYTES);
    let show = |line: &[u8]| {
        if let Some(observer) = &observer {
            observer(&OutputLine { stream: OutputStream::Stderr, text: String::from_utf8_lossy(line) });
        }
    };
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        shared.tail.lock().push(bytes);
        if observer.is_some() {
            splitter.push(bytes, show);
        }
    }
    splitter.finish(show);
}

/// Marks the server as exited if the supervisor is dropped, as at the end of a runtime, so that no caller waits
/// forever.
struct FinishOnDrop<'a>(&'a SharedProcess);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(ProcessExit::Unknown, TerminationOutcome::Hung);
    }
}
