use std::collections::VecDeque;

use super::notification::CallNotification;
use crate::metrics::process::{self, NotificationKind};

/// The most notifications of one call that wait to be sent to its client.
const MAX_NOTIFICATIONS: usize = 64;

/// The most bytes of those that wait, if there is more than one.
const MAX_BYTES: usize = 256 * 1024;

/// The notifications of a call that were not sent to its client yet, within two bounds. A push never waits: beyond
/// a bound progress is merged, and the oldest log messages are dropped and counted.
#[derive(Debug)]
pub(super) struct NotificationQueue {
    notifications: VecDeque<CallNotification>,
    bytes: usize,
}

impl NotificationQueue {
    pub(super) const EMPTY: Self = Self { notifications: VecDeque::new(), bytes: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.notifications.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<CallNotification> {
        self.remove(0)
    }

    /// Adds progress. If the queue is full, or with `merge`, it replaces the latest progress that waits.
    pub(super) fn push_progress(&mut self, notification: CallNotification, merge: bool) {
        let full = self.is_full(&notification);
        let latest = self
            .notifications
            .iter()
            .rposition(|notification| matches!(notification, CallNotification::Progress { .. }));
        match latest.filter(|_| full || merge).and_then(|at| self.notifications.get_mut(at)) {
            Some(latest) => {
                self.bytes = self.bytes - latest.bytes() + notification.bytes();
                *latest = notification;
            }
            None if full => process::count_dropped_notification(NotificationKind::Progress),
            None => self.push(notification),
        }
    }

    /// Adds a log message. If the queue is full, the oldest log messages are dropped; if there are none, the new
    /// one is.
    pub(super) fn push_log(&mut self, notification: CallNotification) {
        while self.is_full(&notification) {
            process::count_dropped_notification(NotificationKind::Log);
            let oldest = self
                .notifications
                .iter()
                .position(|notification| matches!(notification, CallNotification::Log { .. }));
            if oldest.and_then(|at| self.remove(at)).is_none() {
                return;
            }
        }
        self.push(notification);
    }

    /// Reports whether a further notification exceeds a bound. A single one always fits, however large it is.
    fn is_full(&self, notification: &CallNotification) -> bool {
        let too_large = !self.notifications.is_empty() && self.bytes + notification.bytes() > MAX_BYTES;
        self.notifications.len() >= MAX_NOTIFICATIONS || too_large
    }

    /// Adds a notification that is never dropped; each ends a request of the call, of which there are few.
    pub(super) fn push(&mut self, notification: CallNotification) {
        self.bytes += notification.bytes();
        self.notifications.push_back(notification);
    }

    fn remove(&mut self, at: usize) -> Option<CallNotification> {
        let notification = self.notifications.remove(at)?;
        self.bytes -= notification.bytes();
        Some(notification)
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::{LoggingLevel, RawJson};

    use super::*;

    fn log(number: usize, bytes: usize) -> CallNotification {
        let data = RawJson::from_text(&format!("{number}{}", "x".repeat(bytes)));
        CallNotification::Log { level: LoggingLevel::Info, logger: None, data }
    }

    fn progress(number: u32, bytes: usize) -> CallNotification {
        CallNotification::Progress { progress: number.into(), total: None, message: Some("p".repeat(bytes)) }
    }

    #[test]
    fn queued_log_messages_are_bounded_by_count_and_drop_the_oldest() {
        let mut queue = NotificationQueue::EMPTY;
        for number in 0..10 * MAX_NOTIFICATIONS {
            queue.push_log(log(number, 1));
        }
        assert_eq!(queue.notifications.len(), MAX_NOTIFICATIONS);
        let Some(CallNotification::Log { data, .. }) = queue.notifications.back() else {
            panic!("a log message is the last")
        };
        assert!(data.as_str().contains(&(10 * MAX_NOTIFICATIONS - 1).to_string()));
    }

    #[test]
    fn queued_log_messages_are_bounded_by_bytes_except_a_single_one() {
        let mut queue = NotificationQueue::EMPTY;
        for number in 0..100 {
            queue.push_log(log(number, MAX_BYTES / 10));
            assert!(queue.bytes <= MAX_BYTES, "{}", queue.bytes);
        }
        assert!(queue.notifications.len() >= 9, "{}", queue.notifications.len());
        queue.push_log(log(100, 10 * MAX_BYTES));
        assert_eq!(queue.notifications.len(), 1);
        while queue.pop().is_some() {}
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn queued_progress_beyond_a_bound_replaces_the_latest() {
        let mut queue = NotificationQueue::EMPTY;
        for number in 0..100 {
            queue.push_progress(progress(number, MAX_BYTES / 10), false);
            assert!(queue.bytes <= MAX_BYTES, "{}", queue.bytes);
        }
        let Some(CallNotification::Progress { progress: last, .. }) = queue.notifications.back() else {
            panic!("progress")
        };
        assert!((*last - 99.0).abs() < f64::EPSILON);
        let before = queue.notifications.len();
        queue.push_progress(progress(100, 1), true);
        assert_eq!(queue.notifications.len(), before, "it is merged where that is asked for");
    }
}
