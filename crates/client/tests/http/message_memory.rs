//! The memory for messages of all servers together, over HTTP.

use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::{ClientLimits, DroppedMessage, Error, MessageBudget};

use crate::scripted::{ScriptedHttpServer, ScriptedResponse, text_event};
use crate::test_server::direct;
use crate::within;

const BUDGET: usize = 1 << 20;

#[tokio::test]
async fn response_beyond_the_memory_of_all_messages_fails_its_call_alone() {
    let server = ScriptedHttpServer::start(|seen| {
        seen.session().unwrap_or_else(|| {
            let text = "x".repeat(2 * BUDGET);
            match seen.body["params"]["name"].as_str() {
                Some("json") => seen.result(json!({ "content": [{ "type": "text", "text": text }] })),
                Some("events") => ScriptedResponse::events(&text_event(&seen.body["id"], &text)),
                _ => ScriptedResponse::events(&text_event(&seen.body["id"], "small")),
            }
        })
    })
    .await;
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = dropped.clone();
    let message_memory = MessageBudget::new(BUDGET);
    let limits = ClientLimits {
        message_bytes: 4 * BUDGET,
        message_memory: message_memory.clone(),
        ..ClientLimits::default()
    };
    let builder = direct().limits(limits).on_dropped(move |kind| seen.lock().unwrap().push(kind));
    let client = within(builder.pin(Revision::V2025_11_25).connect(server.url.as_str())).await.unwrap();
    for tool in ["json", "events"] {
        let Err(Error::Closed { cause, .. }) = within(client.call(tool, json!({}))).await else {
            panic!("{tool}")
        };
        assert!(cause.contains("all servers together exceed 1048576 bytes"), "{tool}: {cause}");
        assert_eq!(
            std::mem::take(&mut *dropped.lock().unwrap()),
            [DroppedMessage::OverBudget { limit: BUDGET }]
        );
        assert_eq!(within(client.call("small", json!({}))).await.unwrap().text(), "small", "{tool}");
        assert_eq!(message_memory.used(), 0, "{tool}");
    }
}
