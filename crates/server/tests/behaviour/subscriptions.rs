//! `subscriptions/listen`: the subscribed notifications, under the subscription's id, until the client or the server
//! ends it.

use serde_json::{Value, json};
use trunkline_server::protocol::meta::SUBSCRIPTION_ID;
use trunkline_server::{Context, Prompt, Resource, Server, ServerHandle, Tool};

use crate::support::{Client, JSON_ONLY, ModernRequest, Peer, code, host, note, settle};

const ACK: &str = "notifications/subscriptions/acknowledged";
const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn server() -> (ServerHandle, Server) {
    let server = Server::new("s")
        .with(Tool::new("hello").run(async |cx: Context| {
            cx.progress(1, 1);
            "hello"
        }))
        .with(Prompt::new("p").get(async || "p"))
        .with(Resource::new("test://a", "a").text("a"));
    (server.handle().unwrap(), server)
}

/// Changes everything that there is to change.
fn change_all(server: &ServerHandle) {
    server.add(Tool::new("passing").run(async || "x")).unwrap();
    server.add(Prompt::new("passing").get(async || "x")).unwrap();
    server.add(Resource::new("test://passing", "passing").text("x")).unwrap();
    server.notify_updated("test://a");
    server.notify_updated("test://b");
    server.remove_tool("passing");
    server.remove_prompt("passing");
    server.remove_resource("test://passing");
}

fn listen(id: impl Into<Value>, filter: Value) -> ModernRequest {
    ModernRequest::new("subscriptions/listen").id(id).param("notifications", filter)
}

/// Checks that a message belongs to a subscription, and returns its method.
#[track_caller]
fn method_of<'m>(message: &'m Value, id: &Value) -> &'m str {
    assert_eq!(message["params"]["_meta"][SUBSCRIPTION_ID], *id, "{message}");
    message["method"].as_str().unwrap()
}

fn filters() -> Vec<(Value, Value, Vec<&'static str>)> {
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["test://a"],
    });
    vec![
        (json!({}), json!({}), vec![]),
        (json!({ "toolsListChanged": true }), json!({ "toolsListChanged": true }), vec![TOOLS]),
        (
            json!({ "toolsListChanged": false, "promptsListChanged": true, "unknown": true }),
            json!({ "promptsListChanged": true }),
            vec![PROMPTS],
        ),
        (
            json!({ "resourceSubscriptions": ["test://b"] }),
            json!({ "resourceSubscriptions": ["test://b"] }),
            vec![UPDATED],
        ),
        (all.clone(), all, vec![TOOLS, PROMPTS, RESOURCES, UPDATED]),
    ]
}

