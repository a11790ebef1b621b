//! Everything at once: calls, lists, toggles, configurations, disconnects and deaths.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_config::{ConnectionSharing, ServerConfig};
use trunkline_hub::{Hub, HubLimits, ServerSwitch, UpstreamConnectionState};
use trunkline_server::{Server, ServerHandle, Tool};

use crate::support::{
    NEW, OLD, TestServers, client, eager, lazy, moved, named_principal, quick, serve_hub, until, within,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    text: String,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn echo() -> Server {
    Server::new("echo").with(Tool::new("echo").run(async |Said { text }: Said| text))
}

/// Describes the servers in one of many ways.
fn configs(round: usize) -> Vec<ServerConfig> {
    let describe = |(at, name): (usize, &&str)| {
        let mut config = if (round + at).is_multiple_of(2) { eager(name) } else { lazy(name) };
        config.sharing = [
            ConnectionSharing::Principal,
            ConnectionSharing::All,
            ConnectionSharing::Session,
            ConnectionSharing::Call,
        ][at];
        match (round / (at + 1)) % 4 {
            0 => None,
            1 => Some(moved(config)),
            _ => Some(config),
        }
    };
    NAMES.iter().enumerate().filter_map(describe).collect()
}

/// The calls of all callers.
#[derive(Debug, Default)]
struct StormCalls {
    answered: AtomicUsize,
    ended: AtomicUsize,
}

impl StormCalls {
    /// Waits until one more has ended, in whichever way.
    async fn go_on(&self) {
        let before = self.ended.load(Ordering::SeqCst);
        while self.ended.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
    }
}

/// Calls one server after the other until it is stopped; every call ends, with its own response or a clear error.
async fn call_on(hub: Hub, who: usize, stop: Arc<AtomicBool>, calls: Arc<StormCalls>) {
    let down = if who.is_multiple_of(2) { OLD } else { NEW };
    let builder = trunkline_client::Client::builder().pin(down);
    let client = client(&serve_hub(&hub), builder, named_principal(["ada", "bob"][who % 2])).await;
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let (name, text) = (NAMES[(who + number) % NAMES.len()], format!("{who} {number}"));
        match within(client.call(format!("{name}__echo"), json!({ "text": text }))).await {
            Ok(said) => {
                assert_eq!(said.text(), text);
                calls.answered.fetch_add(1, Ordering::SeqCst);
            }
            Err(trunkline_client::Error::ErrorResponse(refused)) => {
                // The hub's own words, or the last ones of a server.
                let said = &refused.message;
                let clear = ["Unknown tool", "the server is shutting down", &format!("upstream `{name}`")];
                assert!(clear.iter().any(|clear| said.contains(clear)), "{said}");
            }
            Err(other) => panic!("{other}"),
        }
        calls.ended.fetch_add(1, Ordering::SeqCst);
        if number.is_multiple_of(16) {
            within(client.tools()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_ends_and_nothing_leaks_under_random_server_management() {
    let town = TestServers::default();
    let revisions = [OLD, NEW, Revision::V2024_11_05, NEW];
    let handles: Vec<ServerHandle> = NAMES
        .iter()
        .zip(revisions)
        .map(|(name, revision)| town.add_server(name, &echo(), revision))
        .collect();
    let limits =
        HubLimits { drain_timeout: Duration::from_millis(200), connections_per_server: 8, ..quick() };
    let hub = town.hub_within(limits);
    within(hub.set_servers(NAMES.map(lazy).to_vec())).await;
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(StormCalls::default()));
    let calling: Vec<_> =
        (0..8).map(|who| tokio::spawn(call_on(hub.clone(), who, stop.clone(), calls.clone()))).collect();
    let reloading = tokio::spawn({
        let hub = hub.clone();
        async move {
            for round in 0..120 {
                within(hub.set_servers(configs(round))).await;
            }
        }
    });
    let managing = tokio::spawn({
        let hub = hub.clone();
        async move {
            for round in 0..240 {
                // What is not configured just now is none of these.
                let name = NAMES[round % NAMES.len()];
                let _ = match round % 5 {
                    0 => hub.toggle(name, ServerSwitch::Off).map(drop),
                    1 => hub.toggle(name, ServerSwitch::On).map(drop),
                    2 => within(hub.reconnect(name)).await,
                    3 => within(hub.disconnect(name)).await,
                    _ => within(hub.connect(name)).await,
                };
            }
        }
    });
    let killing = tokio::spawn({
        let (town, calls) = (town.clone(), calls.clone());
        async move {
            for round in 0..120 {
                let at = round % NAMES.len();
                town.kill(NAMES[at], &handles[at]);
                within(calls.go_on()).await;
            }
        }
    });
    for task in [reloading, managing, killing] {
        within(task).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    for caller in calling {
        within(caller).await.unwrap();
    }
    assert!(calls.answered.load(Ordering::SeqCst) > 0);
    // After the storm everything works as if there had been none.
    within(hub.set_servers(NAMES.map(eager).to_vec())).await;
    for name in NAMES {
        hub.toggle(name, ServerSwitch::On).unwrap();
        within(hub.connect(name)).await.unwrap();
    }
    let client = client(&serve_hub(&hub), trunkline_client::Client::builder(), named_principal("eve")).await;
    for name in NAMES {
        let said = within(client.call(format!("{name}__echo"), json!({ "text": "calm" }))).await.unwrap();
        assert_eq!(said.text(), "calm");
        until(|| hub.status_of(name).unwrap().calls == 0).await;
        assert_eq!(hub.status_of(name).unwrap().state, UpstreamConnectionState::Ready);
    }
    within(hub.shutdown()).await;
    drop((client, hub));
    until(|| NAMES.iter().all(|name| town.is_unconnected(name))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_race_with_the_first_listing_find_their_tool() {
    let town = TestServers::default();
    town.add_server("a", &echo(), NEW);
    for start in 0..100 {
        let hub = town.hub();
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(
                client(&serve_hub(&hub), trunkline_client::Client::builder(), named_principal("ada")).await,
            );
        }
        within(hub.set_servers(vec![lazy("a")])).await;
        // Calls go on while the server lists for the first time, so that some are looked up just before and some just after.
        let calling: Vec<_> = clients
            .into_iter()
            .map(|client| {
                tokio::spawn(async move {
                    for number in 0..2 {
                        let said = within(client.call("a__echo", json!({ "text": "here" }))).await;
                        assert_eq!(
                            said.map(|said| said.text()).map_err(|error| error.to_string()),
                            Ok("here".to_owned()),
                            "call {number} of start {start}"
                        );
                    }
                })
            })
            .collect();
        for caller in calling {
            within(caller).await.unwrap();
        }
        within(hub.shutdown()).await;
    }
}
