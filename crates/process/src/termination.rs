use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::child_counter::BackgroundExit;
use super::exit::ProcessExit;
use super::system::{ChildProcess, PipeReader};

/// The grace periods of a server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// From the closing of its standard input until `SIGTERM` to its group; two seconds by default.
    pub after_stdin_close: Duration,
    /// From that signal until the group is killed; three seconds by default.
    pub after_sigterm: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { after_stdin_close: Duration::from_secs(2), after_sigterm: Duration::from_secs(3) }
    }
}

/// How long a killed process is awaited before a thread takes over: one that hangs in the kernel does not exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the leader of a group has exited.
pub(super) async fn exited(child: &mut ChildProcess) {
    poll_fn(|cx| child.poll_exited(cx)).await;
}

/// Sends `SIGTERM` to a group, and after the grace period `SIGKILL`. The leader is still to be reaped then.
///
/// Returns `false` if the leader did not exit even so.
pub(super) async fn terminate_then_kill(child: &mut ChildProcess, term: Duration) -> bool {
    child.terminate();
    if timeout(term, exited(child)).await.is_ok() {
        return true;
    }
    child.kill();
    timeout(KILL_TIMEOUT, exited(child)).await.is_ok()
}

/// How long outputs are read after all of their known holders were killed.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Finishes a child with an exited leader: remaining processes may hold its outputs for a while, and are then killed,
/// whatever group they are in.
///
/// `reading` completes at the end of the outputs, and is `None` if they are at their end already; `has_ended` is
/// false for a leader that hangs in the kernel.
pub(super) async fn drain_and_reap(
    child: &mut ChildProcess,
    has_ended: bool,
    mut reading: Option<Pin<&mut impl Future<Output = ()>>>,
    stragglers: Duration,
) -> ProcessExit {
    read_within(stragglers, &mut reading).await;
    let exit = if has_ended { child.reap() } else { ProcessExit::Unknown };
    read_within(PIPE_DRAIN_TIMEOUT, &mut reading).await;
    if reading.is_some() {
        child.kill_pipe_holders();
        read_within(PIPE_DRAIN_TIMEOUT, &mut reading).await;
    }
    exit
}

async fn read_within(time: Duration, reading: &mut Option<Pin<&mut impl Future<Output = ()>>>) {
    if let Some(outputs) = reading
        && timeout(time, outputs.as_mut()).await.is_ok()
    {
        *reading = None;
    }
}

/// Terminates a group in a detached task, and drains its outputs until then.
pub(super) fn terminate_in_background(
    mut child: ChildProcess,
    outputs: [Option<PipeReader>; 2],
    term: Duration,
) {
    let counted = BackgroundExit::start();
    let runtime = child.runtime().clone();
    // If the runtime is going away, the task is dropped and the child with it, which kills the group at once.
    runtime.spawn(async move {
        let [stdout, stderr] = outputs;
        let mut reading = pin!(async {
            tokio::join!(discard(stdout), discard(stderr));
        });
        let (has_ended, is_read) =
            while_reading(terminate_then_kill(&mut child, term), reading.as_mut()).await;
        drain_and_reap(&mut child, has_ended, (!is_read).then_some(reading), Duration::ZERO).await;
        drop(child);
        drop(counted);
    });
}

/// Waits for a future while outputs are read; also returns whether the outputs are at their end.
pub(super) async fn while_reading<T>(
    something: impl Future<Output = T>,
    mut reading: Pin<&mut impl Future<Output = ()>>,
) -> (T, bool) {
    let mut something = pin!(something);
    let mut is_read = false;
    loop {
        tokio::select! {
            value = &mut something => return (value, is_read),
            () = &mut reading, if !is_read => is_read = true,
        }
    }
}

/// Reads a pipe to its end and drops the bytes.
async fn discard(pipe: Option<PipeReader>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(1..) = pipe.read(&mut buffer).await {}
}
