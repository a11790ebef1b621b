//! What clients of both eras see of a server that lists other tools in each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{ChangeFilter, Client};
use trunkline_hub::{Hub, HubLimits};

use crate::support::{
    NEW, OLD, ScriptConnection, ScriptReply, ScriptedServer, TestServers, eager, lazy, plain_client, quick,
    say, script, text_result, tools, until, within,
};
use crate::views::{ListingsFile, RawClient, settle};

/// A server of both eras, in turn or of only one, with other tools in each.
#[derive(Clone, Default)]
struct TwoFaced(Arc<Mutex<Faces>>);

#[derive(Default)]
struct Faces {
    legacy: Vec<String>,
    modern: Vec<String>,
    /// The era that it refuses.
    refuses: Option<Revision>,
    /// The streams over which it announces changes: for each a connection, and in the modern era the request that it answers.
    streams: Vec<(ScriptConnection, Option<Value>)>,
}

impl TwoFaced {
    fn new() -> Self {
        let server = Self::default();
        server.lists(OLD, &["both", "legacy"]);
        server.lists(NEW, &["both", "modern"]);
        server
    }

    fn lists(&self, era: Revision, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut faces = self.0.lock().unwrap();
        match era {
            NEW => faces.modern = names,
            _ => faces.legacy = names,
        }
    }

    fn refuses(&self, era: Revision) {
        self.0.lock().unwrap().refuses = Some(era);
    }

    /// Announces over the connections of one era that its tools have changed.
    fn announce(&self, era: Revision) {
        let streams = self.0.lock().unwrap().streams.clone();
        let is_of_era = |request: &Option<Value>| request.is_some() == (era == NEW);
        for (peer, request) in streams.into_iter().filter(|(_, request)| is_of_era(request)) {
            let meta = request.map(|id| json!({ "io.modelcontextprotocol/subscriptionId": id }));
            let params = meta.map_or_else(|| json!({}), |meta| json!({ "_meta": meta }));
            let method = "notifications/tools/list_changed";
            peer.send_now(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        }
    }

    fn script(&self) -> (ScriptedServer, ChannelOpener) {
        let server = self.clone();
        script(move |peer, message| server.answer(peer, message))
    }

    fn answer(&self, peer: &ScriptConnection, message: &Value) -> ScriptReply {
        let mut faces = self.0.lock().unwrap();
        let refused = |code: i64| ScriptReply::Error(json!({ "code": code, "message": "no", "data": {} }));
        let is_modern = message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
        let listed = if is_modern { &faces.modern } else { &faces.legacy };
        let capabilities = json!({ "tools": { "listChanged": true } });
        match message["method"].as_str() {
            Some("initialize") if faces.refuses == Some(OLD) => refused(-32022),
            Some("server/discover") if faces.refuses == Some(NEW) => refused(-32601),
            Some("server/discover") => ScriptReply::Result(json!({
                "resultType": "complete",
                "supportedVersions": [NEW.as_str()],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
            })),
            Some("initialize") => {
                faces.streams.push((peer.clone(), None));
                ScriptReply::Result(json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "serverInfo": { "name": "two-faced", "version": "1" },
                    "capabilities": capabilities,
                }))
            }
            Some("subscriptions/listen") => {
                faces.streams.push((peer.clone(), Some(message["id"].clone())));
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                let promised = &message["params"]["notifications"];
                peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "_meta": meta, "notifications": promised } }));
                ScriptReply::Nothing
            }
            Some("tools/list") => {
                let tool = |name: &String| json!({ "name": name, "inputSchema": { "type": "object" } });
                ScriptReply::Result(json!({ "tools": listed.iter().map(tool).collect::<Vec<_>>() }))
            }
            Some("tools/call") => {
                let name = message["params"]["name"].as_str().unwrap();
                match listed.iter().any(|listed| listed == name) {
                    true => ScriptReply::Result(text_result(&format!(
                        "{name} in {}",
                        if is_modern { NEW } else { OLD }
                    ))),
                    false => refused(-32602),
                }
            }
            _ => ScriptReply::AsUsual,
        }
    }
}

