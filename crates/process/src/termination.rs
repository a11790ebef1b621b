use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::child_counter::BackgroundExit;
use super::exit::ProcessExit;
use super::system::{ChildProcess, PipeReader};

/// How long a server is given to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// From the closing of its standard input until its group is asked to end by a signal; two seconds by default.
    pub after_stdin_close: Duration,
    /// From that signal until the group is killed; three seconds by default.
    pub after_sigterm: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { after_stdin_close: Duration::from_secs(2), after_sigterm: Duration::from_secs(3) }
    }
}

/// How long a killed process is waited for before it is left to a thread: one that hangs in the kernel does not end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until the leader of a group has ended.
pub(super) async fn exited(child: &mut ChildProcess) {
    poll_fn(|cx| child.poll_exited(cx)).await;
}

/// Makes a group end: asks it, and after a while kills it. The leader is still to be reaped then.
///
/// Gives `false` if the leader did not end even so.
pub(super) async fn terminate_then_kill(child: &mut ChildProcess, term: Duration) -> bool {
    child.terminate();
    if timeout(term, exited(child)).await.is_ok() {
        return true;
    }
    child.kill();
    timeout(KILL_TIMEOUT, exited(child)).await.is_ok()
}

/// How long outputs are read on after everybody who is known to have them was killed.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Concludes the life of a child whose leader has ended: what it left is given a while to let go of the outputs, and is
/// then killed, however far it got away with one of them.
///
/// `reading` is over when the outputs are, and nothing if they are already; `has_ended` is false for a leader that hangs
/// in the kernel.
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

/// Makes a group end while nobody waits for it, and reads what it writes until then.
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

/// Waits for something while outputs are read; tells whether these are at their ends too.
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

/// Reads a pipe to its end, for nobody.
async fn discard(pipe: Option<PipeReader>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(1..) = pipe.read(&mut buffer).await {}
}
