//! Who shares a session with a server that keeps sessions, and who never does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_client::transport::ChannelOpener;
use trunkline_config::ConnectionSharing;
use trunkline_hub::{Hub, HubLimits};

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, ScriptedServer, TestServers, client, eager, lazy,
    named_principal, quick, remote, say, script, serve_hub, text_result, until, within,
};

/// A server that returns the number of the connection of each call.
fn numbered() -> (ScriptedServer, ChannelOpener) {
    script(|peer, message| match message["method"].as_str() {
        Some("tools/call") => ScriptReply::Result(text_result(&peer.number.to_string())),
        _ => ScriptReply::AsUsual,
    })
}

async fn connect(hub: &Hub, who: &str, down: Revision, answers: RecordingHandler) -> Client {
    client(&serve_hub(hub), Client::builder().pin(down).input(answers), named_principal(who)).await
}

#[tokio::test]
async fn callers_share_a_session_only_with_equal_principal_and_capabilities() {
    let none = ClientCapabilities::default;
    let abilities = [
        none(),
        none().with_form(),
        none().with_url(),
        none().with_sampling(),
        none().with_sampling_tools(),
        none().with_form().with_sampling(),
    ];
    for down in [OLD, NEW] {
        let town = TestServers::default();
        let (_, opener) = numbered();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        let mut seen: HashMap<String, (usize, usize)> = HashMap::new();
        // Each comes twice, in an order in which neighbours have nothing in common.
        for _ in 0..2 {
            for (at, can) in abilities.iter().enumerate() {
                for (whose, who) in ["ada", "bob"].into_iter().enumerate() {
                    let client =
                        connect(&hub, who, down, RecordingHandler::with_roots(&[]).declaring(can.clone()))
                            .await;
                    let number = say(&client, "a__t").await;
                    let owner = *seen.entry(number.clone()).or_insert((whose, at));
                    assert_eq!(owner, (whose, at), "{down}: {who} was served over connection {number}");
                }
            }
        }
        assert_eq!(seen.len(), 2 * abilities.len(), "{down}: one each, and both times the same");
    }
}

#[tokio::test]
async fn stateless_server_gets_the_callers_capabilities_per_request() {
    let town = TestServers::default();
    let (heard, opener) = numbered();
    town.add_script("a", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![remote("a")])).await;
    let form = ClientCapabilities::default().with_form();
    for (who, down, can) in
        [("ada", OLD, form.clone()), ("bob", NEW, ClientCapabilities::default()), ("eve", NEW, form)]
    {
        let client = connect(&hub, who, down, RecordingHandler::with_roots(&[]).declaring(can.clone())).await;
        assert_eq!(say(&client, "a__t").await, "0", "one way to the server is enough");
        let sent = heard.of("tools/call").pop().unwrap();
        let declared = &sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["elicitation"].is_object(), can.form(), "{who}: {sent}");
    }
}

/// Calls a tool, and returns over which connection the server was called.
async fn over(client: &Client) -> String {
    say(client, "a__t").await
}

#[tokio::test]
async fn principal_with_many_sessions_never_evicts_anothers_only_connection() {
    let town = TestServers::default();
    let (heard, opener) = numbered();
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { connections_per_server: 4, ..quick() });
    let mut config = lazy("a");
    config.sharing = ConnectionSharing::Session;
    within(hub.set_servers(vec![config])).await;
    let bob = connect(&hub, "bob", OLD, RecordingHandler::with_roots(&[])).await;
    let bobs = over(&bob).await;
    // Each session of ann has a connection of its own, and the oldest of them make room for the newest.
    for _ in 0..12 {
        let ann = connect(&hub, "ann", OLD, RecordingHandler::with_roots(&[])).await;
        assert_ne!(over(&ann).await, bobs);
    }
    assert_eq!(over(&bob).await, bobs, "his session goes on as it was");
    until(|| heard.open() <= 4).await;
}

