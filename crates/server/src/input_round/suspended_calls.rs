use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use trunkline_session::Principal;

use crate::call::ExecutingCall;
use crate::limits::ServerLimits;
use crate::party::ClientParty;
use crate::shutdown::Shutdown;

/// The calls that are suspended until the request with the responses to their input requests.
///
/// A suspended call is still polled, by a task of its own that also ends it on timeout or when the server drains.
/// Dropping an entry ends it: the task then drops the call, which cancels it.
#[derive(Clone, Debug)]
pub(crate) struct SuspendedCalls {
    entries: Arc<Mutex<SuspendedEntries>>,
    timeout: Duration,
    max: usize,
    max_per_principal: usize,
    shutdown: Shutdown,
}

#[derive(Debug, Default)]
struct SuspendedEntries {
    arrivals: u64,
    by_number: HashMap<u128, SuspendedEntry>,
}

/// The client of a suspended call.
#[derive(Debug)]
pub(crate) struct SuspendingClient {
    /// The principal, which alone can resume it.
    pub(crate) principal: Principal,
    /// The party that it counts for.
    pub(crate) party: ClientParty,
}

#[derive(Debug)]
struct SuspendedEntry {
    arrival: u64,
    client: SuspendingClient,
    round: u32,
    /// Whether it holds a large request.
    is_large: bool,
    content: SuspendedContent,
}

#[derive(Debug)]
enum SuspendedContent {
    /// A live call: its task sends it back through the sender that it receives.
    Call(oneshot::Sender<oneshot::Sender<ExecutingCall>>),
    /// A continuation too large to travel through the client; its task only enforces the timeout.
    Bytes(
        Bytes,
        #[expect(dead_code, reason = "dropping it ends the task that keeps the time")] oneshot::Sender<()>,
    ),
}

/// The content of a resumed entry.
pub(crate) enum ResumedContent {
    Call(ExecutingCall),
    Bytes(Bytes),
}

impl SuspendedCalls {
    pub(crate) fn new(limits: &ServerLimits, shutdown: Shutdown) -> Self {
        Self {
            entries: Arc::default(),
            timeout: limits.suspended_for,
            max: limits.suspended,
            max_per_principal: limits.suspended_per_principal,
            shutdown,
        }
    }

    /// Suspends a call and returns its number; `None` only if the operating system gives no random bytes.
    pub(crate) fn suspend(
        &self,
        client: SuspendingClient,
        round: u32,
        mut running: ExecutingCall,
    ) -> Option<u128> {
        running.shared().suspend();
        let is_large = running.shared().is_large();
        let (resume_sender, mut resume_receiver) = oneshot::channel::<oneshot::Sender<ExecutingCall>>();
        let number = self.insert(client, round, is_large, SuspendedContent::Call(resume_sender))?;
        let (calls, timeout) = (self.clone(), self.timeout);
        tokio::spawn(async move {
            let over = tokio::time::sleep(timeout);
            tokio::pin!(over);
            let mut draining = std::pin::pin!(calls.shutdown.draining());
            let mut ended = false;
            loop {
                tokio::select! {
                    biased;
                    reply = &mut resume_receiver => {
                        if let Ok(reply) = reply {
                            // The resuming request may itself have been cancelled meanwhile.
                            let _ = reply.send(running);
                        }
                        break;
                    }
                    () = &mut over => break,
                    () = &mut draining => break,
                    () = std::future::poll_fn(|cx| running.poll_suspended(cx)), if !ended => ended = true,
                }
            }
            calls.remove(number);
        });
        Some(number)
    }

    /// Stores a continuation that is too large to travel.
    pub(crate) fn suspend_bytes(&self, client: SuspendingClient, round: u32, bytes: Bytes) -> Option<u128> {
        let (alive, gone) = oneshot::channel::<()>();
        let number = self.insert(client, round, false, SuspendedContent::Bytes(bytes, alive))?;
        let (calls, timeout) = (self.clone(), self.timeout);
        tokio::spawn(async move {
            tokio::select! {
                _ = gone => return,
                () = tokio::time::sleep(timeout) => {}
                () = calls.shutdown.draining() => {}
            }
            calls.remove(number);
        });
        Some(number)
    }

