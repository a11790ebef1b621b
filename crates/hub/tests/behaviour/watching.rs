//! Resources that are watched, whatever becomes of the servers that have them and of others who watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{ChangeEvent, ChangeFilter, ChangeStream, Client, ClientCall};
use trunkline_hub::{Hub, HubLimits, ServerSwitch};
use trunkline_server::{Resource, Server};

use crate::support::{
    NEW, OLD, ScriptConnection, ScriptReply, TestServers, client, eager, moved, named_principal,
    plain_client, quick, script, serve_hub, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

/// A server with a resource of its own name.
fn diary(whose: &'static str) -> Server {
    Server::new(whose).with(Resource::new(format!("{whose}:day"), "day").text(whose))
}

fn updated(uri: &str) -> Option<ChangeEvent> {
    Some(ChangeEvent::Resource(uri.to_owned()))
}

async fn next(changes: &mut ChangeStream) -> Option<ChangeEvent> {
    within(changes.next()).await
}

#[tokio::test]
async fn subscription_continues_at_a_replaced_or_reconnected_server() {
    for up in BOTH {
        let town = TestServers::default();
        let a = town.add_server("a", &diary("a"), up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, NEW).await;
        let mut changes = within(client.subscribe(ChangeFilter::default().with_uri("a:day"))).await.unwrap();
        within(hub.set_servers(vec![moved(eager("a"))])).await;
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}: it may have changed meanwhile");
        a.notify_updated("a:day");
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}");
        within(hub.set_servers(Vec::new())).await;
        within(hub.set_servers(vec![eager("a")])).await;
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}: it may have changed meanwhile");
        a.notify_updated("a:day");
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}");
    }
}

/// The responses of a server with resources that notify of updates, except for the given ones.
fn watchable(message: &Value) -> ScriptReply {
    let capabilities = json!({ "resources": { "subscribe": true } });
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => ScriptReply::Result(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "serverInfo": { "name": "script", "version": "1" },
            "capabilities": capabilities,
        })),
        "server/discover" => ScriptReply::Result(json!({
            "resultType": "complete",
            "supportedVersions": [NEW.as_str()],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        "resources/list" => ScriptReply::Result(json!({ "resources": [{ "uri": "s:day", "name": "day" }] })),
        _ => ScriptReply::AsUsual,
    }
}

#[tokio::test]
async fn resource_update_of_a_server_that_is_not_the_owner_is_dropped() {
    let town = TestServers::default();
    town.add_server("a", &diary("a"), NEW);
    let (liar, opener) = script(|peer, message| {
        if message["method"] == "subscriptions/listen" {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            // The server confirms URIs that were not requested, too.
            let promised = json!({ "resourceSubscriptions": ["s:day", "a:day"] });
            peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": meta, "notifications": promised } }));
            return ScriptReply::Nothing;
        }
        watchable(message)
    });
    town.add_script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("s")])).await;
    let client = plain_client(&hub, NEW).await;
    let mut changes =
        within(client.subscribe(ChangeFilter::default().with_uri("a:day").with_uri("s:day"))).await.unwrap();
    let listen = liar.received("subscriptions/listen", 1).await.remove(0);
    for uri in ["a:day", "s:day"] {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
        liar.send(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
            "params": { "_meta": meta, "uri": uri } }));
    }
    assert_eq!(next(&mut changes).await, updated("s:day"));
}

#[tokio::test]
async fn reenabled_server_sends_missed_resource_updates() {
    for up in BOTH {
        let town = TestServers::default();
        let [a, b] = ["a", "b"].map(|name| town.add_server(name, &diary(name), up));
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a"), eager("b")])).await;
        let client = plain_client(&hub, NEW).await;
        let watch = ChangeFilter::default().with_uri("a:day").with_uri("b:day");
        let mut changes = within(client.subscribe(watch)).await.unwrap();
        hub.toggle("a", ServerSwitch::Off).unwrap();
        a.notify_updated("a:day");
        b.notify_updated("b:day");
        assert_eq!(next(&mut changes).await, updated("b:day"), "{up}");
        hub.toggle("a", ServerSwitch::On).unwrap();
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}");
    }
}

#[tokio::test]
async fn unanswered_subscription_does_not_end_another_clients_subscription() {
    let town = TestServers::default();
    let (slow, opener) =
        script(|_, message| match (message["method"].as_str(), message["params"]["uri"].as_str()) {
            (Some("resources/subscribe"), Some("s:day")) => ScriptReply::Result(json!({})),
            (Some("resources/subscribe"), _) => ScriptReply::Nothing,
            _ => watchable(message),
        });
    town.add_script("s", opener, OLD);
    let hub = town.hub_within(HubLimits { subscribe_timeout: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![eager("s")])).await;
    let client = plain_client(&hub, NEW).await;
    let mut changes = loop {
        // However busy the machine is, it is watched in the end.
        let changes = within(client.subscribe(ChangeFilter::default().with_uri("s:day"))).await.unwrap();
        if !changes.accepted_filter().uris.is_empty() {
            break changes;
        }
    };
    let other = plain_client(&hub, NEW).await;
    let both = within(other.subscribe(ChangeFilter::default().with_uri("s:day").with_uri("s:night"))).await;
    assert!(both.is_err() || !both.unwrap().accepted_filter().uris.contains(&"s:night".to_owned()));
    slow.send(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "s:day" } }));
    assert_eq!(next(&mut changes).await, updated("s:day"));
}