#[tokio::test]
async fn principal_gets_its_fair_share_of_connections_in_use_by_another() {
    let town = TestServers::default();
    let (heard, opener) = script(|peer, message| match message["params"]["name"].as_str() {
        Some("t") if message["params"]["arguments"]["wait"] == true => ScriptReply::Nothing,
        Some("t") => ScriptReply::Result(text_result(&peer.number.to_string())),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub_within(HubLimits { connections_per_server: 3, ..quick() });
    let mut config = lazy("a");
    config.sharing = ConnectionSharing::Session;
    within(hub.set_servers(vec![config])).await;
    let mut running = Vec::new();
    for number in 0..3 {
        let ann = connect(&hub, "ann", OLD, RecordingHandler::with_roots(&[])).await;
        running.push(tokio::spawn(ann.call("a__t", json!({ "wait": true })).into_future()));
        heard.received("tools/call", number + 1).await;
    }
    let bob = connect(&hub, "bob", OLD, RecordingHandler::with_roots(&[])).await;
    let waits = {
        let bob = bob.clone();
        tokio::spawn(async move { over(&bob).await })
    };
    until(|| hub.status_of("a").unwrap().waiting == 1).await;
    // No call of ann is cut short: whichever of hers is over first makes room for him.
    let sent = &heard.of_connection(1, "tools/call")[0];
    heard.answer_over(1, sent, text_result("done"));
    assert_eq!(within(running.remove(1)).await.unwrap().unwrap().text(), "done");
    assert_eq!(within(waits).await.unwrap(), "3");
    assert_eq!([0, 1, 2].map(|number| heard.connection(number).is_closed()), [false, true, false]);
    for (number, call) in [0, 2].into_iter().zip(running) {
        let sent = &heard.of_connection(number, "tools/call")[0];
        heard.answer_over(number, sent, text_result("done"));
        assert_eq!(within(call).await.unwrap().unwrap().text(), "done");
    }
}

/// A server like those of file systems: it requests the roots at the start, takes the last response for all that it may
/// access, and returns them in every call.
fn folders() -> (ScriptedServer, ChannelOpener) {
    let heard: Arc<Mutex<HashMap<usize, watch::Sender<Option<String>>>>> = Arc::default();
    script(move |peer, message| {
        let roots = heard.lock().unwrap().entry(peer.number).or_default().clone();
        match message["method"].as_str() {
            Some("notifications/initialized" | "notifications/roots/list_changed") => {
                peer.send(json!({ "jsonrpc": "2.0", "id": "roots", "method": "roots/list" }));
                ScriptReply::Nothing
            }
            Some("tools/call") => {
                let (peer, call) = (peer.clone(), message.clone());
                tokio::spawn(async move {
                    let mut roots = roots.subscribe();
                    let known = roots.wait_for(Option::is_some).await.unwrap().clone();
                    peer.answer(&call, text_result(&known.unwrap_or_default()));
                });
                ScriptReply::Nothing
            }
            None if message["id"] == "roots" => {
                let listed = message["result"]["roots"].as_array().cloned().unwrap_or_default();
                let uris: Vec<_> = listed.iter().filter_map(|root| root["uri"].as_str()).collect();
                roots.send_replace(Some(uris.join(" ")));
                ScriptReply::Nothing
            }
            _ => ScriptReply::AsUsual,
        }
    })
}

#[tokio::test]
async fn roots_of_one_caller_are_never_sent_for_another() {
    for down in [OLD, NEW] {
        let town = TestServers::default();
        let (heard, opener) = folders();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        let mut clients = Vec::new();
        for (who, root) in [
            ("ada", "file:///x"),
            ("ada", "file:///y"),
            ("bob", "file:///x"),
            ("ada", "file:///x"),
            ("bob", "file:///z"),
        ] {
            let client = connect(&hub, who, down, RecordingHandler::with_roots(&[root])).await;
            assert_eq!(say(&client, "a__t").await, root, "{down}: {who}");
            clients.push((client, root));
        }
        // All at one time, again and again; a caller without a session waits for an answer each time, of which there may be
        // sixteen.
        let calls: Vec<_> = (0..16)
            .flat_map(|_| clients.clone())
            .map(|(client, root)| tokio::spawn(async move { (say(&client, "a__t").await, root) }))
            .collect();
        for call in calls {
            let (said, root) = within(call).await.unwrap();
            assert_eq!(said, root, "{down}");
        }
        let shared = heard.of("initialize").len();
        assert!(shared <= 5, "{down}: those who work in one place share: {shared}");
    }
}

#[tokio::test]
async fn caller_with_changed_roots_is_served_with_the_new_roots() {
    for down in [OLD, NEW] {
        let town = TestServers::default();
        let (_, opener) = folders();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        let (moving, staying) =
            (RecordingHandler::with_roots(&["file:///x"]), RecordingHandler::with_roots(&["file:///x"]));
        let moves = connect(&hub, "ada", down, moving.clone()).await;
        let stays = connect(&hub, "ada", down, staying).await;
        assert_eq!(
            (say(&moves, "a__t").await, say(&stays, "a__t").await),
            ("file:///x".into(), "file:///x".into())
        );
        moving.set_roots(&["file:///y"]);
        // Without sessions the hub requests the roots for each call; with one the client has to notify of the change.
        let _ = within(moves.roots_changed()).await;
        within(async { while say(&moves, "a__t").await != "file:///y" {} }).await;
        assert_eq!(say(&stays, "a__t").await, "file:///x", "{down}");
        assert_eq!(say(&moves, "a__t").await, "file:///y", "{down}");
    }
}

#[tokio::test]
async fn concurrent_callers_with_different_roots_never_share_them() {
    for down in [OLD, NEW] {
        let town = TestServers::default();
        let (heard, opener) = folders();
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        let mut calls = Vec::new();
        for number in 0..8 {
            let root: &'static str = format!("file:///{number}").leak();
            let client = connect(&hub, "ada", down, RecordingHandler::with_roots(&[root])).await;
            calls.push(tokio::spawn(async move {
                let first = say(&client, "a__t").await;
                // Before the server's first request is known, it may get no roots, but never those of another client.
                assert!(first == root || first.is_empty(), "{first} instead of {root}");
                assert_eq!(say(&client, "a__t").await, root);
            }));
        }
        for call in calls {
            within(call).await.unwrap();
        }
        until(|| heard.of("initialize").len() >= 8).await;
    }
}

#[tokio::test]
async fn roots_request_outside_of_calls_gets_known_roots_or_none() {
    let town = TestServers::default();
    let (heard, opener) = numbered();
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    // The connection was made for no client, so that it declared no roots.
    heard.send(&json!({ "jsonrpc": "2.0", "id": "early", "method": "roots/list" }));
    until(|| heard.answer_to(&json!("early")).is_some()).await;
    let answer: Value = heard.answer_to(&json!("early")).unwrap();
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}
