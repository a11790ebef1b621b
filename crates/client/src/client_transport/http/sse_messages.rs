use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use trunkline_protocol::Message;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageLimits, MessageOrBatch};
use trunkline_protocol::sse::{SseDecoder, SseEvent};
use trunkline_transport::http::HttpResponseBody;

use super::HttpLimits;
use super::resumption::StreamResumption;
use crate::client_transport::flood_guard::FloodGuard;
use crate::message_budget::{BudgetExceeded, BudgetShare};

/// The messages of one event stream, read on demand, and not read for a moment if they come too fast.
pub(super) struct SseMessages {
    body: HttpResponseBody,
    decoder: SseDecoder,
    /// Received bytes that are not decoded yet.
    chunk: Bytes,
    /// The decoded messages of the current event.
    batch: VecDeque<SseItem>,
    bounds: MessageLimits,
    memory: BudgetShare,
    flood: FloodGuard,
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum SseItem {
    /// A message.
    Message(Message),
    /// A malformed message, and whether it looks like a response.
    Malformed(MalformedMessage, bool),
    /// A message above the limit, in bytes.
    TooLong(usize),
    /// The stream needs more memory than there is for messages.
    OutOfMemory(BudgetExceeded),
    /// Messages came too fast: the stream is not read until the second is over.
    Paused,
    /// The end of the stream, with the reason.
    End(String),
}

impl SseMessages {
    pub(super) fn new(body: HttpResponseBody, limits: &HttpLimits) -> Self {
        Self {
            body,
            decoder: SseDecoder::new(limits.message_bytes),
            chunk: Bytes::new(),
            batch: VecDeque::new(),
            bounds: limits.bounds,
            memory: limits.message_memory.share(),
            flood: FloodGuard::default(),
        }
    }

    /// Waits for the next item, and records where the stream can be resumed. Cancel safe.
    pub(super) async fn next(&mut self, resumption: &mut StreamResumption) -> SseItem {
        loop {
            self.flood.wait().await;
            if let Some(item) = self.batch.pop_front() {
                return item;
            }
            match self.decoder.next_event(&mut self.chunk) {
                Some(Ok(event)) => {
                    resumption.record_event(&event);
                    self.take(event);
                    if self.flood.count() {
                        return SseItem::Paused;
                    }
                }
                Some(Err(too_large)) => return SseItem::TooLong(too_large.limit),
                None => match self.body.chunk().await {
                    Some(Ok(chunk)) => match self.memory.set(self.decoder.buffered() + chunk.len()) {
                        Ok(()) => self.chunk = chunk,
                        Err(exceeded) => return SseItem::OutOfMemory(exceeded),
                    },
                    Some(Err(error)) => return SseItem::End(error.to_string()),
                    None => return SseItem::End("the stream ended before the response came".to_owned()),
                },
            }
        }
    }

    /// Parses the messages of an event. An event without data only carries an id or `retry`, and events with
    /// another name are ignored.
    fn take(&mut self, event: SseEvent) {
        let is_message = event.event.is_none_or(|name| name == "message");
        let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) else { return };
        match envelope::read_from_server(&data, self.bounds) {
            Ok(MessageOrBatch::One(message)) => self.batch.push_back(SseItem::Message(message)),
            Ok(MessageOrBatch::Batch(messages)) => self.batch.extend(messages.into_iter().map(|message| {
                message.map_or_else(
                    |malformed| {
                        let is_response = malformed.id.is_some();
                        SseItem::Malformed(malformed, is_response)
                    },
                    SseItem::Message,
                )
            })),
            Err(malformed) => {
                let part = envelope::find_legible_part(&data);
                let is_response = part.is_some_and(|part| !part.has_foreign_id);
                self.batch.push_back(SseItem::Malformed(malformed, is_response));
            }
        }
    }

    /// Ends the stream after the response.
    pub(super) fn finish(self) {
        self.body.finish();
    }
}

impl fmt::Debug for SseMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseMessages").field("body", &self.body).finish_non_exhaustive()
    }
}
