//! Connections beyond the limits, which are accepted for health checks alone.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::metrics::process::{self, ConnectionRefusal};

/// The reserved connections of one listener. Once all are in use, the oldest one of the address with the most is closed
/// for a new one: a health check sends its request at once, so it never waits for peers that send nothing.
#[derive(Clone, Debug)]
pub(super) struct ReservedConnections {
    most: usize,
    entries: Arc<Mutex<ReservedList>>,
}

#[derive(Debug, Default)]
struct ReservedList {
    next: u64,
    /// In order of arrival.
    entries: Vec<ReservedEntry>,
}

#[derive(Debug)]
struct ReservedEntry {
    number: u64,
    address: IpAddr,
    task: Option<AbortHandle>,
}

impl ReservedConnections {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), entries: Arc::default() }
    }

    /// Takes a reserved connection for an address, and closes another if all are in use.
    pub(super) fn enter(&self, address: IpAddr) -> ReservedPermit {
        let mut list = self.entries.lock();
        let evicted = (list.entries.len() >= self.most).then(|| list.evict()).flatten();
        let number = list.next;
        list.next += 1;
        list.entries.push(ReservedEntry { number, address, task: None });
        drop(list);
        if let Some(entry) = evicted {
            process::count_refused_connection(ConnectionRefusal::Evicted);
            if let Some(task) = entry.task {
                task.abort();
            }
        }
        ReservedPermit { list: self.entries.clone(), number }
    }
}

impl ReservedList {
    /// Removes the oldest entry of the address with the most.
    fn evict(&mut self) -> Option<ReservedEntry> {
        let held = |address: IpAddr| self.entries.iter().filter(|entry| entry.address == address).count();
        let most = self.entries.iter().map(|entry| held(entry.address)).max()?;
        let at = self.entries.iter().position(|entry| held(entry.address) == most)?;
        Some(self.entries.remove(at))
    }
}

/// One reserved connection, until it is closed.
#[derive(Debug)]
pub(super) struct ReservedPermit {
    list: Arc<Mutex<ReservedList>>,
    number: u64,
}

impl ReservedPermit {
    /// Returns where the task of the connection is registered, so that it can be closed for another one.
    pub(super) fn registration(&self) -> ReservedRegistration {
        ReservedRegistration { list: self.list.clone(), number: self.number }
    }
}

impl Drop for ReservedPermit {
    fn drop(&mut self) {
        self.list.lock().entries.retain(|entry| entry.number != self.number);
    }
}

/// Where the task of a reserved connection is registered.
#[derive(Debug)]
pub(super) struct ReservedRegistration {
    list: Arc<Mutex<ReservedList>>,
    number: u64,
}

impl ReservedRegistration {
    /// Registers the task, unless the connection has ended already.
    pub(super) fn register(self, task: AbortHandle) {
        let mut list = self.list.lock();
        if let Some(entry) = list.entries.iter_mut().find(|entry| entry.number == self.number) {
            entry.task = Some(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_reserve_evicts_the_oldest_of_the_address_with_the_most() {
        let reserved = ReservedConnections::new(3);
        let enter = |address: &str| reserved.enter(address.parse().unwrap());
        let numbers =
            || -> Vec<u64> { reserved.entries.lock().entries.iter().map(|entry| entry.number).collect() };
        let first = enter("192.0.2.1");
        let flood: Vec<_> = (0..9).map(|_| enter("192.0.2.2")).collect();
        assert_eq!(numbers(), [0, 8, 9], "the single connection of the first address stays");
        drop(flood);
        assert_eq!(numbers(), [0]);
        drop(first);
        assert!(numbers().is_empty());
    }

    #[tokio::test]
    async fn evicted_connection_is_aborted() {
        let reserved = ReservedConnections::new(1);
        let permit = reserved.enter("192.0.2.1".parse().unwrap());
        let registration = permit.registration();
        let task = tokio::spawn(async move {
            let _permit = permit;
            std::future::pending::<()>().await;
        });
        registration.register(task.abort_handle());
        let _next = reserved.enter("192.0.2.1".parse().unwrap());
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(reserved.entries.lock().entries.len(), 1);
    }
}
