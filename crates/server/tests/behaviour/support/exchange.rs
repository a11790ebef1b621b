use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::Body as _;
use serde_json::Value;
use trunkline_server::http::McpResponseBody;
use trunkline_server::protocol::sse::{SseDecoder, SseEvent};

use super::within;

/// A response with a body that is still being read. Dropping it is a disconnect.
#[derive(Debug)]
pub(crate) struct HttpExchange {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: McpResponseBody,
    decoder: SseDecoder,
    events: VecDeque<SseEvent>,
}

impl HttpExchange {
    pub(super) fn new(response: Response<McpResponseBody>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            decoder: SseDecoder::new(1 << 20),
            events: VecDeque::new(),
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    async fn chunk(&mut self) -> Option<Bytes> {
        let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await?;
        Some(frame.unwrap().into_data().unwrap_or_default())
    }

    /// Returns the next event that is more than a comment.
    #[track_caller]
    pub(crate) fn event(&mut self) -> impl Future<Output = Option<SseEvent>> {
        assert!(self.is_stream(), "not a stream: {} {:?}", self.status, self.headers);
        // Comments do not count as something that happens, so the whole wait is bounded and not each piece.
        within(async move {
            loop {
                if let Some(event) = self.events.pop_front() {
                    return Some(event);
                }
                let mut chunk = self.chunk().await?;
                while let Some(event) = self.decoder.next_event(&mut chunk) {
                    self.events.push_back(event.unwrap());
                }
            }
        })
    }

    /// Returns the next event that carries a message, with its id.
    pub(crate) async fn message_with_id(&mut self) -> Option<(Value, Option<String>)> {
        loop {
            let event = self.event().await?;
            let data = event.data.unwrap_or_default();
            if !data.is_empty() {
                return Some((serde_json::from_slice(&data).unwrap(), event.id));
            }
        }
    }

    /// Returns the next message of a stream; `None` when the stream is over.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        Some(self.message_with_id().await?.0)
    }

    /// Returns everything that is still to come, whatever form it has.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        if self.is_stream() {
            while let Some(message) = self.message().await {
                messages.push(message);
            }
            return messages;
        }
        let mut whole = Vec::new();
        while let Some(chunk) = within(self.chunk()).await {
            whole.extend_from_slice(&chunk);
        }
        if !whole.is_empty() {
            messages.push(serde_json::from_slice(&whole).unwrap());
        }
        messages
    }

    /// Returns the last message, which is the answer.
    pub(crate) async fn answer(mut self) -> Value {
        let status = self.status;
        self.rest().await.pop().unwrap_or_else(|| panic!("{status} without an answer"))
    }
}
