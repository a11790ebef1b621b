//! Servers that send more messages within a response than a client has use for.

use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, DroppedMessage};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, text_event};
use crate::test_server::direct;
use crate::within;

type Dropped = Arc<Mutex<Vec<DroppedMessage>>>;

/// Connects to a server, and returns what it has dropped so far.
async fn connect(server: &ScriptedHttpServer) -> (Client, Dropped) {
    let dropped = Dropped::default();
    let seen = dropped.clone();
    let builder = direct().on_dropped(move |kind| seen.lock().unwrap().push(kind));
    let client = builder.pin(Revision::V2025_11_25).connect(server.url.as_str());
    (within(client).await.unwrap(), dropped)
}

#[tokio::test]
async fn flood_of_notifications_on_a_response_stream_pauses_reading() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.session().unwrap_or_else(|| {
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": "" } });
            let mut events = format!("data: {notification}\n\n").repeat(15_000);
            events.push_str(&text_event(&seen.body["id"], "done"));
            ScriptedResponse::events(&events)
        })
    })
    .await;
    let (client, dropped) = connect(&server).await;
    assert_eq!(within(client.call("t", json!({}))).await.unwrap().text(), "done");
    assert!(dropped.lock().unwrap().contains(&DroppedMessage::Paused));
}

#[tokio::test]
async fn answers_to_a_flood_of_pings_are_bounded_and_counted() {
    let server = ScriptedHttpServer::start(|seen| {
        // The server never takes an answer.
        if seen.request_name() == "answer" {
            return ScriptedResponse::nothing();
        }
        seen.session().unwrap_or_else(|| {
            let ping =
                |id: usize| format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
            let mut events: String = (0..200).map(ping).collect();
            events.push_str(&text_event(&seen.body["id"], "done"));
            ScriptedResponse::events(&events)
        })
    })
    .await;
    let (client, dropped) = connect(&server).await;
    assert_eq!(within(client.call("t", json!({}))).await.unwrap().text(), "done");
    let answers = dropped.lock().unwrap().iter().filter(|kind| **kind == DroppedMessage::Answer).count();
    assert_eq!(answers, 200 - 64);
}

#[tokio::test]
async fn messages_beside_a_response_in_a_batch_are_counted() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.session().unwrap_or_else(|| {
            let request = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} });
            let other = json!({ "jsonrpc": "2.0", "id": "of another", "result": {} });
            let content = json!([{ "type": "text", "text": "done" }]);
            let response =
                json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": { "content": content } });
            let malformed = json!({ "jsonrpc": "2.0", "id": 7, "result": {}, "error": {} });
            ScriptedResponse::json(200, &json!([request, notification, other, response, malformed]))
        })
    })
    .await;
    let (client, dropped) = connect(&server).await;
    assert_eq!(within(client.call("t", json!({}))).await.unwrap().text(), "done");
    use DroppedMessage::{Notification, Request, Unmatched, Unreadable};
    assert_eq!(*dropped.lock().unwrap(), [Request, Notification, Unmatched, Unreadable]);
}
