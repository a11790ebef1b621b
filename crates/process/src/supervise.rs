use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

use super::census::InBackground;
use super::ending::{self, Grace};
use super::error::Ended;
use super::exit::{Cause, Exit};
use super::handle::Observer;
use super::noise::Noise;
use super::observe::Cutter;
use super::output::{Line, Source};
use super::system::{Child, Reader};
use super::tail::{Tail, TailBuffer};

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    Running,
    /// It has to end, for this reason.
    Ending(Cause),
    /// It is reaped.
    Over(Exit),
}

/// What the handle of a server, its channel and its supervisor have in common.
#[derive(Debug)]
pub(super) struct Shared {
    program: String,
    state: watch::Sender<State>,
    /// The channel has no other way to be woken when the phase changes.
    channel: AtomicWaker,
    tail: Mutex<TailBuffer>,
    noise: Mutex<Noise>,
    /// Taken as soon as the end is asked for, not when the supervisor sees it.
    ending: Mutex<Option<InBackground>>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    phase: Phase,
    cause: Cause,
}

impl Shared {
    pub(super) fn new(program: String) -> Self {
        Self {
            program,
            state: watch::Sender::new(State { phase: Phase::Running, cause: Cause::Itself }),
            channel: AtomicWaker::new(),
            tail: Mutex::new(TailBuffer::new()),
            noise: Mutex::new(Noise::default()),
            ending: Mutex::new(None),
        }
    }

    /// Asks for the end of the server, unless that was done before.
    pub(super) fn ask(&self, cause: Cause) {
        self.state.send_if_modified(|state| {
            let asked = state.phase == Phase::Running;
            // Whoever has no more use for it is not told what was wrong with it, whatever was first.
            if asked || cause == Cause::Asked {
                state.cause = cause;
            }
            if asked {
                state.phase = Phase::Ending(cause);
                *self.ending.lock() = Some(InBackground::enter());
            }
            asked
        });
        self.channel.wake();
    }

    fn finish(&self, exit: Exit, life: Life) {
        self.state.send_if_modified(|state| {
            let first = !matches!(state.phase, Phase::Over(_));
            if first {
                state.phase = Phase::Over(exit);
            }
            // Whoever ends closes its pipes, and what is seen of that first says nothing.
            if life == Life::Ended && state.cause != Cause::Asked {
                state.cause = Cause::Itself;
            }
            first
        });
        self.channel.wake();
        *self.ending.lock() = None;
    }

    /// Returns the phase, and wakes the channel when it changes.
    pub(super) fn phase_for_channel(&self, cx: &Context<'_>) -> Phase {
        self.channel.register(cx.waker());
        self.state.borrow().phase
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        match self.state.borrow().phase {
            Phase::Over(exit) => Some(exit),
            Phase::Running | Phase::Ending(_) => None,
        }
    }

    /// Waits for the end of the server.
    pub(super) async fn exited(&self) -> Exit {
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| matches!(state.phase, Phase::Over(_))).await;
        // The sender is ours, so the wait cannot fail.
        over.map_or(
            Exit::Unknown,
            |state| if let Phase::Over(exit) = state.phase { exit } else { Exit::Unknown },
        )
    }

    /// Waits until somebody asks for the end.
    async fn asked(&self) -> Cause {
        let mut state = self.state.subscribe();
        let asked = state.wait_for(|state| state.phase != Phase::Running).await;
        asked.map_or(Cause::Asked, |state| state.cause)
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        let State { phase: Phase::Over(exit), cause } = *self.state.borrow() else { return None };
        let noise = self.noise().clone();
        Some(Ended { program: self.program.clone(), exit, cause, stderr: self.stderr(), noise })
    }

    pub(super) fn stderr(&self) -> Tail {
        self.tail.lock().snapshot()
    }

    pub(super) fn noise(&self) -> MutexGuard<'_, Noise> {
        self.noise.lock()
    }
}

/// How long a server that closed one of its pipes has to end by itself: usually it is just about to.
const CLOSED_PIPE: Duration = Duration::from_millis(500);

/// How long standard error is read after the server has ended, while somebody still holds it.
const STRAGGLERS: Duration = Duration::from_millis(500);

/// How many bytes of a line an observer is given.
pub(super) const LINE_BYTES: usize = 8 * 1024;

/// Watches over one server until it is reaped; reads its standard error all that time.
pub(super) async fn supervise(
    mut child: Child,
    stderr: Reader,
    shared: Arc<Shared>,
    grace: Grace,
    observer: Option<Observer>,
) {
    let over = OverAnyway(&shared);
    let mut reading = pin!(read_stderr(stderr, &shared, observer));
    let (life, is_read) = ending::beside(live(&mut child, &shared, grace), reading.as_mut()).await;
    let reading = (!is_read).then_some(reading);
    let exit = ending::conclude(&mut child, life != Life::Hangs, reading, STRAGGLERS).await;
    // Standard output is the channel's, so that nobody here knows whether somebody got away with it.
    child.hunt();
    drop(child);
    shared.finish(exit, life);
    drop(over);
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It ended without a signal of ours.
    Ended,
    /// It was made to end.
    Forced,
    /// It was killed and did not end: a process can hang in the kernel.
    Hangs,
}

/// Waits until the server has ended, by itself or because it has to.
async fn live(child: &mut Child, shared: &Shared, grace: Grace) -> Life {
    let cause = tokio::select! {
        () = ending::exited(child) => return Life::Ended,
        cause = shared.asked() => cause,
    };
    let patience = if cause == Cause::Asked { grace.input } else { CLOSED_PIPE.min(grace.input) };
    if tokio::time::timeout(patience, ending::exited(child)).await.is_ok() {
        return Life::Ended;
    }
    if ending::force(child, grace.term).await { Life::Forced } else { Life::Hangs }
}

async fn read_stderr(mut stderr: Reader, shared: &Shared, observer: Option<Observer>) {
    let mut buffer = vec![0; 16 * 1024];
    let mut cutter = Cutter::new(LINE_BYTES);
    let show = |line: &[u8]| {
        if let Some(observer) = &observer {
            observer(&Line { source: Source::Stderr, text: String::from_utf8_lossy(line) });
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
struct OverAnyway<'a>(&'a Shared);

impl Drop for OverAnyway<'_> {
    fn drop(&mut self) {
        self.0.finish(Exit::Unknown, Life::Hangs);
    }
}