/// What clients of an era see of such a server, as it is at first.
fn seen(era: Revision) -> [&'static str; 2] {
    if era == NEW { ["a__both", "a__modern"] } else { ["a__both", "a__legacy"] }
}

/// Checks that a client lists the tools of its era, can call them, and no others.
async fn check(client: &Client, era: Revision, context: &str) {
    assert_eq!(tools(client).await, seen(era), "{context}");
    for name in seen(era) {
        let expected = format!("{} in {era}", name.trim_start_matches("a__"));
        assert_eq!(say(client, name).await, expected, "{context}");
    }
    let other = if era == NEW { OLD } else { NEW };
    assert!(say(client, seen(other)[1]).await.contains("Unknown tool"), "{context}");
}

async fn hub_of(
    server: &TwoFaced,
    config: trunkline_config::ServerConfig,
) -> (ScriptedServer, TestServers, Hub) {
    let (town, (heard, opener)) = (TestServers::default(), server.script());
    town.add_script_of_any_era("a", opener);
    let hub = town.hub();
    within(hub.set_servers(vec![config])).await;
    (heard, town, hub)
}

#[tokio::test]
async fn clients_list_and_call_the_tools_of_their_own_era_in_any_order() {
    for config in [lazy("a"), eager("a")] {
        for order in [[OLD, NEW], [NEW, OLD]] {
            let (heard, _town, hub) = hub_of(&TwoFaced::new(), config.clone()).await;
            for era in order.into_iter().chain(order) {
                check(&plain_client(&hub, era).await, era, &format!("{order:?} {era}")).await;
            }
            until(|| heard.open() == 2).await;
            assert_eq!(heard.of("tools/list").len(), 2, "{order:?}: once in each era");
        }
    }
}

#[tokio::test]
async fn call_before_listing_finds_the_tools_of_the_era() {
    for order in [[OLD, NEW], [NEW, OLD]] {
        let (_heard, _town, hub) = hub_of(&TwoFaced::new(), lazy("a")).await;
        let [first, second] = order;
        assert_eq!(tools(&plain_client(&hub, first).await).await, seen(first));
        let said = say(&plain_client(&hub, second).await, seen(second)[1]).await;
        assert_eq!(said, format!("{} in {second}", seen(second)[1].trim_start_matches("a__")));
    }
}

#[tokio::test]
async fn single_era_server_is_listed_once_for_clients_of_both_eras() {
    for (spoken, refused) in [(OLD, NEW), (NEW, OLD)] {
        for config in [lazy("a"), eager("a")] {
            for order in [[OLD, NEW], [NEW, OLD]] {
                let server = TwoFaced::new();
                server.refuses(refused);
                let (heard, _town, hub) = hub_of(&server, config.clone()).await;
                for era in order.into_iter().chain(order) {
                    let client = plain_client(&hub, era).await;
                    assert_eq!(tools(&client).await, seen(spoken), "{spoken} {order:?} {era}");
                }
                assert_eq!(heard.of("tools/list").len(), 1, "{spoken} {order:?}");
                until(|| heard.open() == 1).await;
                let tried = if refused == NEW { "server/discover" } else { "initialize" };
                assert!(heard.of(tried).len() <= 1, "{spoken} {order:?}: the other era is tried once");
            }
        }
    }
}

