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

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessPhase {
    /// It runs.
    Running,
    /// It has to end, for this reason.
    Ending(ExitCause),
    /// It is reaped.
    Exited(ProcessExit),
}

/// What the handle of a server, its channel and its supervisor have in common.
#[derive(Debug)]
pub(super) struct SharedProcess {
    program: String,
    state: watch::Sender<PhaseState>,
    /// The channel has no other way to be woken when the phase changes.
    channel: AtomicWaker,
    tail: Mutex<StderrBuffer>,
    noise: Mutex<StdoutNoise>,
    /// Taken as soon as the end is asked for, not when the supervisor sees it.
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

    /// Asks for the end of the server, unless that was done before.
    pub(super) fn request_exit(&self, cause: ExitCause) {
        self.state.send_if_modified(|state| {
            let asked = state.phase == ProcessPhase::Running;
            // Whoever has no more use for it is not told what was wrong with it, whatever was first.
            if asked || cause == ExitCause::Requested {
                state.cause = cause;
            }
            if asked {
                state.phase = ProcessPhase::Ending(cause);
                *self.background_exit.lock() = Some(BackgroundExit::start());
            }
            asked
        });
        self.channel.wake();
    }

    fn finish(&self, exit: ProcessExit, life: TerminationOutcome) {
        self.state.send_if_modified(|state| {
            let first = !matches!(state.phase, ProcessPhase::Exited(_));
            if first {
                state.phase = ProcessPhase::Exited(exit);
            }
            // Whoever ends closes its pipes, and what is seen of that first says nothing.
            if life == TerminationOutcome::Exited && state.cause != ExitCause::Requested {
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

    /// Waits for the end of the server.
    pub(super) async fn exited(&self) -> ProcessExit {
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| matches!(state.phase, ProcessPhase::Exited(_))).await;
        // The sender is ours, so the wait cannot fail.
        over.map_or(ProcessExit::Unknown, |state| {
            if let ProcessPhase::Exited(exit) = state.phase { exit } else { ProcessExit::Unknown }
        })
    }

    /// Waits until somebody asks for the end.
    async fn exit_requested(&self) -> ExitCause {
        let mut state = self.state.subscribe();
        let asked = state.wait_for(|state| state.phase != ProcessPhase::Running).await;
        asked.map_or(ExitCause::Requested, |state| state.cause)
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

/// How long a server that closed one of its pipes has to end by itself: usually it is just about to.
const CLOSED_PIPE_GRACE: Duration = Duration::from_millis(500);

/// How long standard error is read after the server has ended, while somebody still holds it.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// How many bytes of a line an observer is given.
pub(super) const LINE_BYTES: usize = 8 * 1024;

/// Watches over one server until it is reaped; reads its standard error all that time.
pub(super) async fn supervise(
    mut child: ChildProcess,
    stderr: PipeReader,
    shared: Arc<SharedProcess>,
    grace: GracePeriods,
    observer: Option<LineCallback>,
) {
    let over = FinishOnDrop(&shared);
    let mut reading = pin!(read_stderr(stderr, &shared, observer));
    let (life, is_read) =
        termination::while_reading(wait_for_exit(&mut child, &shared, grace), reading.as_mut()).await;
    let reading = (!is_read).then_some(reading);
    let exit = termination::drain_and_reap(
        &mut child,
        life != TerminationOutcome::Hung,
        reading,
        STDERR_DRAIN_TIMEOUT,
    )
    .await;
    // Standard output is the channel's, so that nobody here knows whether somebody got away with it.
    child.kill_pipe_holders();
    drop(child);
    shared.finish(exit, life);
    drop(over);
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminationOutcome {
    /// It ended without a signal of ours.
    Exited,
    /// It was made to end.
    Killed,
    /// It was killed and did not end: a process can hang in the kernel.
    Hung,
}

/// Waits until the server has ended, by itself or because it has to.
async fn wait_for_exit(
    child: &mut ChildProcess,
    shared: &SharedProcess,
    grace: GracePeriods,
) -> TerminationOutcome {
    let cause = tokio::select! {
        () = termination::exited(child) => return TerminationOutcome::Exited,
        cause = shared.exit_requested() => cause,
    };
    let patience = if cause == ExitCause::Requested {
        grace.after_stdin_close
    } else {
        CLOSED_PIPE_GRACE.min(grace.after_stdin_close)
    };
    if tokio::time::timeout(patience, termination::exited(child)).await.is_ok() {
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
    let mut cutter = LineSplitter::new(LINE_BYTES);
    let show = |line: &[u8]| {
        if let Some(observer) = &observer {
            observer(&OutputLine { stream: OutputStream::Stderr, text: String::from_utf8_lossy(line) });
        }
    };
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let bytes = buffer.get(..count).unwrap_or_default();
        shared.tail.lock().push(bytes);
        if observer.is_some() {
            cutter.push(bytes, show);
        }
    }
    cutter.finish(show);
}

/// Lets nobody wait for a server whose supervisor was dropped, as happens at the end of a runtime.
struct FinishOnDrop<'a>(&'a SharedProcess);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(ProcessExit::Unknown, TerminationOutcome::Hung);
    }
}