    /// Removes and returns a call, if it is that principal's and in that round. Each round can be resumed once.
    pub(crate) async fn resume(
        &self,
        number: u128,
        principal: &Principal,
        round: u32,
    ) -> Option<ResumedContent> {
        let held = {
            let mut entries = self.lock();
            let entry = entries.by_number.get(&number)?;
            if entry.client.principal != *principal || entry.round != round {
                return None;
            }
            entries.by_number.remove(&number)?.content
        };
        match held {
            SuspendedContent::Bytes(bytes, _) => Some(ResumedContent::Bytes(bytes)),
            SuspendedContent::Call(resume_sender) => {
                let (reply, running) = oneshot::channel();
                resume_sender.send(reply).ok()?;
                running.await.ok().map(ResumedContent::Call)
            }
        }
    }

    /// Returns how many calls are suspended.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_number.len()
    }

    /// Evicts the oldest call that holds a large request, if there is one, for a party that needs memory: only a call of
    /// its own, unless it is no party of its own.
    pub(crate) fn evict_oldest_large(&self, party: &ClientParty) {
        let is_theirs = |entry: &SuspendedEntry| !party.is_distinct() || entry.client.party == *party;
        let entry = remove_oldest(&mut self.lock(), |entry| entry.is_large && is_theirs(entry));
        drop(entry);
    }

    fn insert(
        &self,
        client: SuspendingClient,
        round: u32,
        is_large: bool,
        held: SuspendedContent,
    ) -> Option<u128> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let number = u128::from_le_bytes(bytes);
        let mut entries = self.lock();
        entries.arrivals += 1;
        let arrival = entries.arrivals;
        let principal = client.principal.clone();
        let entry = SuspendedEntry { arrival, client, round, is_large, content: held };
        entries.by_number.insert(number, entry);
        let evicted = self.evict(&mut entries, &principal);
        drop(entries);
        drop(evicted);
        Some(number)
    }

    /// Evicts the oldest entries of the principal, and of the party with the most, until the limits hold; the newest is
    /// never refused.
    fn evict(&self, entries: &mut SuspendedEntries, principal: &Principal) -> Vec<SuspendedEntry> {
        let mut evicted = Vec::new();
        if matches!(principal, Principal::Named(_)) {
            let of_principal =
                entries.by_number.values().filter(|entry| entry.client.principal == *principal).count();
            if of_principal > self.max_per_principal {
                evicted.extend(remove_oldest(entries, |entry| entry.client.principal == *principal));
            }
        }
        if entries.by_number.len() > self.max {
            let largest = largest_party(entries);
            evicted.extend(remove_oldest(entries, |entry| Some(&entry.client.party) == largest.as_ref()));
        }
        evicted
    }

    fn remove(&self, number: u128) {
        let entry = self.lock().by_number.remove(&number);
        drop(entry);
    }

    fn lock(&self) -> MutexGuard<'_, SuspendedEntries> {
        self.entries.lock()
    }
}

/// Returns the party with the most entries.
fn largest_party(entries: &SuspendedEntries) -> Option<ClientParty> {
    let mut counts: HashMap<&ClientParty, usize> = HashMap::new();
    for entry in entries.by_number.values() {
        *counts.entry(&entry.client.party).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(party, _)| party.clone())
}

fn remove_oldest(
    entries: &mut SuspendedEntries,
    eligible: impl Fn(&SuspendedEntry) -> bool,
) -> Option<SuspendedEntry> {
    let candidates = entries.by_number.iter().filter(|(_, entry)| eligible(entry));
    let number = *candidates.min_by_key(|(_, entry)| entry.arrival)?.0;
    entries.by_number.remove(&number)
}
