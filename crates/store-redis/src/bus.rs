use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use trunkline_session::{
    BoxFuture, BusDelivery, BusEvent, BusLimits, ProcessId, RowKind, SessionBus, StoreError,
};

use crate::bus_reader::{BusReader, StreamEntries};
use crate::clock::milliseconds;
use crate::scripts::{BUS_PUBLISH, BUS_REPORT, BUS_SEND, ScriptCall};
use crate::store::{RedisCore, run_on_store};

/// How often a process reports that it is there, and for how long one report counts.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
const REPORT_AGE: Duration = Duration::from_secs(10);

/// How long after a process was not found it is looked for once more: after an outage of Redis each process reports again.
const SECOND_LOOK: Duration = Duration::from_millis(500);

/// How many published messages are kept for readers that lag behind.
const KEPT_MESSAGES: usize = 10_000;

/// How many events wait in memory for the process to take them.
const READ_AHEAD: usize = 16;

/// The bus between the processes that share a store in Redis.
///
/// What all processes receive is one Redis stream, and each process has an inbox, which is another. Both are read over a
/// connection that is used for nothing else; when it is opened again, reading goes on where it ended, so that a broken
/// connection loses no message. What Redis itself loses is noticed by the numbers of published messages, and reported as
/// [`BusEvent::Gap`].
#[derive(Clone)]
pub struct RedisBus {
    shared: Arc<SharedBus>,
}

struct SharedBus {
    core: Arc<RedisCore>,
    limits: BusLimits,
    events: Mutex<mpsc::Receiver<BusEvent>>,
    has_left: Arc<AtomicBool>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for SharedBus {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The keys of the bus, all in one slot.
pub(crate) struct BusKeys {
    base: String,
}

impl BusKeys {
    pub(crate) fn new(core: &RedisCore) -> Self {
        Self { base: format!("{{{}:bus}}", core.prefix) }
    }

    pub(crate) fn published(&self) -> String {
        format!("{}:all", self.base)
    }

    fn published_count(&self) -> String {
        format!("{}:count", self.base)
    }

    pub(crate) fn inbox(&self, process: ProcessId) -> String {
        format!("{}:inbox:{process}", self.base)
    }

    pub(crate) fn inbox_size(&self, process: ProcessId) -> String {
        format!("{}:size:{process}", self.base)
    }

    fn presence(&self, process: ProcessId) -> String {
        format!("{}:process:{process}", self.base)
    }

    /// Returns what belongs to a process.
    fn of_process(&self, process: ProcessId) -> [String; 3] {
        [self.presence(process), self.inbox(process), self.inbox_size(process)]
    }
}

/// Binds a sealed message to its destination.
pub(crate) fn inbox_binding(to: ProcessId) -> Vec<u8> {
    format!("to {to}").into_bytes()
}

/// Binds a sealed message that is for all processes.
pub(crate) const PUBLISHED_BINDING: &[u8] = b"to all";

impl RedisBus {
    pub(crate) async fn join(core: Arc<RedisCore>, limits: BusLimits) -> Result<Self, StoreError> {
        let process = process_of(&core);
        let keys = BusKeys::new(&core);
        let mut command = redis::cmd("XREVRANGE");
        command.arg(keys.published()).arg("+").arg("-").arg("COUNT").arg(1);
        let last: StreamEntries = core.link.command(&command).await?;
        report(&core, process).await?;
        let (sender, events) = mpsc::channel(READ_AHEAD);
        let reader = BusReader::new(core.clone(), process, last, sender);
        let has_left = Arc::new(AtomicBool::new(false));
        let (beating, left) = (core.clone(), has_left.clone());
        let report_task = core.link.runtime().spawn(async move {
            loop {
                tokio::time::sleep(REPORT_INTERVAL).await;
                if left.load(Ordering::SeqCst) {
                    return;
                }
                if let Err(error) = report(&beating, process).await {
                    tracing::debug!(%error, "this process could not be reported to the other ones");
                }
            }
        });
        let read_task = core.link.runtime().spawn(reader.run());
        let events = Mutex::new(events);
        let tasks = [report_task, read_task];
        Ok(Self { shared: Arc::new(SharedBus { core, limits, events, has_left, tasks }) })
    }
}

/// Returns the id of this process: that under which it writes rows.
fn process_of(core: &RedisCore) -> ProcessId {
    ProcessId::from_bits(u64::from_le_bytes(core.process))
}

async fn report(core: &RedisCore, process: ProcessId) -> Result<(), StoreError> {
    let keys = BusKeys::new(core).of_process(process);
    let call = ScriptCall::new(&BUS_REPORT, &keys).arg(milliseconds(REPORT_AGE));
    core.link.call::<u8>(&call).await.map(drop)
}

impl SharedBus {
    async fn send_once(&self, to: ProcessId, sealed: &[u8]) -> Result<BusDelivery, StoreError> {
        let call = ScriptCall::new(&BUS_SEND, &BusKeys::new(&self.core).of_process(to))
            .arg(sealed)
            .arg(self.limits.inbox_messages)
            .arg(self.limits.inbox_bytes);
        match self.core.link.call::<String>(&call).await?.as_str() {
            "delivered" => Ok(BusDelivery::Delivered),
            "gone" => Ok(BusDelivery::ProcessGone),
            _ => Err(StoreError::Full),
        }
    }

    async fn send(&self, to: ProcessId, message: &[u8]) -> Result<BusDelivery, StoreError> {
        if message.len() > self.limits.message_bytes {
            return Err(StoreError::TooLarge);
        }
        let sealed = self.core.seal(RowKind::Message, &inbox_binding(to), message)?;
        match self.send_once(to, &sealed).await? {
            BusDelivery::Delivered => Ok(BusDelivery::Delivered),
            BusDelivery::ProcessGone => {
                tokio::time::sleep(SECOND_LOOK).await;
                self.send_once(to, &sealed).await
            }
        }
    }

    async fn publish(&self, message: &[u8]) -> Result<(), StoreError> {
        if message.len() > self.limits.published_bytes {
            return Err(StoreError::TooLarge);
        }
        if self.has_left.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("this process has left the bus".to_owned()));
        }
        // The sender is part of what is sealed, and skips its own messages.
        let plain = [&self.core.process[..], message].concat();
        let sealed = self.core.seal(RowKind::Message, PUBLISHED_BINDING, &plain)?;
        let keys = BusKeys::new(&self.core);
        let call = ScriptCall::new(&BUS_PUBLISH, &[keys.published(), keys.published_count()])
            .arg(sealed)
            .arg(KEPT_MESSAGES);
        self.core.link.call::<u64>(&call).await.map(drop)
    }

