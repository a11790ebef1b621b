//! The in-memory bus, for several servers in one process.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::session_store::BoxFuture;
use crate::{BusDelivery, BusEvent, BusLimits, ProcessId, SessionBus, StoreError};

/// Connects servers in one process, as a shared store connects processes: for tests, and for programs with several hosts.
#[derive(Clone, Default)]
pub struct MemoryBusNetwork {
    limits: BusLimits,
    members: Arc<Mutex<HashMap<ProcessId, BusInbox>>>,
}

#[derive(Default)]
struct BusInbox {
    events: VecDeque<BusEvent>,
    bytes: usize,
    waker: Option<Waker>,
}

impl MemoryBusNetwork {
    /// Creates a network without members.
    pub fn new(limits: BusLimits) -> Self {
        Self { limits, members: Arc::default() }
    }

    /// Adds a member.
    ///
    /// # Errors
    /// The operating system gives no random bytes for its id.
    pub fn join(&self) -> Result<MemoryBus, getrandom::Error> {
        let process = ProcessId::random()?;
        self.members().insert(process, BusInbox::default());
        Ok(MemoryBus { network: self.clone(), process })
    }

    /// Removes a member as if its process had been killed.
    pub fn remove(&self, process: ProcessId) {
        let removed = self.members().remove(&process);
        if let Some(waker) = removed.and_then(|inbox| inbox.waker) {
            waker.wake();
        }
    }

    fn members(&self) -> MutexGuard<'_, HashMap<ProcessId, BusInbox>> {
        self.members.lock()
    }

    fn send_now(&self, to: ProcessId, message: Bytes) -> Result<BusDelivery, StoreError> {
        if message.len() > self.limits.message_bytes {
            return Err(StoreError::TooLarge);
        }
        let mut members = self.members();
        let Some(inbox) = members.get_mut(&to) else { return Ok(BusDelivery::ProcessGone) };
        if !inbox.has_room(&message, &self.limits) {
            return Err(StoreError::Full);
        }
        inbox.push(BusEvent::Message(message));
        Ok(BusDelivery::Delivered)
    }

    fn publish_now(&self, from: ProcessId, message: &Bytes) -> Result<(), StoreError> {
        if message.len() > self.limits.published_bytes {
            return Err(StoreError::TooLarge);
        }
        let mut members = self.members();
        if !members.contains_key(&from) {
            return Err(StoreError::Unavailable("this process has left the bus".to_owned()));
        }
        for (_, inbox) in members.iter_mut().filter(|(process, _)| **process != from) {
            if inbox.has_room(message, &self.limits) {
                inbox.push(BusEvent::Published(message.clone()));
            } else if inbox.events.back() != Some(&BusEvent::Gap) {
                inbox.push(BusEvent::Gap);
            }
        }
        Ok(())
    }

    fn poll_next(&self, process: ProcessId, cx: &mut Context<'_>) -> Poll<Option<BusEvent>> {
        let mut members = self.members();
        let Some(inbox) = members.get_mut(&process) else { return Poll::Ready(None) };
        match inbox.events.pop_front() {
            Some(event) => {
                inbox.bytes -= event_bytes(&event);
                Poll::Ready(Some(event))
            }
            None => {
                inbox.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl BusInbox {
    fn has_room(&self, message: &Bytes, limits: &BusLimits) -> bool {
        self.events.len() < limits.inbox_messages && self.bytes + message.len() <= limits.inbox_bytes
    }

    fn push(&mut self, event: BusEvent) {
        self.bytes += event_bytes(&event);
        self.events.push_back(event);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

fn event_bytes(event: &BusEvent) -> usize {
    match event {
        BusEvent::Message(message) | BusEvent::Published(message) => message.len(),
        BusEvent::Gap => 0,
    }
}

impl fmt::Debug for MemoryBusNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBusNetwork").field("members", &self.members().len()).finish_non_exhaustive()
    }
}

/// A member of a [`MemoryBusNetwork`].
#[derive(Clone, Debug)]
pub struct MemoryBus {
    network: MemoryBusNetwork,
    process: ProcessId,
}

impl SessionBus for MemoryBus {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn send(&self, to: ProcessId, message: Bytes) -> BoxFuture<'static, Result<BusDelivery, StoreError>> {
        let network = self.network.clone();
        Box::pin(async move { network.send_now(to, message) })
    }

    fn publish(&self, message: Bytes) -> BoxFuture<'static, Result<(), StoreError>> {
        let (network, from) = (self.network.clone(), self.process);
        Box::pin(async move { network.publish_now(from, &message) })
    }

    fn is_alive(&self, process: ProcessId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let network = self.network.clone();
        Box::pin(async move { Ok(network.members().contains_key(&process)) })
    }

    fn next(&self) -> BoxFuture<'_, Option<BusEvent>> {
        Box::pin(std::future::poll_fn(|cx| self.network.poll_next(self.process, cx)))
    }

    fn leave(&self) -> BoxFuture<'static, ()> {
        let (network, process) = (self.network.clone(), self.process);
        Box::pin(async move { network.remove(process) })
    }
}
