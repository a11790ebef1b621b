//! Resources that are watched, whatever becomes of the servers that have them and of others who watch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Call, Change, Client, Subscription, Watch};
use trunkline_hub::{Hub, HubLimits, Switch};
use trunkline_server::{Resource, Server};

use crate::support::{
    NEW, OLD, Peer, Says, Town, client, eager, front, moved, plain, quick, script, somebody, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

/// A server with a resource of its own name.
fn diary(whose: &'static str) -> Server {
    Server::new(whose).with(Resource::new(format!("{whose}:day"), "day").text(whose))
}

fn updated(uri: &str) -> Option<Change> {
    Some(Change::Resource(uri.to_owned()))
}

async fn next(changes: &mut Subscription) -> Option<Change> {
    within(changes.next()).await
}

#[tokio::test]
async fn a_watch_goes_on_at_the_successor_of_a_server_and_when_it_is_back() {
    for up in BOTH {
        let town = Town::default();
        let a = town.settle("a", &diary("a"), up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain(&hub, NEW).await;
        let mut changes = within(client.subscribe(Watch::default().and("a:day"))).await.unwrap();
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

/// What a server says that has resources which can be watched, but for what it is told to say otherwise.
fn watchable(message: &Value) -> Says {
    let capabilities = json!({ "resources": { "subscribe": true } });
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Says::Result(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "serverInfo": { "name": "script", "version": "1" },
            "capabilities": capabilities,
        })),
        "server/discover" => Says::Result(json!({
            "resultType": "complete",
            "supportedVersions": [NEW.as_str()],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        "resources/list" => Says::Result(json!({ "resources": [{ "uri": "s:day", "name": "day" }] })),
        _ => Says::AsUsual,
    }
}

#[tokio::test]
async fn a_server_tells_of_no_changes_of_what_is_anothers() {
    let town = Town::default();
    town.settle("a", &diary("a"), NEW);
    let (liar, opener) = script(|peer, message| {
        if message["method"] == "subscriptions/listen" {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            // It promises what nobody asked for, too.
            let promised = json!({ "resourceSubscriptions": ["s:day", "a:day"] });
            peer.say(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": meta, "notifications": promised } }));
            return Says::Nothing;
        }
        watchable(message)
    });
    town.script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("s")])).await;
    let client = plain(&hub, NEW).await;
    let mut changes = within(client.subscribe(Watch::default().and("a:day").and("s:day"))).await.unwrap();
    let listen = liar.received("subscriptions/listen", 1).await.remove(0);
    for uri in ["a:day", "s:day"] {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
        liar.say(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
            "params": { "_meta": meta, "uri": uri } }));
    }
    assert_eq!(next(&mut changes).await, updated("s:day"));
}

#[tokio::test]
async fn a_server_that_is_switched_off_tells_of_changes_when_it_is_back() {
    for up in BOTH {
        let town = Town::default();
        let [a, b] = ["a", "b"].map(|name| town.settle(name, &diary(name), up));
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a"), eager("b")])).await;
        let client = plain(&hub, NEW).await;
        let watch = Watch::default().and("a:day").and("b:day");
        let mut changes = within(client.subscribe(watch)).await.unwrap();
        hub.toggle("a", Switch::Off).unwrap();
        a.notify_updated("a:day");
        b.notify_updated("b:day");
        assert_eq!(next(&mut changes).await, updated("b:day"), "{up}");
        hub.toggle("a", Switch::On).unwrap();
        assert_eq!(next(&mut changes).await, updated("a:day"), "{up}");
    }
}

#[tokio::test]
async fn who_waits_in_vain_ends_nobody_elses_watch() {
    let town = Town::default();
    let (slow, opener) =
        script(|_, message| match (message["method"].as_str(), message["params"]["uri"].as_str()) {
            (Some("resources/subscribe"), Some("s:day")) => Says::Result(json!({})),
            (Some("resources/subscribe"), _) => Says::Nothing,
            _ => watchable(message),
        });
    town.script("s", opener, OLD);
    let hub = town.hub_within(HubLimits { watch_within: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![eager("s")])).await;
    let client = plain(&hub, NEW).await;
    let mut changes = loop {
        // However busy the machine is, it is watched in the end.
        let changes = within(client.subscribe(Watch::default().and("s:day"))).await.unwrap();
        if !changes.honoured().uris.is_empty() {
            break changes;
        }
    };
    let other = plain(&hub, NEW).await;
    let both = within(other.subscribe(Watch::default().and("s:day").and("s:night"))).await;
    assert!(both.is_err() || !both.unwrap().honoured().uris.contains(&"s:night".to_owned()));
    slow.say(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "s:day" } }));
    assert_eq!(next(&mut changes).await, updated("s:day"));
}