/// A modern server that confirms every subscription.
fn listening(peer: &ScriptConnection, message: &Value) -> ScriptReply {
    if message["method"] == "subscriptions/listen" {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
        let promised = &message["params"]["notifications"];
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": promised } }));
        return ScriptReply::Nothing;
    }
    watchable(message)
}

#[tokio::test]
async fn subscription_beyond_the_uri_limit_keeps_the_existing_ones() {
    let town = TestServers::default();
    let (server, opener) = script(listening);
    town.add_script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let client = plain_client(&hub, NEW).await;
    let mut changes = within(client.subscribe(ChangeFilter::default().with_uri("s:day"))).await.unwrap();
    let many = (0..ChangeFilter::MAX_URIS).map(|number| format!("s:{number}")).collect();
    let refused = within(client.subscribe(ChangeFilter { uris: many, ..ChangeFilter::default() })).await;
    assert!(refused.is_err() || refused.unwrap().accepted_filter().uris.is_empty());
    let listen = server.received("subscriptions/listen", 2).await.pop().unwrap();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": { "_meta": meta, "uri": "s:day" } }));
    assert_eq!(next(&mut changes).await, updated("s:day"));
    let methods = server.sent().into_iter().map(|message| message["method"].clone());
    let around: Vec<_> = methods
        .filter(|method| method == "subscriptions/listen" || method == "notifications/cancelled")
        .take(2)
        .collect();
    assert_eq!(around, ["subscriptions/listen"; 2], "there is always one that listens");
}

/// Listens as one principal.
async fn as_somebody(hub: &Hub, who: &str) -> Client {
    client(&serve_hub(hub), Client::builder().pin(NEW), named_principal(who)).await
}

#[tokio::test]
async fn subscriptions_of_one_principal_do_not_affect_others() {
    let town = TestServers::default();
    let subscribed: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let peers: Arc<Mutex<HashMap<usize, ScriptConnection>>> = Arc::default();
    let (noted, met) = (subscribed.clone(), peers.clone());
    let (_, opener) = script(move |peer, message| {
        met.lock().unwrap().insert(peer.number, peer.clone());
        let uri = message["params"]["uri"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str() {
            Some("resources/subscribe") => {
                noted.lock().unwrap().push((peer.number, uri));
                ScriptReply::Result(json!({}))
            }
            Some("resources/read") => {
                ScriptReply::Result(json!({ "contents": [{ "uri": uri, "text": "x" }] }))
            }
            _ => watchable(message),
        }
    });
    town.add_script("s", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let (ada, bob) = (as_somebody(&hub, "ada").await, as_somebody(&hub, "bob").await);
    let mut of_ada = within(ada.subscribe(ChangeFilter::default().with_uri("s:day"))).await.unwrap();
    // The other client has a session of its own, without the subscription of the first.
    within(bob.run(ClientCall::read("s:day"))).await.unwrap();
    let mut of_bob = within(bob.subscribe(ChangeFilter::default().with_uri("s:night"))).await.unwrap();
    let [(first, day), (second, night)] = subscribed.lock().unwrap().clone().try_into().unwrap();
    assert_eq!((day.as_str(), night.as_str()), ("s:day", "s:night"));
    assert_ne!(first, second);
    // No client gets a notification from the session of another.
    let says = |number: usize, uri: &str| {
        let peer = peers.lock().unwrap().get(&number).unwrap().clone();
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } }));
    };
    says(second, "s:day");
    says(second, "s:night");
    assert_eq!(next(&mut of_bob).await, updated("s:night"));
    assert_eq!(of_ada.next().now_or_never(), None);
    says(first, "s:day");
    assert_eq!(next(&mut of_ada).await, updated("s:day"));
}

#[tokio::test]
async fn one_principal_cannot_exhaust_the_subscriptions_of_others() {
    let town = TestServers::default();
    let (_, opener) = script(listening);
    town.add_script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let (ada, bob) = (as_somebody(&hub, "ada").await, as_somebody(&hub, "bob").await);
    let many = (0..ChangeFilter::MAX_URIS).map(|number| format!("s:{number}")).collect();
    let all = within(ada.subscribe(ChangeFilter { uris: many, ..ChangeFilter::default() })).await.unwrap();
    assert_eq!(all.accepted_filter().uris.len(), ChangeFilter::MAX_URIS);
    let one = within(bob.subscribe(ChangeFilter::default().with_uri("s:day"))).await.unwrap();
    assert_eq!(one.accepted_filter().uris, ["s:day"]);
}
