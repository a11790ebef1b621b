//! Which era the hub uses with a server, for clients of both.

use serde_json::{Value, json};
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::{ClientCapabilities, InputResponse};
use trunkline_config::{ConnectionSharing, ProtocolEra, ProtocolRevision, ServerConfig};
use trunkline_hub::Hub;
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptConnection, ScriptReply, ScriptedServer, TestServers, client, eager,
    lazy, plain_client, quick, say, script, serve_hub, text_result, tools, until, within,
};
use crate::views::ListingsFile;

/// The responses of a server to the requests that find its era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EraBehaviour {
    Both,
    Legacy,
    Modern,
    /// Modern era only, undeclared.
    ModernInSilence,
}

fn is_modern(message: &Value) -> bool {
    message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some()
}

/// A tool that returns the era of its call, and requests input first if the client can: by a JSON-RPC request, like many
/// servers of both eras.
fn tells_era(speaks: EraBehaviour) -> (ScriptedServer, trunkline_client::transport::ChannelOpener) {
    let refuses = |code: i64| ScriptReply::Error(json!({ "code": code, "message": "no", "data": {} }));
    script(move |peer: &ScriptConnection, message| match message["method"].as_str() {
        Some("server/discover") if speaks == EraBehaviour::Legacy => refuses(-32601),
        Some("initialize") if speaks == EraBehaviour::Modern => refuses(-32022),
        Some("initialize") if speaks == EraBehaviour::ModernInSilence => ScriptReply::Nothing,
        Some("tools/call") if is_modern(message) => ScriptReply::Result(text_result("modern")),
        Some("tools/call") => {
            let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            let params = json!({ "message": "Who?", "requestedSchema": schema });
            let id = format!("q{}", message["id"]);
            peer.send(
                json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }),
            );
            ScriptReply::Nothing
        }
        None => {
            let id: u64 = message["id"].as_str().unwrap().trim_start_matches('q').parse().unwrap();
            let answer = message["result"]["content"]["name"].as_str().unwrap_or("nothing");
            peer.answer(&json!({ "id": id }), text_result(&format!("legacy {answer}")));
            ScriptReply::Nothing
        }
        _ => ScriptReply::AsUsual,
    })
}

async fn hub(speaks: EraBehaviour, config: ServerConfig) -> (ScriptedServer, TestServers, Hub) {
    let town = TestServers::default();
    let (heard, opener) = tells_era(speaks);
    town.add_script_of_any_era("a", opener);
    let hub = town.hub();
    within(hub.set_servers(vec![config])).await;
    (heard, town, hub)
}

async fn connect(hub: &Hub, down: Revision) -> Client {
    let answers = RecordingHandler::new(|_| Ok(InputResponse::accept(Some(json!({ "name": "ann" }).into()))))
        .declaring(ClientCapabilities::default().with_form());
    client(&serve_hub(hub), Client::builder().pin(down).input(answers), Principal::Process).await
}

#[tokio::test]
async fn dual_era_server_is_connected_in_the_era_of_the_caller() {
    for config in [lazy("a"), eager("a")] {
        for order in [[OLD, NEW], [NEW, OLD]] {
            let (heard, _town, hub) = hub(EraBehaviour::Both, config.clone()).await;
            for down in order.into_iter().chain(order) {
                let expected = if down == NEW { "modern" } else { "legacy ann" };
                assert_eq!(say(&connect(&hub, down).await, "a__t").await, expected, "{order:?}");
            }
            // One connection of each era, and at most the one that was made before the first call.
            until(|| heard.open() == 2).await;
            assert!(heard.of("initialize").len() == 1, "{order:?}: {:?}", heard.of("initialize"));
            let revision = hub.status_of("a").unwrap().revision;
            assert!([Some(OLD), Some(NEW)].contains(&revision), "{revision:?}");
        }
    }
}

