use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::census::InBackground;
use super::exit::Exit;
use super::system::{Child, Reader};

/// How long a server is given to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// From the closing of its standard input until its group is asked to end by a signal; two seconds by default.
    pub input: Duration,
    /// From that signal until the group is killed; three seconds by default.
    pub term: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self { input: Duration::from_secs(2), term: Duration::from_secs(3) }
    }
}

/// How long a killed process is waited for before it is left to a thread: one that hangs in the kernel does not end.
const KILLED: Duration = Duration::from_secs(5);

/// Waits until the leader of a group has ended.
pub(super) async fn exited(child: &mut Child) {
    poll_fn(|cx| child.poll_exited(cx)).await;
}

/// Makes a group end: asks it, and after a while kills it. The leader is still to be reaped then.
///
/// Gives `false` if the leader did not end even so.
pub(super) async fn force(child: &mut Child, term: Duration) -> bool {
    child.terminate();
    if timeout(term, exited(child)).await.is_ok() {
        return true;
    }
    child.kill();
    timeout(KILLED, exited(child)).await.is_ok()
}

/// How long outputs are read on after everybody who is known to have them was killed.
const LEFT_IN_PIPES: Duration = Duration::from_millis(200);

/// Concludes the life of a child whose leader has ended: what it left is given a while to let go of the outputs, and is
/// then killed, however far it got away with one of them.
///
/// `reading` is over when the outputs are, and nothing if they are already; `has_ended` is false for a leader that hangs
/// in the kernel.
pub(super) async fn conclude(
    child: &mut Child,
    has_ended: bool,
    mut reading: Option<Pin<&mut impl Future<Output = ()>>>,
    stragglers: Duration,
) -> Exit {
    read_within(stragglers, &mut reading).await;
    let exit = if has_ended { child.reap() } else { Exit::Unknown };
    read_within(LEFT_IN_PIPES, &mut reading).await;
    if reading.is_some() {
        child.hunt();
        read_within(LEFT_IN_PIPES, &mut reading).await;
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
pub(super) fn in_background(mut child: Child, outputs: [Option<Reader>; 2], term: Duration) {
    let counted = InBackground::enter();
    let runtime = child.runtime().clone();
    // If the runtime is going away, the task is dropped and the child with it, which kills the group at once.
    runtime.spawn(async move {
        let [stdout, stderr] = outputs;
        let mut reading = pin!(async {
            tokio::join!(discard(stdout), discard(stderr));
        });
        let (has_ended, is_read) = beside(force(&mut child, term), reading.as_mut()).await;
        conclude(&mut child, has_ended, (!is_read).then_some(reading), Duration::ZERO).await;
        drop(child);
        drop(counted);
    });
}

/// Waits for something while outputs are read; tells whether these are at their ends too.
pub(super) async fn beside<T>(
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
async fn discard(pipe: Option<Reader>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(1..) = pipe.read(&mut buffer).await {}
}
