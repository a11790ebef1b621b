//! When servers are started and stopped, who shares them, and what one that is dead, slow or lying costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_client::{Client, Error};
use trunkline_config::{ServerConfig, Share, Start};
use trunkline_hub::{HubLimits, State};
use trunkline_server::{Context, Json, Server, Tool};

use crate::support::{
    Answers, NEW, OLD, Says, Town, client, eager, front, gated, lazy, parrot, parrots, plain, quick, say,
    script, somebody, tools, until, within,
};

fn shared(name: &str, share: Share) -> ServerConfig {
    let mut config = lazy(name);
    config.share = share;
    config
}

#[tokio::test]
async fn a_lazy_server_starts_when_it_is_needed_and_an_eager_one_at_once() {
    let town = Town::default();
    town.settle("lazy", &parrots(&["t"]), OLD);
    town.settle("eager", &parrots(&["t"]), NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("lazy"), eager("eager")])).await;
    assert_eq!((town.visits("lazy"), town.visits("eager")), (0, 1));
    assert_eq!(hub.status_of("lazy").unwrap().state, State::Pending);
    assert_eq!(tools(&plain(&hub, OLD).await).await, ["eager__t", "lazy__t"]);
    assert_eq!((town.visits("lazy"), town.visits("eager")), (1, 1));
}

#[tokio::test]
async fn a_server_that_nobody_uses_is_stopped_keeps_its_catalogue_and_starts_again() {
    for start in [Start::Lazy, Start::Eager] {
        let town = Town::default();
        let server = town.settle("a", &parrots(&["t"]), OLD);
        let hub = town.hub();
        let mut config = lazy("a");
        (config.start, config.idle) = (start, Some(Duration::from_millis(1)));
        within(hub.set_servers(vec![config])).await;
        let client = plain(&hub, NEW).await;
        assert_eq!(tools(&client).await, ["a__t"]);
        until(|| hub.status_of("a").unwrap().connections == 0).await;
        assert_eq!(hub.status_of("a").unwrap().state, State::Pending);
        let before = town.visits("a");
        assert_eq!(tools(&client).await, ["a__t"]);
        assert_eq!(town.visits("a"), before, "{start:?}: what it offers is known without it");
        server.add(parrot("u")).unwrap();
        assert_eq!(say(&client, "a__t").await, "t");
        assert_eq!(town.visits("a"), before + 1, "{start:?}");
        until(|| hub.status_of("a").unwrap().tools == 2).await;
    }
}

#[tokio::test]
async fn a_server_is_not_stopped_under_a_call() {
    let town = Town::default();
    let (server, gate) = gated();
    town.settle("a", &server, OLD);
    let hub = town.hub();
    let mut config = eager("a");
    config.idle = Some(Duration::from_millis(1));
    within(hub.set_servers(vec![config])).await;
    let client = plain(&hub, NEW).await;
    let call = tokio::spawn(async move { say(&client, "a__wait").await });
    gate.waiting(1).await;
    let status = hub.status_of("a").unwrap();
    assert_eq!((status.connections, status.calls), (1, 1));
    gate.open();
    assert_eq!(within(call).await.unwrap(), "waited");
    until(|| hub.status_of("a").unwrap().connections == 0).await;
}

/// A server that says what its client can be asked.
fn curious() -> Server {
    Server::new("curious").with(Tool::new("can").run(async |cx: Context| {
        let can = cx.caller().capabilities();
        Json([can.form(), can.sampling(), can.roots()].to_vec())
    }))
}

async fn asked_as(hub: &trunkline_hub::Hub, who: &str, can: ClientCapabilities) -> Client {
    let answers = Answers::at(&[]).declaring(can);
    let builder = Client::builder().pin(OLD).input(answers);
    client(&front(hub), builder, somebody(who)).await
}

#[tokio::test]
async fn a_server_is_shared_as_its_configuration_says() {
    let form = || ClientCapabilities::default().with_form();
    // How many connections five callers need: three of one principal, one of another, and one who can be asked.
    for (share, up, connections) in [
        (Share::All, OLD, 1),
        (Share::All, NEW, 1),
        (Share::Principal, OLD, 3),
        (Share::Principal, NEW, 1),
        (Share::Session, OLD, 5),
        (Share::Session, NEW, 5),
    ] {
        let town = Town::default();
        town.settle("a", &curious(), up);
        let hub = town.hub();
        within(hub.set_servers(vec![shared("a", share)])).await;
        let plain = ClientCapabilities::default;
        let mut clients = Vec::new();
        for (who, can) in
            [("ada", plain()), ("ada", plain()), ("ada", form()), ("ada", plain()), ("bob", plain())]
        {
            let client = asked_as(&hub, who, can.clone()).await;
            let said = say(&client, "a__can").await;
            // Whoever shares with everybody is asked nothing, since nobody could tell whom a question is for.
            let expected = can.form() && (share != Share::All || up == NEW);
            assert_eq!(said, json!([expected, false, false]).to_string(), "{share:?} {up}");
            clients.push(client);
        }
        // Whoever was made to learn what is offered and is nobody's own goes once another can do that.
        until(|| hub.status_of("a").unwrap().connections == connections).await;
    }
}

