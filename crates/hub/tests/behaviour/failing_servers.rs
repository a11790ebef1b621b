//! What a server costs that is dead, slow or lying: its own tools, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, Error};
use trunkline_hub::{HubLimits, UpstreamConnectionState};

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, TestServers, client, eager, echo_server, lazy, named_principal,
    plain_client, quick, say, script, serve_hub, tools, until, within,
};

#[tokio::test(start_paused = true)]
async fn draining_hub_does_not_retry_a_failing_server() {
    let town = TestServers::default();
    town.set_unreachable("a", "it is down");
    town.add_server("b", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    let before = town.connection_count("a");
    until(|| town.connection_count("a") > before).await;
    hub.drain();
    // An attempt that has begun ends as it would have.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let last = town.connection_count("a");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(town.connection_count("a"), last);
    // A server that is added meanwhile is not started either, but for a call.
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(town.connection_count("b"), 0);
}

#[tokio::test]
async fn failing_server_is_retried_without_end() {
    let town = TestServers::default();
    town.set_unreachable("a", "still asleep");
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    until(|| town.connection_count("a") > 12).await;
    assert!(hub.status_of("a").unwrap().reason.unwrap().contains("still asleep"));
    town.add_server("a", &echo_server(&["t"]), OLD);
    until(|| hub.status_of("a").unwrap().state == UpstreamConnectionState::Ready).await;
    assert_eq!(say(&plain_client(&hub, NEW).await, "a__t").await, "t");
}

#[tokio::test]
async fn server_that_dies_after_each_handshake_backs_off_exponentially() {
    let town = TestServers::default();
    let server = town.add_server("a", &echo_server(&["t"]), OLD);
    let limits = HubLimits {
        restart_delay: Duration::from_secs(100),
        max_restart_delay: Duration::from_secs(1000),
        ..quick()
    };
    let hub = town.hub_within(limits);
    within(hub.set_servers(vec![lazy("a")])).await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        // By hand is the only way to hurry it; that forgets what was before, so that the first wait follows.
        within(hub.connect("a")).await.unwrap();
        town.kill("a", &server);
        until(|| hub.status_of("a").unwrap().state == UpstreamConnectionState::Failed).await;
        waits.push(hub.status_of("a").unwrap().retry_in.unwrap());
    }
    assert!(
        waits.iter().all(|wait| *wait > Duration::from_secs(60) && *wait <= Duration::from_secs(100)),
        "{waits:?}"
    );
    let client = plain_client(&hub, NEW).await;
    let Err(Error::ErrorResponse(refused)) = within(client.call("a__t", json!({}))).await else { panic!() };
    let data: Value = refused.data.unwrap().decode().unwrap();
    assert_eq!(data, json!({ "upstream": "a", "reason": "upstream_lost", "retryable": true }));
    assert!(refused.message.contains("next attempt in"), "{}", refused.message);
    assert_eq!(town.connection_count("a"), 4, "nobody's call starts it before its time");
}

