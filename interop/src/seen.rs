use parking_lot::Mutex;

use tokio::sync::Notify;

/// What was seen so far, and a way to wait for more.
///
/// It grows with what one check causes, and every check has a deadline.
#[derive(Debug)]
pub(crate) struct Seen<T> {
    items: Mutex<Vec<T>>,
    news: Notify,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { items: Mutex::default(), news: Notify::new() }
    }
}

impl<T: Clone> Seen<T> {
    pub(crate) fn put(&self, item: T) {
        self.items.lock().push(item);
        self.news.notify_waiters();
    }

    /// Takes everything that was seen since it was last taken.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.items.lock())
    }

    /// Waits until something of a kind has been seen.
    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(&T) -> bool) -> T {
        loop {
            let news = self.news.notified();
            let found = {
                let items = self.items.lock();
                items.iter().find(|item| is_wanted(item)).cloned()
            };
            match found {
                Some(found) => return found,
                None => news.await,
            }
        }
    }
}
