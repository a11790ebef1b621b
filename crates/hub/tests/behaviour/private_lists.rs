//! Servers with lists that depend on the state of a session: what one of several callers made them list, no other sees.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{Client, ClientBuilder};
use trunkline_hub::AnonymousClients::{Isolated, SingleUser};
use trunkline_hub::{AnonymousClients, Hub, HubOptions, ProcessCaller};
use trunkline_session::Principal;

use crate::support::{
    OLD, ScriptReply, ScriptedServer, TestServers, client, eager, lazy, named_principal, quick, say, script,
    serve_hub, tools, until, within,
};

/// A server that lists `secret` in the sessions in which `t` was called, and in each list how many were requested.
fn forgetful() -> (ScriptedServer, ChannelOpener) {
    let (called, lists) = (Arc::<Mutex<HashSet<usize>>>::default(), AtomicUsize::new(0));
    script(move |peer, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({
            "protocolVersion": OLD.as_str(),
            "serverInfo": { "name": "forgetful", "version": "1" },
            "capabilities": { "tools": { "listChanged": true } },
        })),
        Some("tools/list") => {
            let number = format!("list-{}", lists.fetch_add(1, Ordering::SeqCst));
            let secret = called.lock().unwrap().contains(&peer.number).then(|| "secret".to_owned());
            let tools: Vec<_> = ["t".to_owned(), number]
                .into_iter()
                .chain(secret)
                .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
                .collect();
            ScriptReply::Result(json!({ "tools": tools }))
        }
        Some("tools/call") => {
            called.lock().unwrap().insert(peer.number);
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            ScriptReply::AsUsual
        }
        _ => ScriptReply::AsUsual,
    })
}

async fn connect(hub: &Hub, principal: Principal) -> Client {
    let builder: ClientBuilder = Client::builder().pin(OLD);
    client(&serve_hub(hub), builder, principal).await
}

/// Returns the number of the list that a client sees.
async fn list_number(client: &Client) -> Option<usize> {
    let listed = tools(client).await;
    listed.iter().find_map(|name| name.strip_prefix("a__list-")?.parse().ok())
}

/// Has one client change the lists of its session, and returns whether another sees the change.
async fn is_seen_by_another(anonymous: AnonymousClients, callers: [Principal; 2], is_eager: bool) -> bool {
    let town = TestServers::default();
    let (server, opener) = forgetful();
    town.add_script("a", opener, OLD);
    let process = ProcessCaller::Operator;
    let hub = Hub::new(HubOptions { anonymous, process, ..town.options(quick()) });
    within(hub.set_servers(vec![if is_eager { eager("a") } else { lazy("a") }])).await;
    let [one, other] = callers;
    let (one, other) = (connect(&hub, one).await, connect(&hub, other).await);
    assert!(list_number(&one).await.is_some() && list_number(&other).await.is_some());
    let before = server.of("tools/list").len();
    assert_eq!(say(&one, "a__t").await, "t");
    // The other is shown a list that was requested after the change.
    within(async { while list_number(&other).await < Some(before) {} }).await;
    let seen = tools(&other).await.contains(&"a__secret".to_owned());
    assert_eq!(tools(&one).await.contains(&"a__secret".to_owned()), seen);
    // The other has a session of its own, if that matters, and its use changes nothing.
    assert_eq!(say(&other, "a__t").await, "t");
    until(|| hub.status_of("a").unwrap().calls == 0).await;
    seen
}

#[tokio::test]
async fn what_a_server_lists_in_the_session_of_one_caller_is_shown_to_no_other() {
    for is_eager in [false, true] {
        let named = ["ann", "bob"].map(named_principal);
        assert!(!is_seen_by_another(SingleUser, named, is_eager).await, "principals, eager {is_eager}");
        let operator = [Principal::Process, named_principal("ann")];
        assert!(!is_seen_by_another(Isolated, operator, is_eager).await, "operator, eager {is_eager}");
        let strangers = [Principal::Anonymous, Principal::Anonymous];
        assert!(!is_seen_by_another(Isolated, strangers, is_eager).await, "strangers, eager {is_eager}");
    }
}

#[tokio::test]
async fn what_a_server_lists_for_the_only_user_is_shown_to_all_clients() {
    for is_eager in [false, true] {
        let local = [Principal::Anonymous, Principal::Anonymous];
        assert!(is_seen_by_another(SingleUser, local, is_eager).await, "eager {is_eager}");
    }
}
