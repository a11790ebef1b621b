use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many children may run at once, all users together.
pub(super) const MAX_CHILDREN: usize = 4096;

static CHILD_COUNT: AtomicUsize = AtomicUsize::new(0);
static BACKGROUND_EXITS: AtomicUsize = AtomicUsize::new(0);
static EXITS_DONE: Notify = Notify::const_new();

/// Returns how many children have been started and not been reaped yet.
pub fn child_count() -> usize {
    CHILD_COUNT.load(Ordering::Acquire)
}

/// Waits until no child is left that is being ended in the background.
///
/// A child whose handle or future was dropped is ended by a task that nobody can wait for otherwise. The wait is bounded
/// by the graces that those children were given.
pub async fn wait_for_background_exits() {
    loop {
        let notified = EXITS_DONE.notified();
        if BACKGROUND_EXITS.load(Ordering::Acquire) == 0 {
            return;
        }
        notified.await;
    }
}

/// One child among those that live.
#[derive(Debug)]
pub(super) struct ChildPermit(());

impl ChildPermit {
    /// Takes a place, unless all are taken.
    pub(super) fn acquire() -> Option<Self> {
        let place = |count| (count < MAX_CHILDREN).then_some(count + 1);
        CHILD_COUNT.fetch_update(Ordering::AcqRel, Ordering::Acquire, place).ok().map(|_| Self(()))
    }
}

impl Drop for ChildPermit {
    fn drop(&mut self) {
        CHILD_COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One child among those that are being ended while nobody waits for them.
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
