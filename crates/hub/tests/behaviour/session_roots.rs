//! Roots that servers request when their session begins.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::protocol::Refusal;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse, Root};
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{BoxFuture, Client, InputHandler, InputOrigin};
use trunkline_hub::Hub;

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, lazy, named_principal, say,
    script, serve_hub, text_result, tools, within,
};

/// The pings that the server answers between the response to its request and its use.
const RESOLVING_PINGS: usize = 3;

/// The roots of a session, and the pings until they are used.
type SessionFolders = (String, usize);

/// A server that requests roots when its session begins, resolves them beside its message loop, and refuses every call
/// until it has. Like servers over stdio it sends the request before it answers any later message.
fn folder_server() -> (ScriptedServer, ChannelOpener) {
    let known: Arc<Mutex<HashMap<usize, SessionFolders>>> = Arc::default();
    script(move |peer, message| {
        let mut known = known.lock().unwrap();
        match message["method"].as_str() {
            Some("ping") if !known.contains_key(&peer.number) => {
                let ask = json!({ "jsonrpc": "2.0", "id": "roots", "method": "roots/list" });
                let (peer, ping) = (peer.clone(), message.clone());
                tokio::spawn(async move {
                    peer.send_now(&ask);
                    peer.send_now(&json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} }));
                });
                ScriptReply::Nothing
            }
            Some("ping") => {
                let folders = known.get_mut(&peer.number);
                folders.into_iter().for_each(|(_, pings)| *pings = pings.saturating_sub(1));
                ScriptReply::AsUsual
            }
            Some("tools/call") => {
                let used = known.get(&peer.number).filter(|(_, pings)| *pings == 0);
                ScriptReply::Result(text_result(used.map_or("Access denied", |(folders, _)| folders)))
            }
            None if message["id"] == "roots" => {
                let listed = message["result"]["roots"].as_array().cloned().unwrap_or_default();
                let uris: Vec<_> = listed.iter().filter_map(|root| root["uri"].as_str()).collect();
                known.insert(peer.number, (uris.join(" "), RESOLVING_PINGS));
                ScriptReply::Nothing
            }
            _ => ScriptReply::AsUsual,
        }
    })
}

#[tokio::test]
async fn first_call_waits_for_the_roots_that_the_server_requests() {
    for down in [OLD, NEW] {
        let town = TestServers::default();
        let (_, opener) = folder_server();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        for (who, root) in [("ada", "file:///x"), ("ada", "file:///y"), ("bob", "file:///x")] {
            let builder = Client::builder().pin(down).input(RecordingHandler::with_roots(&[root]));
            let client = client(&serve_hub(&hub), builder, named_principal(who)).await;
            assert_eq!(say(&client, "a__t").await, root, "{down}: {who}");
        }
    }
}

#[tokio::test]
async fn concurrent_first_calls_each_get_a_session_with_their_roots() {
    let town = TestServers::default();
    let (_, opener) = folder_server();
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let front = serve_hub(&hub);
    let mut calls = Vec::new();
    for root in ["file:///x", "file:///y", "file:///z"] {
        let builder = Client::builder().pin(OLD).input(RecordingHandler::with_roots(&[root]));
        let client = client(&front, builder, named_principal("ada")).await;
        calls.push(tokio::spawn(async move { (say(&client, "a__t").await, root) }));
    }
    for call in calls {
        let (said, root) = within(call).await.unwrap();
        assert_eq!(said, root);
    }
}

/// On several threads, the task that waits for a ping may run before the one that answers a request which came earlier.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_calls_on_several_threads_wait_for_the_requested_roots() {
    let town = TestServers::default();
    let (_, opener) = folder_server();
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let mut calls = Vec::new();
    for number in 0..30 {
        let root = format!("file:///{number}");
        let builder = Client::builder().pin(OLD).input(RecordingHandler::with_roots(&[&root]));
        let client = client(&serve_hub(&hub), builder, named_principal("ada")).await;
        calls.push(tokio::spawn(async move { (say(&client, "a__t").await, root) }));
    }
    for call in calls {
        let (said, root) = within(call).await.unwrap();
        assert_eq!(said, root);
    }
}

/// Counts the requests for roots.
#[derive(Clone, Default)]
struct CountingRoots(Arc<AtomicUsize>);

impl InputHandler for CountingRoots {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_roots()
    }

    fn answer(&self, _: InputOrigin, _: InputRequest) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let root = Root { uri: "file:///x".to_owned(), ..Root::default() };
        Box::pin(std::future::ready(Ok(InputResponse::Roots(vec![root]))))
    }
}

async fn counted_client(hub: &Hub) -> (Client, CountingRoots) {
    let asked = CountingRoots::default();
    let builder = Client::builder().pin(OLD).input(asked.clone());
    (client(&serve_hub(hub), builder, named_principal("ada")).await, asked)
}

#[tokio::test]
async fn legacy_session_is_sent_roots_list_only_if_a_server_requests_roots() {
    let town = TestServers::default();
    let (_, folders) = folder_server();
    town.add_script("folders", folders, OLD);
    let (_, plain) = script(|_, _| ScriptReply::AsUsual);
    town.add_script("plain", plain, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("folders"), lazy("plain")])).await;
    let (client, asked) = counted_client(&hub).await;
    assert!(tools(&client).await.contains(&"plain__t".to_owned()));
    assert_eq!(say(&client, "plain__t").await, "t");
    within(client.roots_changed()).await.unwrap();
    assert_eq!(say(&client, "plain__t").await, "t");
    // A round trip, after which a request that the hub had sent would have arrived.
    within(client.ping()).await.unwrap();
    assert_eq!(asked.0.load(Ordering::SeqCst), 0);
    assert_eq!(say(&client, "folders__t").await, "file:///x");
    assert_eq!(asked.0.load(Ordering::SeqCst), 1);
}