#[tokio::test]
async fn single_era_server_is_connected_in_its_era_and_that_is_cached() {
    for (speaks, expected) in [(EraBehaviour::Legacy, "legacy ann"), (EraBehaviour::Modern, "modern")] {
        for order in [[OLD, NEW], [NEW, OLD]] {
            let (heard, _town, hub) = hub(speaks, lazy("a")).await;
            for down in order.into_iter().chain(order).chain(order) {
                assert_eq!(say(&connect(&hub, down).await, "a__t").await, expected, "{speaks:?} {order:?}");
            }
            // The other era is tried once, at most.
            let tried = match speaks {
                EraBehaviour::Legacy => heard.of("server/discover").len(),
                _ => heard.of("initialize").len(),
            };
            assert!(tried <= 1, "{speaks:?} {order:?}: {tried}");
            until(|| heard.open() == 1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn modern_server_without_initialize_serves_legacy_clients() {
    let (_heard, _town, hub) = hub(EraBehaviour::ModernInSilence, eager("a")).await;
    assert_eq!(say(&connect(&hub, OLD).await, "a__t").await, "modern");
    assert_eq!(say(&connect(&hub, OLD).await, "a__t").await, "modern");
}

#[tokio::test]
async fn pinned_era_applies_to_clients_of_both_eras() {
    type Pin = fn(&mut ServerConfig);
    let with = |pin: Pin| {
        let mut config = lazy("a");
        pin(&mut config);
        config
    };
    let old: Pin = |config| config.era = Some(ProtocolEra::Legacy);
    let older: Pin = |config| config.revision = Some(ProtocolRevision::V2025_06_18);
    let new: Pin = |config| config.era = Some(ProtocolEra::Modern);
    for (pin, expected, revision) in
        [(old, "legacy ann", OLD), (older, "legacy ann", Revision::V2025_06_18), (new, "modern", NEW)]
    {
        let (heard, _town, hub) = hub(EraBehaviour::Both, with(pin)).await;
        for down in [NEW, OLD, NEW] {
            assert_eq!(say(&connect(&hub, down).await, "a__t").await, expected, "{revision}");
        }
        assert_eq!(hub.status_of("a").unwrap().revision, Some(revision));
        let other = if revision == NEW { "initialize" } else { "server/discover" };
        assert!(heard.of(other).is_empty(), "{revision}: the other era is not tried");
    }
}

#[tokio::test]
async fn server_without_its_pinned_revision_is_not_used() {
    let mut config = lazy("a");
    config.revision = Some(ProtocolRevision::V2026_07_28);
    let (_heard, _town, hub) = hub(EraBehaviour::Legacy, config).await;
    let said = say(&connect(&hub, OLD).await, "a__t").await;
    let status = hub.status_of("a").unwrap();
    let reason = status.reason.unwrap_or_default();
    assert!(reason.contains("does not speak 2026-07-28"), "{said}: {reason}");
}

#[tokio::test]
async fn connections_of_both_eras_are_shared_as_configured() {
    for share in [ConnectionSharing::All, ConnectionSharing::Session, ConnectionSharing::Call] {
        let mut config = lazy("a");
        config.sharing = share;
        let (_heard, _town, hub) = hub(EraBehaviour::Both, config).await;
        let (old, new) = (connect(&hub, OLD).await, connect(&hub, NEW).await);
        // A shared connection declares no capability, so that its tool returns only the era.
        let legacy = if share == ConnectionSharing::All { "legacy nothing" } else { "legacy ann" };
        for _ in 0..2 {
            assert_eq!(say(&new, "a__t").await, "modern", "{share:?}");
            assert_eq!(say(&old, "a__t").await, legacy, "{share:?}");
        }
    }
}

#[tokio::test]
async fn restarted_hub_does_not_probe_a_server_that_is_known_to_be_legacy() {
    let file = ListingsFile::new("known-legacy");
    let town = TestServers::default();
    let (heard, opener) = script(|_, message| match message["method"].as_str() {
        Some("server/discover") => ScriptReply::Error(json!({ "code": -32601, "message": "unknown" })),
        _ => ScriptReply::AsUsual,
    });
    town.add_script_of_any_era("a", opener);
    for run in 0..3 {
        let hub = file.hub(&town, quick());
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, NEW).await;
        assert!(tools(&client).await.contains(&"a__t".to_owned()));
        assert_eq!(say(&client, "a__t").await, "t");
        assert_eq!(heard.of("server/discover").len(), 1, "run {run}");
        if run == 2 {
            // A manual connect probes again: the server may have been upgraded.
            within(hub.reconnect("a")).await.unwrap();
            assert_eq!(heard.of("server/discover").len(), 2);
        }
        within(hub.shutdown()).await;
    }
}