#[tokio::test(start_paused = true)]
async fn http_subscription_is_acknowledged_before_its_notifications() {
    let (handle, server) = server();
    let host = host(&server);
    let client = Client::new(&host);
    for id in [json!(7), json!("seven")] {
        for (asked, honoured, told) in filters() {
            let mut stream = client.post(&listen(id.clone(), asked).value()).await;
            assert_eq!(stream.status, 200);
            // A change before the first read does not slip ahead of the acknowledgement.
            change_all(&handle);
            let ack = stream.message().await.unwrap();
            assert_eq!(method_of(&ack, &id), ACK);
            assert_eq!(ack["params"]["notifications"], honoured);
            for expected in &told {
                assert_eq!(method_of(&stream.message().await.unwrap(), &id), *expected);
            }
            // No other notification comes, or it would precede the next change of a subscribed list.
            if told.contains(&TOOLS) {
                change_all(&handle);
                assert_eq!(method_of(&stream.message().await.unwrap(), &id), TOOLS);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn channel_subscription_is_acknowledged_before_its_notifications() {
    let (handle, server) = server();
    let host = host(&server);
    for id in [json!(7), json!("seven")] {
        for (asked, honoured, told) in filters() {
            let mut peer = Peer::new(&host);
            peer.send(&listen(id.clone(), asked).value()).await;
            let ack = peer.receive().await;
            assert_eq!(method_of(&ack, &id), ACK);
            assert_eq!(ack["params"]["notifications"], honoured);
            change_all(&handle);
            let messages = peer.received().await;
            let methods: Vec<_> = messages.iter().map(|message| method_of(message, &id)).collect();
            assert_eq!(methods, told);
            let call = peer.exchange(&ModernRequest::tool("hello").id("call").token("t").value()).await;
            assert_eq!(call.len(), 2, "progress belongs to calls: {call:?}");
            assert!(call[0]["params"].get("_meta").is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unsupported_subscriptions_are_absent_from_the_acknowledgement() {
    let server = Server::new("s").with(Tool::new("hello").run(async || "hello"));
    let host = host(&server);
    let asked =
        json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"] });
    let mut stream = Client::new(&host).post(&listen(1, asked).value()).await;
    let ack = stream.message().await.unwrap();
    assert_eq!(ack["params"]["notifications"], json!({ "toolsListChanged": true }));
}

#[tokio::test(start_paused = true)]
async fn notifications_have_the_id_of_their_own_subscription() {
    let (handle, server) = server();
    let host = host(&server);
    let mut peer = Peer::new(&host);
    for id in [1, 2] {
        peer.send(&listen(id, json!({ "toolsListChanged": true })).value()).await;
    }
    peer.send(&listen(3, json!({ "promptsListChanged": true })).value()).await;
    assert_eq!(peer.received().await.len(), 3);
    handle.remove_tool("hello");
    let messages = peer.received().await;
    let mut ids: Vec<_> = messages
        .iter()
        .map(|message| message["params"]["_meta"][SUBSCRIPTION_ID].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn malformed_subscription_filter_is_refused() {
    let (_, server) = server();
    let host = host(&server);
    let mut peer = Peer::new(&host);
    let many: Vec<String> = (0..2000).map(|n| format!("test://{n}")).collect();
    for wrong in [
        json!(null),
        json!([]),
        json!({ "resourceSubscriptions": "test://a" }),
        json!({ "resourceSubscriptions": [1] }),
        json!({ "resourceSubscriptions": many }),
    ] {
        assert_eq!(code(&peer.call(&listen(1, wrong).value()).await), -32602);
    }
    assert_eq!(code(&peer.call(&ModernRequest::new("subscriptions/listen").value()).await), -32602);
    let client = Client::new(&host).with("accept", JSON_ONLY);
    let refused = client.post(&listen(1, json!({})).value()).await;
    assert_eq!(refused.status, 406);
    let refused = refused.answer().await;
    assert_eq!(refused["error"]["message"], "this method needs Accept: text/event-stream");
}

#[tokio::test(start_paused = true)]
async fn draining_server_ends_subscriptions_with_a_result() {
    let (_, server) = server();
    let host = host(&server);
    let client = Client::new(&host);
    let mut stream = client.post(&listen("h", json!({ "toolsListChanged": true })).value()).await;
    let mut peer = Peer::new(&host);
    peer.send(&listen(5, json!({})).value()).await;
    peer.receive().await;
    let reader = tokio::spawn(async move { stream.rest().await });
    settle().await;
    host.shutdown().drain();
    let messages = reader.await.unwrap();
    let ending = messages.last().unwrap();
    assert_eq!(ending["id"], "h");
    assert_eq!(ending["result"]["resultType"], "complete");
    assert_eq!(ending["result"]["_meta"][SUBSCRIPTION_ID], "h");

    let ending = peer.receive().await;
    assert_eq!((&ending["id"], &ending["result"]["_meta"][SUBSCRIPTION_ID]), (&json!(5), &json!(5)));
    let cancelled = peer.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], 5);
    assert_eq!(peer.try_receive().await, None);
    assert_eq!(client.post(&listen(1, json!({})).value()).await.status, 503);
}

#[tokio::test(start_paused = true)]
async fn cancelled_channel_subscription_gets_no_response() {
    let (handle, server) = server();
    let host = host(&server);
    let mut peer = Peer::new(&host);
    for id in [1, 2] {
        peer.send(&listen(id, json!({ "toolsListChanged": true })).value()).await;
        peer.receive().await;
    }
    peer.send(&note("notifications/cancelled", json!({ "requestId": 1 }))).await;
    assert!(peer.received().await.is_empty());
    handle.remove_tool("hello");
    let messages = peer.received().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(method_of(&messages[0], &json!(2)), TOOLS);
    peer.send(&listen(1, json!({})).value()).await;
    assert_eq!(method_of(&peer.receive().await, &json!(1)), ACK, "the id is free again");
}

#[tokio::test(start_paused = true)]
async fn legacy_and_modern_subscriptions_on_one_channel_are_independent() {
    let (handle, server) = server();
    let host = host(&server);
    let mut peer = Peer::initialized(&host, "2025-11-25").await;
    peer.send(&listen(1, json!({ "promptsListChanged": true })).value()).await;
    peer.receive().await;
    handle.remove_tool("hello");
    handle.remove_prompt("p");
    let mut told: Vec<_> = peer
        .received()
        .await
        .iter()
        .map(|message| (message["method"].clone(), message["params"]["_meta"][SUBSCRIPTION_ID].clone()))
        .collect();
    told.sort_by_key(|(method, id)| (method.to_string(), id.to_string()));
    let legacy = Value::Null;
    assert_eq!(told, [(json!(PROMPTS), json!(1)), (json!(PROMPTS), legacy.clone()), (json!(TOOLS), legacy)]);
}
