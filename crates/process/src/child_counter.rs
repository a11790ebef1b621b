use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The most children that may run at once in this process.
pub(super) const MAX_CHILDREN: usize = 4096;

static CHILD_COUNT: AtomicUsize = AtomicUsize::new(0);
static BACKGROUND_EXITS: AtomicUsize = AtomicUsize::new(0);
static EXITS_DONE: Notify = Notify::const_new();

/// Returns the number of children that have been started and not been reaped yet.
pub fn child_count() -> usize {
    CHILD_COUNT.load(Ordering::Acquire)
}

/// Waits until no child is being terminated in the background.
///
/// When the handle or the future of a child is dropped, a detached task terminates the child, and this is the only
/// wait for that task. The grace periods of those children bound it.
pub async fn wait_for_background_exits() {
    loop {
        let notified = EXITS_DONE.notified();
        if BACKGROUND_EXITS.load(Ordering::Acquire) == 0 {
            return;
        }
        notified.await;
    }
}

/// A permit for one running child.
#[derive(Debug)]
pub(super) struct ChildPermit(());

impl ChildPermit {
    /// Acquires a permit, unless the limit is reached.
    pub(super) fn acquire() -> Option<Self> {
        let add_one = |count| (count < MAX_CHILDREN).then_some(count + 1);
        CHILD_COUNT.fetch_update(Ordering::AcqRel, Ordering::Acquire, add_one).ok().map(|_| Self(()))
    }
}

impl Drop for ChildPermit {
    fn drop(&mut self) {
        CHILD_COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A counter guard for one child that is being terminated in the background.
#[derive(Debug)]
pub(super) struct BackgroundExit(());

impl BackgroundExit {
    pub(super) fn start() -> Self {
        BACKGROUND_EXITS.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for BackgroundExit {
    fn drop(&mut self) {
        if BACKGROUND_EXITS.fetch_sub(1, Ordering::AcqRel) == 1 {
            EXITS_DONE.notify_waiters();
        }
    }
}