#[tokio::test]
async fn call_waits_for_a_server_in_backoff() {
    let town = TestServers::default();
    let server = town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub_within(HubLimits { restart_delay: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    let client = plain_client(&hub, NEW).await;
    assert_eq!(say(&client, "a__t").await, "t");
    for round in 2..6 {
        town.kill("a", &server);
        until(|| hub.status_of("a").unwrap().connections == 0).await;
        assert_eq!(say(&client, "a__t").await, "t");
        assert_eq!(town.connection_count("a"), round);
    }
}

#[tokio::test]
async fn server_that_never_lists_costs_only_its_own_tools() {
    for up in [OLD, NEW] {
        let town = TestServers::default();
        town.add_server("well", &echo_server(&["t"]), NEW);
        let (_, silent) = script(|_, message| match message["method"].as_str() {
            Some("tools/list" | "resources/list" | "resources/templates/list") => ScriptReply::Nothing,
            _ => ScriptReply::AsUsual,
        });
        town.add_script("silent", silent, up);
        let very_long = Duration::from_secs(3600);
        let hub = town.hub_within(HubLimits {
            first_list_timeout: Duration::from_millis(300),
            first_call_timeout: Duration::from_millis(300),
            listing_timeout: very_long,
            ..quick()
        });
        let mut silent = lazy("silent");
        silent.timeout = Some(very_long);
        within(hub.set_servers(vec![silent, lazy("well")])).await;
        let client = plain_client(&hub, OLD).await;
        assert_eq!(tools(&client).await, ["well__t"]);
        assert_eq!(say(&client, "well__t").await, "t");
        assert!(say(&client, "silent__t").await.contains("`silent` is still starting"));
        // It can be let go of at once, though it still owes an answer.
        within(hub.disconnect("silent")).await.unwrap();
        within(hub.set_servers(vec![lazy("well")])).await;
    }
}

#[tokio::test]
async fn mute_or_malformed_handshake_costs_only_its_own_tools() {
    let town = TestServers::default();
    town.add_server("well", &echo_server(&["t"]), NEW);
    let (_, mute) = script(|_, _| ScriptReply::Nothing);
    town.add_script("mute", mute, OLD);
    let (_, liar) = script(|_, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({ "protocolVersion": 7, "capabilities": [] })),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("liar", liar, OLD);
    let (_, sloppy) = script(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let nameless = json!({ "inputSchema": { "type": "object" } });
            let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
            ScriptReply::Result(json!({ "tools": [nameless, 7, good, good] }))
        }
        Some("resources/list") => {
            ScriptReply::Error(json!({ "code": -32603, "message": "no resources today" }))
        }
        _ => ScriptReply::AsUsual,
    });
    town.add_script("sloppy", sloppy, OLD);
    let hub = town.hub_within(HubLimits { first_list_timeout: Duration::from_millis(300), ..quick() });
    within(hub.set_servers(["mute", "liar", "sloppy", "well"].map(lazy).to_vec())).await;
    let client = plain_client(&hub, NEW).await;
    until_tools(&client, &["list_mcp_resources", "read_mcp_resource", "sloppy__good", "well__t"]).await;
    assert_eq!(say(&client, "sloppy__good").await, "t");
    let sloppy = hub.status_of("sloppy").unwrap();
    assert!(sloppy.skipped.iter().any(|left| left.contains("no resources today")), "{:?}", sloppy.skipped);
    assert!(sloppy.skipped.len() >= 3, "{:?}", sloppy.skipped);
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
async fn endless_list_is_cut_off_at_the_limit() {
    let town = TestServers::default();
    town.add_server("well", &echo_server(&["t"]), NEW);
    let (_, endless) = script(|_, message| match message["method"].as_str() {
        Some("tools/list") => {
            let page: u64 =
                message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let tool = json!({ "name": format!("t{page}"), "inputSchema": { "type": "object" } });
            ScriptReply::Result(json!({ "tools": [tool], "nextCursor": (page + 1).to_string() }))
        }
        _ => ScriptReply::AsUsual,
    });
    town.add_script("endless", endless, OLD);
    let hub = town.hub_within(HubLimits { list_items: 50, ..quick() });
    within(hub.set_servers(vec![eager("endless"), eager("well")])).await;
    let client = plain_client(&hub, NEW).await;
    until_tools(&client, &["list_mcp_resources", "read_mcp_resource", "well__t"]).await;
    let status = hub.status_of("endless").unwrap();
    assert!(status.skipped.iter().any(|left| left.starts_with("tools:")), "{:?}", status.skipped);
}

#[tokio::test]
async fn roots_request_at_session_start_gets_the_callers_roots_or_none() {
    let town = TestServers::default();
    let (heard, opener) = script(|_, _| ScriptReply::AsUsual);
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { roots_timeout: Duration::from_millis(200), ..quick() });
    within(hub.set_servers(vec![lazy("a")])).await;
    for down in [OLD, NEW] {
        let builder = Client::builder().pin(down).input(RecordingHandler::with_roots(&["file:///home"]));
        let client = client(&serve_hub(&hub), builder, named_principal(down.as_str())).await;
        assert_eq!(say(&client, "a__t").await, "t");
        heard.send(&json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" }));
        // Without a running call there is no client to ask for input; the roots of a session are known anyway.
        until(|| heard.newest().sent().iter().any(|sent| sent.contains(r#""id":"r""#))).await;
        assert_eq!(say(&client, "a__t").await, "t");
        let initialize = heard.of("initialize");
        assert!(initialize.last().unwrap()["params"]["capabilities"]["roots"].is_object(), "{initialize:?}");
    }
}

#[tokio::test]
async fn rejected_negotiated_revision_is_renegotiated_once() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let changed = has_changed.clone();
    let (heard, opener) = script(move |_, message| {
        let is_refused = changed.load(Ordering::SeqCst) && message["method"] == "tools/call";
        if !is_refused {
            return ScriptReply::AsUsual;
        }
        ScriptReply::Error(
            json!({ "code": -32022, "message": "unsupported", "data": { "supported": ["2025-11-25"] } }),
        )
    });
    let town = TestServers::default();
    town.add_script("a", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let client = plain_client(&hub, OLD).await;
    assert_eq!(say(&client, "a__t").await, "t");
    has_changed.store(true, Ordering::SeqCst);
    let (calls, visits) = (heard.of("tools/call").len(), town.connection_count("a"));
    assert!(say(&client, "a__t").await.contains("does not keep to the protocol"));
    assert_eq!(
        (heard.of("tools/call").len(), town.connection_count("a")),
        (calls + 2, visits + 1),
        "once, and not for ever"
    );
    has_changed.store(false, Ordering::SeqCst);
    assert_eq!(say(&client, "a__t").await, "t");
}

#[tokio::test]
async fn dropped_hub_releases_all_connections_and_tasks() {
    for up in [OLD, NEW] {
        let town = TestServers::default();
        let (heard, opener) = script(|_, _| ScriptReply::AsUsual);
        town.add_script("a", opener, up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, Revision::V2025_06_18).await;
        assert_eq!(say(&client, "a__t").await, "t");
        drop((client, hub));
        until(|| heard.newest().is_closed()).await;
    }
}