/// A modern server that promises to tell of everything it is asked for.
fn listening(peer: &Peer, message: &Value) -> Says {
    if message["method"] == "subscriptions/listen" {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
        let promised = &message["params"]["notifications"];
        peer.say(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": promised } }));
        return Says::Nothing;
    }
    watchable(message)
}

#[tokio::test]
async fn more_than_can_be_watched_leaves_what_is_watched() {
    let town = Town::default();
    let (server, opener) = script(listening);
    town.script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let client = plain(&hub, NEW).await;
    let mut changes = within(client.subscribe(Watch::default().and("s:day"))).await.unwrap();
    let many = (0..Watch::MOST_URIS).map(|number| format!("s:{number}")).collect();
    let refused = within(client.subscribe(Watch { uris: many, ..Watch::default() })).await;
    assert!(refused.is_err() || refused.unwrap().honoured().uris.is_empty());
    let listen = server.received("subscriptions/listen", 2).await.pop().unwrap();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
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
    client(&front(hub), Client::builder().pin(NEW), somebody(who)).await
}

#[tokio::test]
async fn what_one_principal_watches_is_nothing_to_the_others() {
    let town = Town::default();
    let subscribed: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let peers: Arc<Mutex<HashMap<usize, Peer>>> = Arc::default();
    let (noted, met) = (subscribed.clone(), peers.clone());
    let (_, opener) = script(move |peer, message| {
        met.lock().unwrap().insert(peer.number, peer.clone());
        let uri = message["params"]["uri"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str() {
            Some("resources/subscribe") => {
                noted.lock().unwrap().push((peer.number, uri));
                Says::Result(json!({}))
            }
            Some("resources/read") => Says::Result(json!({ "contents": [{ "uri": uri, "text": "x" }] })),
            _ => watchable(message),
        }
    });
    town.script("s", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let (ada, bob) = (as_somebody(&hub, "ada").await, as_somebody(&hub, "bob").await);
    let mut of_ada = within(ada.subscribe(Watch::default().and("s:day"))).await.unwrap();
    // The other has a session of its own, in which nobody asks for what the first watches.
    within(bob.run(Call::read("s:day"))).await.unwrap();
    let mut of_bob = within(bob.subscribe(Watch::default().and("s:night"))).await.unwrap();
    let [(first, day), (second, night)] = subscribed.lock().unwrap().clone().try_into().unwrap();
    assert_eq!((day.as_str(), night.as_str()), ("s:day", "s:night"));
    assert_ne!(first, second);
    // Nor is anybody told of what happens in the session of another.
    let says = |number: usize, uri: &str| {
        let peer = peers.lock().unwrap().get(&number).unwrap().clone();
        peer.say(json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } }));
    };
    says(second, "s:day");
    says(second, "s:night");
    assert_eq!(next(&mut of_bob).await, updated("s:night"));
    assert_eq!(of_ada.next().now_or_never(), None);
    says(first, "s:day");
    assert_eq!(next(&mut of_ada).await, updated("s:day"));
}

#[tokio::test]
async fn one_principal_cannot_use_up_what_the_others_may_watch() {
    let town = Town::default();
    let (_, opener) = script(listening);
    town.script("s", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("s")])).await;
    let (ada, bob) = (as_somebody(&hub, "ada").await, as_somebody(&hub, "bob").await);
    let many = (0..Watch::MOST_URIS).map(|number| format!("s:{number}")).collect();
    let all = within(ada.subscribe(Watch { uris: many, ..Watch::default() })).await.unwrap();
    assert_eq!(all.honoured().uris.len(), Watch::MOST_URIS);
    let one = within(bob.subscribe(Watch::default().and("s:day"))).await.unwrap();
    assert_eq!(one.honoured().uris, ["s:day"]);
}
