use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use trunkline_protocol::Message;
use trunkline_protocol::envelope::{self, MalformedMessage, MessageLimits, MessageOrBatch};
use trunkline_protocol::sse::{SseDecoder, SseEvent};
use trunkline_transport::http::HttpResponseBody;

use super::HttpLimits;
use super::resumption::StreamResumption;

/// The messages of one event stream, read on demand, so that a flooding server is slowed by backpressure.
pub(super) struct SseMessages {
    body: HttpResponseBody,
    decoder: SseDecoder,
    /// Received bytes that are not decoded yet.
    chunk: Bytes,
    /// The decoded messages of the current event.
    batch: VecDeque<Result<Message, MalformedMessage>>,
    bounds: MessageLimits,
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum SseItem {
    /// A message.
    Message(Message),
    /// A malformed message.
    Malformed(MalformedMessage),
    /// A message above the limit, in bytes.
    TooLong(usize),
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
        }
    }

    /// Waits for the next item, and records where the stream can be resumed. Cancel safe.
    pub(super) async fn next(&mut self, resumption: &mut StreamResumption) -> SseItem {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return message.map_or_else(SseItem::Malformed, SseItem::Message);
            }
            match self.decoder.next_event(&mut self.chunk) {
                Some(Ok(event)) => {
                    resumption.record_event(&event);
                    self.take(event);
                }
                Some(Err(too_large)) => return SseItem::TooLong(too_large.limit),
                None => match self.body.chunk().await {
                    Some(Ok(chunk)) => self.chunk = chunk,
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
        match envelope::read_from_server(data, self.bounds) {
            Ok(MessageOrBatch::One(message)) => self.batch.push_back(Ok(message)),
            Ok(MessageOrBatch::Batch(messages)) => self.batch.extend(messages),
            Err(malformed) => self.batch.push_back(Err(malformed)),
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
