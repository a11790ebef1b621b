//! Event stores that wait or fail: no id is sent before its event is stored, and no stream is resumed past a gap.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;
use trunkline_server::http::HttpServerOptions;
use trunkline_server::session::{
    BoxFuture, EventId, EventLimits, EventReplay, EventStore, MemoryEvents, SessionId, StoreError,
    StoreReply, StreamEvent, Timestamp,
};
use trunkline_server::{Context, Resource, Server, Tool};

use crate::support::{Client, host, legacy, settle, tool_text};

#[derive(Clone, Copy, Debug, PartialEq)]
enum StoreGate {
    Closed,
    Open,
    Failing,
}

/// A store in memory that reports an event as stored only once its gate is open.
#[derive(Debug)]
struct GatedEvents {
    events: MemoryEvents,
    gate: watch::Receiver<StoreGate>,
}

impl EventStore for GatedEvents {
    fn append(&self, session: SessionId, event: StreamEvent, now: Timestamp) -> StoreReply<()> {
        if *self.gate.borrow() == StoreGate::Failing {
            return StoreReply::Ready(Err(StoreError::Unavailable("on purpose".to_owned())));
        }
        let appended = self.events.append(session, event, now);
        let mut gate = self.gate.clone();
        StoreReply::Pending(Box::pin(async move {
            let opened = gate.wait_for(|gate| *gate != StoreGate::Closed).await.map(|gate| *gate);
            match opened {
                Ok(StoreGate::Open) => appended.wait().await,
                _ => Err(StoreError::Unavailable("on purpose".to_owned())),
            }
        }))
    }

    fn replay(
        &self,
        session: SessionId,
        after: EventId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<EventReplay, StoreError>> {
        self.events.replay(session, after, now)
    }

    fn forget(&self, session: SessionId) {
        self.events.forget(session);
    }
}

fn server() -> Server {
    let count =
        Tool::new("count").input_schema(json!({ "type": "object" })).run_raw(|cx: Context, _| async move {
            for step in 1..=3 {
                cx.progress(step, 3);
                tokio::task::yield_now().await;
            }
            "counted"
        });
    Server::new("s").with(count).with(Resource::new("test://a", "a").text("a"))
}

async fn client(gate: StoreGate) -> (watch::Sender<StoreGate>, Server, Client) {
    let (sender, gate) = watch::channel(gate);
    let events = GatedEvents { events: MemoryEvents::new(EventLimits::default()), gate };
    let server = server();
    let service = host(&server)
        .http_service(HttpServerOptions { events: Some(Arc::new(events)), ..HttpServerOptions::default() });
    (sender, server, Client::of(&service).initialized("2025-11-25").await)
}

fn call(id: u64) -> Value {
    legacy(id, "tools/call", json!({ "name": "count", "_meta": { "progressToken": "t" } }))
}

#[tokio::test(start_paused = true)]
async fn event_id_is_sent_only_after_its_event_is_stored() {
    let (gate, _server, client) = client(StoreGate::Closed).await;
    let mut stream = client.post(&call(1)).await;
    let reading = tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = stream.event().await {
            events.push(event);
        }
        events
    });
    settle().await;
    assert!(!reading.is_finished(), "nothing is sent while the opening event is not stored");
    gate.send_replace(StoreGate::Open);
    let events = reading.await.unwrap();
    assert_eq!(events.len(), 5, "the opening event, three steps and the response: {events:?}");
    assert!(events.iter().all(|event| event.id.is_some()), "{events:?}");
    let last: Value = serde_json::from_slice(events[4].data.as_ref().unwrap()).unwrap();
    assert_eq!(tool_text(&last), "counted");
}

#[tokio::test(start_paused = true)]
async fn client_that_left_before_its_event_was_stored_resumes_without_a_gap() {
    let (gate, _server, client) = client(StoreGate::Open).await;
    let mut stream = client.post(&call(1)).await;
    let opening = stream.event().await.unwrap().id.unwrap();
    gate.send_replace(StoreGate::Closed);
    settle().await;
    drop(stream);
    gate.send_replace(StoreGate::Open);
    settle().await;
    let messages = client.resume(&opening).await.rest().await;
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert_eq!(tool_text(&messages[3]), "counted");
}

#[tokio::test(start_paused = true)]
async fn failing_event_store_costs_resumption_but_no_message() {
    for first in [StoreGate::Failing, StoreGate::Closed] {
        let (gate, _server, client) = client(first).await;
        let stream = client.post(&call(1)).await;
        let reading = tokio::spawn(async move {
            let (mut stream, mut ids, mut messages) = (stream, 0, Vec::new());
            while let Some((message, id)) = stream.message_with_id().await {
                ids += usize::from(id.is_some());
                messages.push(message);
            }
            (ids, messages)
        });
        settle().await;
        gate.send_replace(StoreGate::Failing);
        let (ids, messages) = reading.await.unwrap();
        assert_eq!((ids, messages.len()), (0, 4), "{first:?} {messages:?}");
        assert_eq!(tool_text(&messages[3]), "counted");
    }
}

#[tokio::test(start_paused = true)]
async fn standalone_stream_with_a_lost_event_is_not_resumed() {
    let (gate, server, client) = client(StoreGate::Open).await;
    let handle = server.handle().unwrap();
    let watch = legacy(1, "resources/subscribe", json!({ "uri": "test://a" }));
    assert_eq!(client.post(&watch).await.answer().await["result"], json!({}));
    let mut stream = client.get().await;
    let opening = stream.event().await.unwrap().id.unwrap();
    handle.notify_updated("test://a");
    assert!(stream.message_with_id().await.unwrap().1.is_some());
    gate.send_replace(StoreGate::Failing);
    handle.notify_updated("test://a");
    assert_eq!(stream.message_with_id().await.unwrap().1, None, "it is sent without an id");
    gate.send_replace(StoreGate::Open);
    handle.notify_updated("test://a");
    assert_eq!(stream.message_with_id().await.unwrap().1, None, "no later id covers the gap");
    assert_ne!(client.resume(&opening).await.status, 200);
    assert_eq!(client.get().await.status, 200, "a new stream can be opened");
}
