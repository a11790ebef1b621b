use std::future::poll_fn;
use std::time::Duration;

use super::census::InBackground;
use super::exit::Exit;
use super::system::Child;

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
    if tokio::time::timeout(term, exited(child)).await.is_ok() {
        return true;
    }
    child.kill();
    tokio::time::timeout(KILLED, exited(child)).await.is_ok()
}

/// Takes the exit of a child that was made to end.
pub(super) fn reap(mut child: Child, has_ended: bool) -> Exit {
    // Dropping one that has not ended leaves it to a thread, since waiting here could take for ever.
    if has_ended { child.reap() } else { Exit::Unknown }
}

/// Makes a group end while nobody waits for it.
pub(super) fn in_background(mut child: Child, term: Duration) {
    let counted = InBackground::enter();
    let runtime = child.runtime().clone();
    // If the runtime is going away, the task is dropped and the child with it, which kills the group at once.
    runtime.spawn(async move {
        let has_ended = force(&mut child, term).await;
        reap(child, has_ended);
        drop(counted);
    });
}
