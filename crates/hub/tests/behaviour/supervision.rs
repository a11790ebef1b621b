//! When servers are started and stopped, who shares them, and what one that is dead, slow or lying costs.

use std::time::Duration;

use serde_json::json;
use trunkline_client::Client;
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_config::{ConnectionSharing, ServerConfig, StartMode};
use trunkline_hub::{HubLimits, UpstreamConnectionState};
use trunkline_server::{Context, Json, Server, Tool};

use crate::support::{
    NEW, OLD, RecordingHandler, TestServers, client, eager, echo_server, echo_tool, gated, lazy,
    named_principal, plain_client, quick, say, serve_hub, tools, until, within,
};

fn shared(name: &str, share: ConnectionSharing) -> ServerConfig {
    let mut config = lazy(name);
    config.sharing = share;
    config
}

#[tokio::test]
async fn lazy_server_starts_on_first_use_and_eager_server_at_once() {
    let town = TestServers::default();
    town.add_server("lazy", &echo_server(&["t"]), OLD);
    town.add_server("eager", &echo_server(&["t"]), NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("lazy"), eager("eager")])).await;
    assert_eq!((town.connection_count("lazy"), town.connection_count("eager")), (0, 1));
    assert_eq!(hub.status_of("lazy").unwrap().state, UpstreamConnectionState::Pending);
    assert_eq!(tools(&plain_client(&hub, OLD).await).await, ["eager__t", "lazy__t"]);
    assert_eq!((town.connection_count("lazy"), town.connection_count("eager")), (1, 1));
}

#[tokio::test]
async fn idle_server_is_stopped_keeps_its_tools_and_restarts_on_use() {
    for start in [StartMode::Lazy, StartMode::Eager] {
        let town = TestServers::default();
        let server = town.add_server("a", &echo_server(&["t"]), OLD);
        let hub = town.hub();
        let mut config = lazy("a");
        (config.start, config.idle) = (start, Some(Duration::from_millis(1)));
        within(hub.set_servers(vec![config])).await;
        let client = plain_client(&hub, NEW).await;
        assert_eq!(tools(&client).await, ["a__t"]);
        until(|| hub.status_of("a").unwrap().connections == 0).await;
        assert_eq!(hub.status_of("a").unwrap().state, UpstreamConnectionState::Pending);
        let before = town.connection_count("a");
        assert_eq!(tools(&client).await, ["a__t"]);
        assert_eq!(town.connection_count("a"), before, "{start:?}: what it offers is known without it");
        server.add(echo_tool("u")).unwrap();
        assert_eq!(say(&client, "a__t").await, "t");
        assert_eq!(town.connection_count("a"), before + 1, "{start:?}");
        until(|| hub.status_of("a").unwrap().tools == 2).await;
    }
}

#[tokio::test]
async fn idle_timeout_does_not_stop_a_server_during_a_call() {
    let town = TestServers::default();
    let (server, gate) = gated();
    town.add_server("a", &server, OLD);
    let hub = town.hub();
    let mut config = eager("a");
    config.idle = Some(Duration::from_millis(1));
    within(hub.set_servers(vec![config])).await;
    let client = plain_client(&hub, NEW).await;
    let call = tokio::spawn(async move { say(&client, "a__wait").await });
    gate.waiting(1).await;
    let status = hub.status_of("a").unwrap();
    assert_eq!((status.connections, status.calls), (1, 1));
    gate.open();
    assert_eq!(within(call).await.unwrap(), "waited");
    until(|| hub.status_of("a").unwrap().connections == 0).await;
}

/// A server that returns the capabilities of its client.
fn curious() -> Server {
    Server::new("curious").with(Tool::new("can").run(async |cx: Context| {
        let can = cx.caller().capabilities();
        Json([can.form(), can.sampling(), can.roots()].to_vec())
    }))
}

async fn asked_as(hub: &trunkline_hub::Hub, who: &str, can: ClientCapabilities) -> Client {
    let answers = RecordingHandler::with_roots(&[]).declaring(can);
    let builder = Client::builder().pin(OLD).input(answers);
    client(&serve_hub(hub), builder, named_principal(who)).await
}