#[tokio::test]
async fn a_server_for_one_call_each_is_there_for_that_call_alone() {
    for up in [OLD, NEW] {
        let town = Town::default();
        let (server, gate) = gated();
        town.settle("a", &server.with(parrot("t")), up);
        let hub = town.hub();
        within(hub.set_servers(vec![shared("a", Share::Call)])).await;
        let client = plain(&hub, OLD).await;
        assert_eq!(tools(&client).await, ["a__t", "a__wait"]);
        let before = town.visits("a");
        let calls: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { say(&client, "a__wait").await })
            })
            .collect();
        gate.waiting(3).await;
        assert_eq!(town.visits("a"), before + 3, "{up}");
        gate.open();
        for call in calls {
            assert_eq!(within(call).await.unwrap(), "waited");
        }
        for _ in 0..3 {
            assert_eq!(say(&client, "a__t").await, "t");
        }
        assert_eq!(town.visits("a"), before + 6, "{up}");
        until(|| hub.status_of("a").unwrap().connections <= 1).await;
    }
}

#[tokio::test]
async fn connections_of_one_server_are_bounded_and_the_one_that_was_unused_for_longest_goes() {
    let town = Town::default();
    let (server, gate) = gated();
    town.settle("a", &server.with(parrot("t")), OLD);
    let hub = town.hub_within(HubLimits { connections_per_server: 2, ..quick() });
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

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_tried_again_and_again() {
    let town = Town::default();
    town.abandon("a", "still asleep");
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    until(|| town.visits("a") > 12).await;
    assert!(hub.status_of("a").unwrap().reason.unwrap().contains("still asleep"));
    town.settle("a", &parrots(&["t"]), OLD);
    until(|| hub.status_of("a").unwrap().state == State::Ready).await;
    assert_eq!(say(&plain(&hub, NEW).await, "a__t").await, "t");
}

#[tokio::test]
async fn a_server_that_dies_after_every_handshake_is_left_alone_for_longer_and_longer() {
    let town = Town::default();
    let server = town.settle("a", &parrots(&["t"]), OLD);
    let limits = HubLimits {
        restart_after: Duration::from_secs(100),
        restart_at_most: Duration::from_secs(1000),
        ..quick()
    };
    let hub = town.hub_within(limits);
    within(hub.set_servers(vec![lazy("a")])).await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        // By hand is the only way to hurry it; that forgets what was before, so that the first wait follows.
        within(hub.connect("a")).await.unwrap();
        town.kill("a", &server);
        until(|| hub.status_of("a").unwrap().state == State::Failed).await;
        waits.push(hub.status_of("a").unwrap().retry_in.unwrap());
    }
    assert!(
        waits.iter().all(|wait| *wait > Duration::from_secs(60) && *wait <= Duration::from_secs(100)),
        "{waits:?}"
    );
    let client = plain(&hub, NEW).await;
    let Err(Error::Refused(refused)) = within(client.call("a__t", json!({}))).await else { panic!() };
    let data: Value = refused.data.unwrap().decode().unwrap();
    assert_eq!(data, json!({ "upstream": "a", "reason": "upstream_lost", "retryable": true }));
    assert!(refused.message.contains("it is tried again in"), "{}", refused.message);
    assert_eq!(town.visits("a"), 4, "nobody's call starts it before its time");
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_is_about_to_be_started_again() {
    let town = Town::default();
    let server = town.settle("a", &parrots(&["t"]), OLD);
    let hub = town.hub_within(HubLimits { restart_after: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    let client = plain(&hub, NEW).await;
    assert_eq!(say(&client, "a__t").await, "t");
    for round in 2..6 {
        town.kill("a", &server);
        until(|| hub.status_of("a").unwrap().connections == 0).await;
        assert_eq!(say(&client, "a__t").await, "t");
        assert_eq!(town.visits("a"), round);
    }
}

#[tokio::test]
async fn a_server_that_never_lists_anything_costs_only_its_own_tools() {
    for up in [OLD, NEW] {
        let town = Town::default();
        town.settle("well", &parrots(&["t"]), NEW);
        let (_, silent) = script(|_, message| match message["method"].as_str() {
            Some("tools/list" | "resources/list" | "resources/templates/list") => Says::Nothing,
            _ => Says::AsUsual,
        });
        town.script("silent", silent, up);
        let hub = town.hub_within(HubLimits { first_lists_within: Duration::from_millis(300), ..quick() });
        within(hub.set_servers(vec![lazy("silent"), lazy("well")])).await;
        let client = plain(&hub, OLD).await;
        assert_eq!(tools(&client).await, ["well__t"]);
        assert_eq!(say(&client, "well__t").await, "t");
        assert!(say(&client, "silent__t").await.contains("Unknown tool"));
        // It can be let go of at once, though it still owes an answer.
        within(hub.disconnect("silent")).await.unwrap();
        within(hub.set_servers(vec![lazy("well")])).await;
    }
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_or_lies_in_it_costs_only_its_own_tools() {
    let town = Town::default();
    town.settle("well", &parrots(&["t"]), NEW);
    let (_, mute) = script(|_, _| Says::Nothing);
    town.script("mute", mute, OLD);
    let (_, liar) = script(|_, message| match message["method"].as_str() {
        Some("initialize") => Says::Result(json!({ "protocolVersion": 7, "capabilities": [] })),
        _ => Says::AsUsual,
    });
    town.script("liar", liar, OLD);
    let (_, sloppy) = script(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let nameless = json!({ "inputSchema": { "type": "object" } });
            let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
            Says::Result(json!({ "tools": [nameless, 7, good, good] }))
        }
        Some("resources/list") => Says::Error(json!({ "code": -32603, "message": "no resources today" })),
        _ => Says::AsUsual,
    });
    town.script("sloppy", sloppy, OLD);
    let hub = town.hub_within(HubLimits { first_lists_within: Duration::from_millis(300), ..quick() });
    within(hub.set_servers(["mute", "liar", "sloppy", "well"].map(lazy).to_vec())).await;
    let client = plain(&hub, NEW).await;
    until_tools(&client, &["list_mcp_resources", "read_mcp_resource", "sloppy__good", "well__t"]).await;
    assert_eq!(say(&client, "sloppy__good").await, "t");
    let sloppy = hub.status_of("sloppy").unwrap();
    assert!(sloppy.left_out.iter().any(|left| left.contains("no resources today")), "{:?}", sloppy.left_out);
    assert!(sloppy.left_out.len() >= 3, "{:?}", sloppy.left_out);
    let liar = hub.status_of("liar").unwrap();
    assert!(liar.reason.is_some(), "{liar:?}");
    within(hub.shutdown()).await;
}

async fn until_tools(client: &Client, expected: &[&str]) {
    within(async {
        while tools(client).await != expected {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_lists_for_ever_is_cut_short() {
    let town = Town::default();
    town.settle("well", &parrots(&["t"]), NEW);
    let (_, endless) = script(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let page: u64 =
                message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let tool = json!({ "name": format!("t{page}"), "inputSchema": { "type": "object" } });
            Says::Result(json!({ "tools": [tool], "nextCursor": (page + 1).to_string() }))
        }
        _ => Says::AsUsual,
    });
    town.script("endless", endless, OLD);
    let hub = town.hub_within(HubLimits { list_items: 50, ..quick() });
    within(hub.set_servers(vec![eager("endless"), eager("well")])).await;
    let client = plain(&hub, NEW).await;
    until_tools(&client, &["list_mcp_resources", "read_mcp_resource", "well__t"]).await;
    let status = hub.status_of("endless").unwrap();
    assert!(status.left_out.iter().any(|left| left.starts_with("tools:")), "{:?}", status.left_out);
}

#[tokio::test]
async fn roots_are_answered_at_the_start_with_those_of_the_caller_or_none() {
    let town = Town::default();
    let (heard, opener) = script(|_, _| Says::AsUsual);
    town.script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { roots_within: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    for down in [OLD, NEW] {
        let builder = Client::builder().pin(down).input(Answers::at(&["file:///home"]));
        let client = client(&front(&hub), builder, somebody(down.as_str())).await;
        assert_eq!(say(&client, "a__t").await, "t");
        heard.say(&json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" }));
        // While nobody calls, nobody can be asked; a client with a session is known anyway.
        until(|| heard.newest().sent().iter().any(|sent| sent.contains(r#""id":"r""#))).await;
        assert_eq!(say(&client, "a__t").await, "t");
        let initialize = heard.of("initialize");
        assert!(initialize.last().unwrap()["params"]["capabilities"]["roots"].is_object(), "{initialize:?}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_the_revision_it_agreed_to_is_asked_anew_once() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let changed = has_changed.clone();
    let (heard, opener) = script(move |_, message| {
        let is_refused = changed.load(Ordering::SeqCst) && message["method"] == "tools/call";
        if !is_refused {
            return Says::AsUsual;
        }
        Says::Error(
            json!({ "code": -32022, "message": "unsupported", "data": { "supported": ["2025-11-25"] } }),
        )
    });
    let town = Town::default();
    town.script("a", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let client = plain(&hub, OLD).await;
    assert_eq!(say(&client, "a__t").await, "t");
    has_changed.store(true, Ordering::SeqCst);
    let (calls, visits) = (heard.of("tools/call").len(), town.visits("a"));
    assert!(say(&client, "a__t").await.contains("does not keep to the protocol"));
    assert_eq!(
        (heard.of("tools/call").len(), town.visits("a")),
        (calls + 2, visits + 1),
        "once, and not for ever"
    );
    has_changed.store(false, Ordering::SeqCst);
    assert_eq!(say(&client, "a__t").await, "t");
}

#[tokio::test]
async fn a_hub_that_is_dropped_lets_go_of_everything() {
    for up in [OLD, NEW] {
        let town = Town::default();
        let (heard, opener) = script(|_, _| Says::AsUsual);
        town.script("a", opener, up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain(&hub, Revision::V2025_06_18).await;
        assert_eq!(say(&client, "a__t").await, "t");
        drop((client, hub));
        until(|| heard.newest().is_closed()).await;
    }
}