    async fn is_there(&self, process: ProcessId) -> Result<bool, StoreError> {
        let mut command = redis::cmd("EXISTS");
        command.arg(BusKeys::new(&self.core).presence(process));
        self.core.link.command(&command).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.has_left.store(true, Ordering::SeqCst);
        self.tasks.iter().for_each(JoinHandle::abort);
        let mut command = redis::cmd("DEL");
        for key in BusKeys::new(&self.core).of_process(process_of(&self.core)) {
            command.arg(key);
        }
        self.core.link.command(&command).await
    }
}

impl SessionBus for RedisBus {
    fn process(&self) -> ProcessId {
        process_of(&self.shared.core)
    }

    fn send(&self, to: ProcessId, message: Bytes) -> BoxFuture<'static, Result<BusDelivery, StoreError>> {
        let shared = self.shared.clone();
        run_on_store(&self.shared.core, async move { shared.send(to, &message).await })
    }

    fn publish(&self, message: Bytes) -> BoxFuture<'static, Result<(), StoreError>> {
        let shared = self.shared.clone();
        run_on_store(&self.shared.core, async move { shared.publish(&message).await })
    }

    fn is_alive(&self, process: ProcessId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let shared = self.shared.clone();
        run_on_store(&self.shared.core, async move {
            if shared.is_there(process).await? {
                return Ok(true);
            }
            tokio::time::sleep(SECOND_LOOK).await;
            shared.is_there(process).await
        })
    }

    fn next(&self) -> BoxFuture<'_, Option<BusEvent>> {
        Box::pin(async move {
            let mut events = self.shared.events.lock().await;
            let event = events.recv().await;
            event.filter(|_| !self.shared.has_left.load(Ordering::SeqCst))
        })
    }

    fn leave(&self) -> BoxFuture<'static, ()> {
        let shared = self.shared.clone();
        let left = run_on_store(&self.shared.core, async move { shared.leave().await });
        Box::pin(async move {
            if let Err(error) = left.await {
                tracing::debug!(%error, "this process could not leave the bus, and counts as there for some seconds");
            }
        })
    }
}

impl fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBus").field("process", &self.process()).finish_non_exhaustive()
    }
}
