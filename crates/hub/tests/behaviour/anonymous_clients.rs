//! Clients without credentials: one person on the loopback, strangers to each other elsewhere.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{ChangeEvent, ChangeFilter, Client};
use trunkline_config::{ConnectionSharing, ServerConfig};
use trunkline_hub::AnonymousClients::{Isolated, SingleUser};
use trunkline_hub::{AnonymousClients, Hub};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, eager, lazy, quick, remote,
    say, script, serve_hub, serve_hub_over_http, text_result, until, within,
};

/// A server that returns the number of the connection of each call, and a link to a resource that notifies of updates.
fn numbered() -> (ScriptedServer, ChannelOpener) {
    script(|peer, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({
            "protocolVersion": OLD.as_str(),
            "serverInfo": { "name": "numbered", "version": "1" },
            "capabilities": { "tools": {}, "resources": { "subscribe": true } },
        })),
        Some("tools/call") if message["params"]["arguments"]["point"] == true => {
            let link = json!({ "type": "resource_link", "uri": "x:secret", "name": "it" });
            ScriptReply::Result(json!({ "resultType": "complete", "content": [link] }))
        }
        Some("tools/call") => ScriptReply::Result(text_result(&peer.number.to_string())),
        Some("resources/list") => {
            ScriptReply::Result(json!({ "resources": [{ "uri": "x:day", "name": "day" }] }))
        }
        Some("resources/read") => {
            ScriptReply::Result(json!({ "contents": [{ "uri": "x:secret", "text": "read" }] }))
        }
        Some("resources/subscribe" | "resources/unsubscribe") => ScriptReply::Result(json!({})),
        _ => ScriptReply::AsUsual,
    })
}

async fn hub(
    up: Revision,
    anonymous: AnonymousClients,
    share: ConnectionSharing,
) -> (ScriptedServer, TestServers, Hub) {
    hub_with(eager("a"), up, anonymous, share).await
}

async fn hub_with(
    mut config: ServerConfig,
    up: Revision,
    anonymous: AnonymousClients,
    share: ConnectionSharing,
) -> (ScriptedServer, TestServers, Hub) {
    let town = TestServers::default();
    let (heard, opener) = numbered();
    town.add_script("a", opener, up);
    let (_, other) = script(|_, _| ScriptReply::AsUsual);
    town.add_script("b", other, NEW);
    let hub = town.hub_for(anonymous, quick());
    config.sharing = share;
    within(hub.set_servers(vec![config, eager("b")])).await;
    (heard, town, hub)
}

async fn anonymous(hub: &Hub, down: Revision) -> Client {
    client(&serve_hub(hub), Client::builder().pin(down), Principal::Anonymous).await
}

/// Connects a client without a session.
async fn stateless(address: &str) -> Client {
    within(Client::builder().pin(NEW).connect(address)).await.unwrap()
}

/// Has clients of every kind call twice, in turn, and returns over which connections each of them was served.
async fn served(hub: &Hub) -> Vec<[String; 2]> {
    let address = serve_hub_over_http(hub).await;
    let clients = [
        anonymous(hub, OLD).await,
        anonymous(hub, OLD).await,
        anonymous(hub, NEW).await,
        anonymous(hub, NEW).await,
        stateless(&address).await,
        stateless(&address).await,
    ];
    let mut served = vec![<[String; 2]>::default(); clients.len()];
    for round in 0..2 {
        for (client, over) in clients.iter().zip(&mut served) {
            over[round] = say(client, "a__t").await;
        }
    }
    served
}

#[tokio::test]
async fn single_user_anonymous_clients_share_a_process() {
    let (_heard, _town, hub) = hub(OLD, SingleUser, ConnectionSharing::Principal).await;
    let all: BTreeSet<String> = served(&hub).await.into_iter().flatten().collect();
    assert_eq!(all.len(), 1, "{all:?}");
}

#[tokio::test]
async fn isolated_anonymous_clients_share_no_server_state() {
    // A program may keep state in its memory in any era.
    for (share, up) in [
        (ConnectionSharing::Principal, OLD),
        (ConnectionSharing::Session, OLD),
        (ConnectionSharing::Principal, NEW),
    ] {
        let (_heard, _town, hub) = hub(up, Isolated, share).await;
        let served = served(&hub).await;
        let (known, stateless) = served.split_at(4);
        for [first, second] in known {
            assert_eq!(first, second, "{share:?} {up}: a session or connection goes on where it began");
        }
        let mut all: Vec<&String> = known.iter().map(|[first, _]| first).collect();
        // A call that comes without either has a connection to itself.
        all.extend(stateless.iter().flatten());
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{share:?} {up}: {served:?}");
    }
}

