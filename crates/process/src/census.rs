use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many children may run at once, all users together.
pub(super) const MOST_CHILDREN: usize = 4096;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static ENDING: AtomicUsize = AtomicUsize::new(0);
static SETTLED: Notify = Notify::const_new();

/// Returns how many children have been started and not been reaped yet.
pub fn live() -> usize {
    LIVE.load(Ordering::Acquire)
}

/// Waits until no child is left that is being ended in the background.
///
/// A child whose handle or future was dropped is ended by a task that nobody can wait for otherwise. The wait is bounded
/// by the graces that those children were given.
pub async fn settled() {
    loop {
        let notified = SETTLED.notified();
        if ENDING.load(Ordering::Acquire) == 0 {
            return;
        }
        notified.await;
    }
}

/// One child among those that live.
#[derive(Debug)]
pub(super) struct Living(());

impl Living {
    /// Takes a place, unless all are taken.
    pub(super) fn enter() -> Option<Self> {
        let place = |count| (count < MOST_CHILDREN).then_some(count + 1);
        LIVE.fetch_update(Ordering::AcqRel, Ordering::Acquire, place).ok().map(|_| Self(()))
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One child among those that are being ended while nobody waits for them.
#[derive(Debug)]
pub(super) struct InBackground(());

impl InBackground {
    pub(super) fn enter() -> Self {
        ENDING.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for InBackground {
    fn drop(&mut self) {
        if ENDING.fetch_sub(1, Ordering::AcqRel) == 1 {
            SETTLED.notify_waiters();
        }
    }
}
