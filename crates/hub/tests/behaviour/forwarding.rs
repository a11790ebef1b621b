//! What passes through beside calls: logs, levels, progress, changes of resources.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::json;
use trunkline_client::protocol::{LoggingLevel, Revision};
use trunkline_client::{ChangeEvent, ChangeFilter, Client, Error};
use trunkline_hub::ServerSwitch;
use trunkline_server::{Context, Resource, Server, Tool};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, TestServers, client, eager, echo_server, plain_client, say, serve_hub, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Steps {
    count: u32,
}

/// A server with a resource of its own name, and a tool that logs it.
fn diary(whose: &'static str) -> Server {
    Server::new(whose).with(Resource::new(format!("{whose}:day"), "day").text(whose)).with(
        Tool::new("log").run(move |cx: Context| async move {
            cx.log(LoggingLevel::Debug, format!("{whose} quietly"));
            cx.log(LoggingLevel::Warning, format!("{whose} loudly"));
            "logged"
        }),
    )
}

#[tokio::test]
async fn resource_is_subscribed_only_at_its_owner_in_either_era() {
    for (up, down) in BOTH.into_iter().flat_map(|up| BOTH.map(|down| (up, down))) {
        let town = TestServers::default();
        let [a, b] = ["a", "b"].map(|name| town.add_server(name, &diary(name), up));
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a"), eager("b")])).await;
        let client = plain_client(&hub, down).await;
        let mut changes = within(client.subscribe(ChangeFilter::default().with_uri("a:day"))).await.unwrap();
        assert_eq!(hub.status_of("a").unwrap().calls, 0, "what the hub does by itself is no call");
        b.notify_updated("b:day");
        b.notify_updated("a:day");
        a.notify_updated("a:day");
        assert_eq!(
            within(changes.next()).await,
            Some(ChangeEvent::Resource("a:day".to_owned())),
            "{up} {down}"
        );
        let mut both = within(client.subscribe(ChangeFilter::default().with_uri("a:day").with_uri("b:day")))
            .await
            .unwrap();
        b.notify_updated("b:day");
        while within(both.next()).await != Some(ChangeEvent::Resource("b:day".to_owned())) {}
    }
}

#[tokio::test]
async fn unknown_or_unsubscribable_resource_is_not_acknowledged() {
    let town = TestServers::default();
    town.add_server("a", &diary("a"), OLD);
    town.add_server("b", &diary("b"), NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    let modern = plain_client(&hub, NEW).await;
    let watched =
        within(modern.subscribe(ChangeFilter::default().with_uri("c:day").with_uri("b:day"))).await.unwrap();
    assert_eq!(watched.accepted_filter().uris, ["b:day"]);
    let legacy = plain_client(&hub, OLD).await;
    let refused = within(legacy.subscribe(ChangeFilter::default().with_uri("c:day"))).await;
    assert!(matches!(&refused, Err(Error::ErrorResponse(refused)) if refused.code == -32602), "{refused:?}");
}

#[tokio::test]
async fn subscription_moves_to_the_next_connection_and_sends_an_update() {
    for up in BOTH {
        let town = TestServers::default();
        let a = town.add_server("a", &diary("a"), up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, NEW).await;
        let mut changes = within(client.subscribe(ChangeFilter::default().with_uri("a:day"))).await.unwrap();
        town.kill("a", &a);
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resource("a:day".to_owned())), "{up}");
        a.notify_updated("a:day");
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resource("a:day".to_owned())), "{up}");
    }
}

/// Connects a client that writes down what is logged to it.
async fn listening(
    hub: &trunkline_hub::Hub,
    down: Revision,
    level: Option<LoggingLevel>,
) -> (Client, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    let mut builder = Client::builder()
        .pin(down)
        .on_log(move |message| told.lock().unwrap().push(message.data.to_string()));
    if let Some(level) = level {
        builder = builder.log_level(level);
    }
    (client(&serve_hub(hub), builder, Principal::Process).await, heard)
}

#[tokio::test]
async fn log_messages_reach_only_the_calling_client_at_its_level() {
    for (up, down) in BOTH.into_iter().flat_map(|up| BOTH.map(|down| (up, down))) {
        let town = TestServers::default();
        town.add_server("a", &diary("a"), up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let (curious, everything) = listening(&hub, down, Some(LoggingLevel::Debug)).await;
        let (calm, loud) = listening(&hub, down, Some(LoggingLevel::Warning)).await;
        let (quiet, nothing) = listening(&hub, NEW, None).await;
        for client in [&calm, &curious, &quiet, &calm] {
            assert_eq!(say(client, "a__log").await, "logged");
        }
        assert_eq!(*everything.lock().unwrap(), ["\"a quietly\"", "\"a loudly\""], "{up} {down}");
        assert_eq!(*loud.lock().unwrap(), ["\"a loudly\""; 2], "{up} {down}");
        assert!(nothing.lock().unwrap().is_empty(), "{up} {down}");
    }
}

#[tokio::test]
async fn progress_with_equal_tokens_reaches_its_own_caller() {
    for (up, down) in BOTH.into_iter().flat_map(|up| BOTH.map(|down| (up, down))) {
        let town = TestServers::default();
        let (server, gate) = crate::support::gated();
        let steps = Tool::new("steps").run({
            let gate = gate.clone();
            move |cx: Context, Steps { count }: Steps| {
                let gate = gate.clone();
                async move {
                    cx.progress(f64::from(count), 1000);
                    gate.pass().await;
                    "done"
                }
            }
        });
        town.add_server("a", &server.with(steps), up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let mut calls = Vec::new();
        for number in 1..=8 {
            // Each client counts its requests and tokens from the beginning.
            let client = plain_client(&hub, down).await;
            let heard = Arc::new(Mutex::new(Vec::new()));
            let told = heard.clone();
            let call = tokio::spawn(async move {
                let call = client.call("a__steps", json!({ "count": number }));
                call.progress(move |report| told.lock().unwrap().push(report.progress)).await.unwrap().text()
            });
            calls.push((number, heard, call));
        }
        gate.waiting(8).await;
        gate.open();
        for (number, heard, call) in calls {
            assert_eq!(within(call).await.unwrap(), "done");
            assert_eq!(*heard.lock().unwrap(), [f64::from(number)], "{up} {down}");
        }
    }
}

#[tokio::test]
async fn subscription_at_a_disabled_server_is_refused_until_it_is_enabled() {
    let town = TestServers::default();
    let a = town.add_server("a", &diary("a"), OLD);
    town.add_server("b", &echo_server(&["t"]), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    let client = plain_client(&hub, NEW).await;
    hub.toggle("a", ServerSwitch::Off).unwrap();
    let watched = within(client.subscribe(ChangeFilter::default().with_uri("a:day"))).await;
    assert!(watched.is_err() || watched.unwrap().accepted_filter().uris.is_empty());
    hub.toggle("a", ServerSwitch::On).unwrap();
    let mut changes = within(client.subscribe(ChangeFilter::default().with_uri("a:day"))).await.unwrap();
    a.notify_updated("a:day");
    assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resource("a:day".to_owned())));
}
