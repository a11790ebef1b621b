//! Reads what other processes send, over a connection of its own, and goes on where it ended after an outage.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::RedisResult;
use tokio::sync::mpsc;
use trunkline_session::{BusEvent, ProcessId, RowKind};

use crate::bus::{BusKeys, PUBLISHED_BINDING, inbox_binding};
use crate::connection::OpenConnection;
use crate::scripts::{BUS_TAKEN, ScriptCall};
use crate::store::RedisCore;

/// How long Redis waits for a message before it returns nothing, and after what time a connection counts as broken.
const BLOCK: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(4);

/// The first and the longest pause before a connection is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The most messages that are read at once.
const READ_COUNT: usize = 16;

/// How many messages are remembered, since one that was sent again after a lost reply arrives twice.
const REMEMBERED: usize = 1024;

/// Entries of a Redis stream: their ids, and their fields and values.
pub(crate) type StreamEntries = Vec<(String, Vec<Vec<u8>>)>;

/// The entries of several streams, by their keys; `None` if there were none in time.
type ReadStreams = Option<Vec<(String, StreamEntries)>>;

pub(crate) struct BusReader {
    core: Arc<RedisCore>,
    process: ProcessId,
    /// The last entry of each stream that was read.
    last_published: String,
    last_received: String,
    /// The number of the last published message.
    number: Option<u64>,
    /// The nonces of the last messages.
    seen: VecDeque<[u8; 8]>,
    events: mpsc::Sender<BusEvent>,
}

/// The process that reads has left.
struct ReceiverGone;

impl BusReader {
    pub(crate) fn new(
        core: Arc<RedisCore>,
        process: ProcessId,
        last: StreamEntries,
        events: mpsc::Sender<BusEvent>,
    ) -> Self {
        let last = last.into_iter().next();
        let number = last.as_ref().and_then(|(_, fields)| number_of(fields));
        let last_published = last.map_or_else(|| "0-0".to_owned(), |(id, _)| id);
        let last_received = "0-0".to_owned();
        Self { core, process, last_published, last_received, number, seen: VecDeque::new(), events }
    }

    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let opened = tokio::time::timeout(SILENCE, self.core.link.open_another()).await;
            if let Ok(Ok(mut connection)) = opened {
                pause = FIRST_PAUSE;
                loop {
                    match self.read(&mut connection).await {
                        Ok(streams) => {
                            if self.deliver(streams).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => {
                            tracing::debug!(%error, "the connection to the other processes is opened again");
                            break;
                        }
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn read(&self, connection: &mut OpenConnection) -> RedisResult<ReadStreams> {
        let keys = BusKeys::new(&self.core);
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(READ_COUNT).arg("BLOCK").arg(BLOCK.as_millis() as u64).arg("STREAMS");
        command.arg(keys.published()).arg(keys.inbox(self.process));
        command.arg(&self.last_published).arg(&self.last_received);
        let reading = tokio::time::timeout(SILENCE, command.query_async(connection)).await;
        reading.unwrap_or_else(|_| {
            Err(redis::RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)))
        })
    }

    async fn deliver(&mut self, streams: ReadStreams) -> Result<(), ReceiverGone> {
        let published = BusKeys::new(&self.core).published();
        for (key, entries) in streams.into_iter().flatten() {
            if key == published {
                self.deliver_published(entries).await?;
            } else {
                self.deliver_received(entries).await?;
            }
        }
        Ok(())
    }

    async fn deliver_published(&mut self, entries: StreamEntries) -> Result<(), ReceiverGone> {
        for (id, fields) in entries {
            self.last_published = id;
            let number = number_of(&fields);
            let expected = self.number.map(|last| last + 1);
            if expected.is_some() && number != expected {
                self.emit(BusEvent::Gap).await?;
            }
            self.number = number;
            let Some(mut plain) = self.open(PUBLISHED_BINDING, &fields) else { continue };
            let message = plain.split_off(plain.len().min(self.core.process.len()));
            if plain != self.core.process {
                self.emit(BusEvent::Published(Bytes::from(message))).await?;
            }
        }
        Ok(())
    }

    async fn deliver_received(&mut self, entries: StreamEntries) -> Result<(), ReceiverGone> {
        let keys = BusKeys::new(&self.core);
        let keys = [keys.inbox(self.process), keys.inbox_size(self.process)];
        let mut taken = ScriptCall::new(&BUS_TAKEN, &keys);
        for (id, fields) in entries {
            let sealed = field(&fields, b"m").map_or(0, <[u8]>::len);
            self.last_received.clone_from(&id);
            taken = taken.arg(id).arg(sealed);
            if let Some(plain) = self.open(&inbox_binding(self.process), &fields) {
                self.emit(BusEvent::Message(Bytes::from(plain))).await?;
            }
        }
        // What stays there ends with the inbox, and is not read twice.
        if let Err(error) = self.core.link.call::<u8>(&taken).await {
            tracing::debug!(%error, "messages that were read stay in their inbox");
        }
        Ok(())
    }

    /// Opens a message; `None` if it is no message to this process, or was read before.
    fn open(&mut self, binding: &[u8], fields: &[Vec<u8>]) -> Option<Vec<u8>> {
        let sealed = field(fields, b"m")?;
        let nonce: [u8; 8] = *sealed.first_chunk()?;
        if self.seen.contains(&nonce) {
            return None;
        }
        let opened = RowKind::Message.open(&self.core.sealer, binding, sealed);
        let Some(opened) = opened else {
            tracing::warn!("a message of another process is sealed with another state key, and was dropped");
            return None;
        };
        if self.seen.len() >= REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back(nonce);
        Some(opened.plain)
    }

    async fn emit(&self, event: BusEvent) -> Result<(), ReceiverGone> {
        self.events.send(event).await.map_err(|_| ReceiverGone)
    }
}

fn field<'a>(fields: &'a [Vec<u8>], name: &[u8]) -> Option<&'a [u8]> {
    let (pairs, _) = fields.as_chunks::<2>();
    pairs.iter().find(|[key, _]| key == name).map(|[_, value]| value.as_slice())
}

fn number_of(fields: &[Vec<u8>]) -> Option<u64> {
    std::str::from_utf8(field(fields, b"n")?).ok()?.parse().ok()
}