#[tokio::test]
async fn connections_are_shared_as_configured() {
    let form = || ClientCapabilities::default().with_form();
    // How many connections five callers need: three of one principal, one of another, one that accepts input requests.
    for (share, up, connections) in [
        (ConnectionSharing::All, OLD, 1),
        (ConnectionSharing::All, NEW, 1),
        (ConnectionSharing::Principal, OLD, 3),
        // One for each principal: the capabilities come with each request.
        (ConnectionSharing::Principal, NEW, 2),
        (ConnectionSharing::Session, OLD, 5),
        (ConnectionSharing::Session, NEW, 5),
    ] {
        let town = TestServers::default();
        town.add_server("a", &curious(), up);
        let hub = town.hub();
        within(hub.set_servers(vec![shared("a", share)])).await;
        let plain = ClientCapabilities::default;
        let mut clients = Vec::new();
        for (who, can) in
            [("ada", plain()), ("ada", plain()), ("ada", form()), ("ada", plain()), ("bob", plain())]
        {
            let client = asked_as(&hub, who, can.clone()).await;
            let said = say(&client, "a__can").await;
            // A shared connection gets no input requests.
            let expected = can.form() && (share != ConnectionSharing::All || up == NEW);
            assert_eq!(said, json!([expected, false, false]).to_string(), "{share:?} {up}");
            clients.push(client);
        }
        // A probe connection closes once another can fetch the lists.
        until(|| hub.status_of("a").unwrap().connections == connections).await;
    }
}

#[tokio::test]
async fn per_call_connection_serves_only_its_call() {
    for up in [OLD, NEW] {
        let town = TestServers::default();
        let (server, gate) = gated();
        town.add_server("a", &server.with(echo_tool("t")), up);
        let hub = town.hub();
        within(hub.set_servers(vec![shared("a", ConnectionSharing::Call)])).await;
        let client = plain_client(&hub, OLD).await;
        assert_eq!(tools(&client).await, ["a__t", "a__wait"]);
        let before = town.connection_count("a");
        let calls: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { say(&client, "a__wait").await })
            })
            .collect();
        gate.waiting(3).await;
        assert_eq!(town.connection_count("a"), before + 3, "{up}");
        gate.open();
        for call in calls {
            assert_eq!(within(call).await.unwrap(), "waited");
        }
        for _ in 0..3 {
            assert_eq!(say(&client, "a__t").await, "t");
        }
        assert_eq!(town.connection_count("a"), before + 6, "{up}");
        until(|| hub.status_of("a").unwrap().connections <= 1).await;
    }
}

#[tokio::test]
async fn longest_idle_connection_is_evicted_at_the_connection_limit() {
    let town = TestServers::default();
    let (server, gate) = gated();
    town.add_server("a", &server.with(echo_tool("t")), OLD);
    let connection_wait_timeout = Duration::from_millis(500);
    let hub = town.hub_within(HubLimits { connections_per_server: 2, connection_wait_timeout, ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    for who in ["a", "b", "c", "d"] {
        let client = asked_as(&hub, who, ClientCapabilities::default()).await;
        assert_eq!(say(&client, "a__t").await, "t");
    }
    until(|| hub.status_of("a").unwrap().connections <= 2).await;
    let mut calls = Vec::new();
    for who in ["e", "f"] {
        let client = asked_as(&hub, who, ClientCapabilities::default()).await;
        calls.push(tokio::spawn(async move { say(&client, "a__wait").await }));
    }
    gate.waiting(2).await;
    until(|| hub.status_of("a").unwrap().connections == 2).await;
    let one_more = asked_as(&hub, "g", ClientCapabilities::default()).await;
    let said = say(&one_more, "a__t").await;
    assert!(said.contains("upstream `a` unavailable: all of its 2 connections are in use"), "{said}");
    gate.open();
    for call in calls {
        assert_eq!(within(call).await.unwrap(), "waited");
    }
    assert_eq!(say(&one_more, "a__t").await, "t");
}