#[tokio::test]
async fn restarted_hub_serves_each_era_its_own_stored_listing() {
    for order in [[OLD, NEW], [NEW, OLD]] {
        let file = ListingsFile::new("restarted-both-eras");
        let (town, server) = (TestServers::default(), TwoFaced::new());
        let (_heard, opener) = server.script();
        town.add_script_of_any_era("a", opener);
        let first = file.hub(&town, quick());
        within(first.set_servers(vec![lazy("a")])).await;
        for era in order {
            assert_eq!(tools(&plain_client(&first, era).await).await, seen(era));
        }
        within(first.shutdown()).await;
        server.lists(OLD, &["both", "legacy", "new"]);
        town.block_connections("a");
        let never = Duration::from_secs(3600);
        let second = file.hub(&town, HubLimits { first_list_timeout: never, ..quick() });
        within(second.set_servers(vec![lazy("a")])).await;
        let [old, new] = [plain_client(&second, OLD).await, plain_client(&second, NEW).await];
        let mut changes = within(old.subscribe(ChangeFilter::all_lists())).await.unwrap();
        assert_eq!(tools(&new).await, seen(NEW), "{order:?}: from the file");
        assert_eq!(tools(&old).await, seen(OLD), "{order:?}: from the file");
        let mut call = Box::pin(say(&old, "a__legacy"));
        assert!(call.as_mut().now_or_never().is_none(), "{order:?}: the server is not up");
        town.allow_connections("a");
        assert_eq!(call.await, format!("legacy in {OLD}"));
        while tools(&old).await != ["a__both", "a__legacy", "a__new"] {
            within(changes.next()).await;
        }
        check(&new, NEW, "after the restart").await;
    }
}

#[tokio::test]
async fn client_without_a_stored_listing_of_its_era_waits_for_the_server() {
    for (stored, other) in [(OLD, NEW), (NEW, OLD)] {
        let file = ListingsFile::new("restarted-for-the-other-era");
        let (town, server) = (TestServers::default(), TwoFaced::new());
        let (_heard, opener) = server.script();
        town.add_script_of_any_era("a", opener);
        for era in [stored, other] {
            let hub = file.hub(&town, quick());
            within(hub.set_servers(vec![lazy("a")])).await;
            assert_eq!(tools(&plain_client(&hub, era).await).await, seen(era));
            within(hub.shutdown()).await;
        }
    }
}

#[tokio::test]
async fn stored_listing_of_an_unsupported_era_is_dropped() {
    for (spoken, refused) in [(OLD, NEW), (NEW, OLD)] {
        let file = ListingsFile::new("restarted-in-one-era");
        let (town, server) = (TestServers::default(), TwoFaced::new());
        let (_heard, opener) = server.script();
        town.add_script_of_any_era("a", opener);
        let first = file.hub(&town, quick());
        within(first.set_servers(vec![lazy("a")])).await;
        for era in [OLD, NEW] {
            assert_eq!(tools(&plain_client(&first, era).await).await, seen(era));
        }
        within(first.shutdown()).await;
        server.refuses(refused);
        for _ in 0..2 {
            let hub = file.hub(&town, quick());
            within(hub.set_servers(vec![lazy("a")])).await;
            let client = plain_client(&hub, refused).await;
            let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
            while tools(&client).await != seen(spoken) {
                within(changes.next()).await;
            }
            within(hub.shutdown()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn list_change_in_one_era_notifies_only_clients_of_that_era() {
    for changed in [OLD, NEW] {
        let server = TwoFaced::new();
        let (heard, _town, hub) = hub_of(&server, lazy("a")).await;
        let (mut old, new) = (RawClient::connect(&hub).await, plain_client(&hub, NEW).await);
        old.request("tools/list", json!({})).await;
        assert_eq!(tools(&new).await, seen(NEW));
        settle().await;
        assert_eq!(old.list_changes(), [""; 0], "{changed}");
        // What the other era would list now is not looked at.
        server.lists(OLD, &["other"]);
        server.lists(NEW, &["other"]);
        server.announce(changed);
        until(|| heard.of("tools/list").len() == 3).await;
        settle().await;
        assert_eq!(heard.of("tools/list").len(), 3, "{changed}: once more, in the era of the change");
        let listed = old.request("tools/list", json!({})).await;
        let listed: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        let listed_to_new = tools(&new).await;
        if changed == OLD {
            assert_eq!(old.list_changes(), ["notifications/tools/list_changed"]);
            assert_eq!(listed, ["a__other"]);
            assert_eq!(listed_to_new, seen(NEW));
        } else {
            assert_eq!(old.list_changes(), [""; 0]);
            assert_eq!(listed, seen(OLD));
            assert_eq!(listed_to_new, ["a__other"]);
        }
        settle().await;
        assert_eq!(heard.of("tools/list").len(), 3, "{changed}: nothing is listed again");
    }
}