#[tokio::test]
async fn concurrent_calls_of_strangers_never_share_a_process_of_unknown_era() {
    // The calls begin in the era of their clients, and each attempt finds that the server has another.
    let (_heard, _town, hub) = hub_with(lazy("a"), OLD, Isolated, ConnectionSharing::Principal).await;
    let address = serve_hub_over_http(&hub).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(stateless(&address).await);
    }
    let served = futures_util::future::join_all(clients.iter().map(|client| say(client, "a__t"))).await;
    let different: BTreeSet<_> = served.iter().collect();
    assert_eq!(different.len(), served.len(), "{served:?}");
}

#[tokio::test]
async fn isolated_anonymous_clients_share_stateless_and_shared_servers() {
    for (config, up, share) in [
        (remote("a"), NEW, ConnectionSharing::Principal),
        (eager("a"), OLD, ConnectionSharing::All),
        (eager("a"), NEW, ConnectionSharing::All),
    ] {
        let (_heard, _town, hub) = hub_with(config, up, Isolated, share).await;
        let all: BTreeSet<String> = served(&hub).await.into_iter().flatten().collect();
        assert_eq!(all.len(), 1, "{up}: {all:?}");
    }
}

#[tokio::test]
async fn roots_of_one_client_are_never_sent_for_another_of_the_same_user() {
    let town = TestServers::default();
    let (heard, opener) = numbered();
    town.add_script("a", opener, OLD);
    let hub = town.hub_for(SingleUser, quick());
    within(hub.set_servers(vec![eager("a")])).await;
    let window = async |root: &str| {
        let builder = Client::builder().pin(OLD).input(RecordingHandler::with_roots(&[root]));
        client(&serve_hub(&hub), builder, Principal::Anonymous).await
    };
    let (one, other) = (window("file:///one").await, window("file:///other").await);
    let first = say(&one, "a__t").await;
    // The server requests roots at any time, and stores the response.
    let asks = json!({ "jsonrpc": "2.0", "id": "where", "method": "roots/list" });
    heard.connection(first.parse().unwrap()).receive(asks.to_string());
    let answer = heard.answered(&json!("where")).await;
    assert_eq!(answer["result"]["roots"][0]["uri"], "file:///one");
    assert_ne!(say(&other, "a__t").await, first, "it may only touch the folders of the first");
    assert_eq!(say(&one, "a__t").await, first);
}

#[tokio::test]
async fn linked_resource_is_not_readable_by_another_anonymous_client() {
    for (anonymous_are, shared) in [(SingleUser, true), (Isolated, false)] {
        for down in [OLD, NEW] {
            let (_heard, _town, hub) = hub(OLD, anonymous_are, ConnectionSharing::Principal).await;
            let (shown, other) = (anonymous(&hub, down).await, anonymous(&hub, down).await);
            within(shown.call("a__t", json!({ "point": true }))).await.unwrap();
            assert!(within(shown.read("x:secret")).await.is_ok(), "{down}");
            assert_eq!(within(other.read("x:secret")).await.is_ok(), shared, "{anonymous_are:?} {down}");
        }
    }
}

#[tokio::test]
async fn resource_update_is_not_sent_to_another_anonymous_client() {
    for (anonymous_are, shared) in [(SingleUser, true), (Isolated, false)] {
        for down in [OLD, NEW] {
            let (heard, _town, hub) = hub(OLD, anonymous_are, ConnectionSharing::Principal).await;
            let watch = || ChangeFilter::default().with_uri("x:day");
            let (one, other) = (anonymous(&hub, down).await, anonymous(&hub, down).await);
            let mut ones = within(one.subscribe(watch())).await.unwrap();
            heard.received("resources/subscribe", 1).await;
            let first = heard.newest();
            let mut others = within(other.subscribe(watch())).await.unwrap();
            until(|| heard.of("resources/subscribe").len() == if shared { 1 } else { 2 }).await;
            let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "x:day" } });
            first.receive(updated.to_string());
            let change = Some(ChangeEvent::Resource("x:day".to_owned()));
            assert_eq!(within(ones.next()).await, change, "{anonymous_are:?} {down}");
            if !shared {
                // The other client gets first the update of its own connection.
                let name = "x:day/own";
                let own = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": name } });
                heard.newest().receive(own.to_string());
                assert_eq!(
                    within(others.next()).await,
                    Some(ChangeEvent::Resource(name.to_owned())),
                    "{down}"
                );
            } else {
                assert_eq!(within(others.next()).await, change, "{down}");
            }
        }
    }
}
