//! What a server costs that is dead, slow or lying: its own tools, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, Error};
use trunkline_hub::{HubLimits, State};

use crate::support::{
    Answers, NEW, OLD, Says, Town, client, eager, front, lazy, parrots, plain, quick, say, script, somebody,
    tools, until, within,
};

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
        let very_long = Duration::from_secs(3600);
        let hub = town.hub_within(HubLimits {
            first_lists_within: Duration::from_millis(300),
            first_call_within: Duration::from_millis(300),
            catalogue_within: very_long,
            ..quick()
        });
        let mut silent = lazy("silent");
        silent.timeout = Some(very_long);
        within(hub.set_servers(vec![silent, lazy("well")])).await;
        let client = plain(&hub, OLD).await;
        assert_eq!(tools(&client).await, ["well__t"]);
        assert_eq!(say(&client, "well__t").await, "t");
        assert!(say(&client, "silent__t").await.contains("`silent` is still starting"));
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
    within(hub.set_servers(vec![lazy("a")])).await;
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
