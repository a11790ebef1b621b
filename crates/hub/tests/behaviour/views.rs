//! What a client sees: the lists that its own capabilities give, at once, and notifications of what it has seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_client::transport::{ChannelOpener, MockPeer, mock};
use trunkline_client::{ChangeEvent, ChangeFilter, Client, ClientBuilder};
use trunkline_hub::{Hub, HubLimits};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptReply, TestServers, client, eager, echo_server, lazy, plain_client,
    quick, say, script, serve_hub, text_result, tools, until, within,
};

/// A server that lists `ask` to clients with elicitation, `sample` to clients with sampling, and `t` to all. In the legacy era
/// it learns of capabilities when a session begins, and in the modern one with each request.
fn by_capabilities() -> ChannelOpener {
    let shown: Arc<Mutex<HashMap<usize, Value>>> = Arc::default();
    let (_, opener) = script(move |peer, message| match message["method"].as_str() {
        Some("server/discover") => ScriptReply::Result(json!({
            "resultType": "complete",
            "supportedVersions": [NEW.as_str()],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        Some("initialize") => {
            let capabilities = message["params"]["capabilities"].clone();
            shown.lock().unwrap().insert(peer.number, capabilities);
            ScriptReply::Result(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "serverInfo": { "name": "script", "version": "1" },
                "capabilities": { "tools": {} },
            }))
        }
        Some("tools/list") => {
            let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            let session = shown.lock().unwrap().get(&peer.number).cloned();
            let capabilities = session.unwrap_or_else(|| declared.clone());
            let mut names = vec!["t"];
            names.extend(capabilities.get("elicitation").map(|_| "ask"));
            names.extend(capabilities.get("sampling").map(|_| "sample"));
            let tools: Vec<_> = names
                .iter()
                .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }))
                .collect();
            ScriptReply::Result(json!({ "tools": tools }))
        }
        Some("tools/call") => ScriptReply::Result(text_result(message["params"]["name"].as_str().unwrap())),
        _ => ScriptReply::AsUsual,
    });
    opener
}

fn declaring(capabilities: ClientCapabilities) -> ClientBuilder {
    Client::builder().input(RecordingHandler::new(|_| panic!("nothing is asked")).declaring(capabilities))
}

#[tokio::test]
async fn each_client_lists_the_tools_of_its_capabilities_in_any_order() {
    let none = ClientCapabilities::default();
    let cases = [
        (none.clone(), &["a__t"][..]),
        (none.with_form(), &["a__ask", "a__t"][..]),
        (none.with_sampling(), &["a__sample", "a__t"][..]),
        (none.with_form().with_sampling(), &["a__ask", "a__sample", "a__t"][..]),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        for (up, revision) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
            let town = TestServers::default();
            town.add_script("a", by_capabilities(), up);
            let hub = town.hub();
            within(hub.set_servers(vec![lazy("a")])).await;
            let front = serve_hub(&hub);
            let mut clients = Vec::new();
            for at in order {
                let (capabilities, expected) = &cases[at];
                let builder = declaring(capabilities.clone()).pin(revision);
                clients.push((client(&front, builder, Principal::Anonymous).await, *expected));
            }
            // Twice, so that no list depends on who listed before.
            for (client, expected) in clients.iter().chain(&clients) {
                assert_eq!(tools(client).await, *expected, "{order:?} {up} {revision}");
                for name in *expected {
                    assert_eq!(
                        say(client, name).await,
                        name.trim_start_matches("a__"),
                        "{order:?} {up} {revision}"
                    );
                }
            }
            let bare = &clients.iter().find(|(_, expected)| *expected == ["a__t"]).unwrap().0;
            assert!(say(bare, "a__ask").await.contains("Unknown tool"), "{order:?} {up} {revision}");
        }
    }
}

#[tokio::test]
async fn call_before_listing_finds_the_tools_of_the_capabilities() {
    let town = TestServers::default();
    town.add_script("a", by_capabilities(), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    assert_eq!(tools(&plain_client(&hub, OLD).await).await, ["a__t"]);
    let builder = declaring(ClientCapabilities::default().with_form()).pin(NEW);
    let client = client(&serve_hub(&hub), builder, Principal::Anonymous).await;
    assert_eq!(say(&client, "a__ask").await, "ask");
}

/// A legacy client that is a script, and writes down all that it is sent.
pub(crate) struct RawClient {
    mock: MockPeer,
    requests: u64,
}

impl RawClient {
    pub(crate) async fn connect(hub: &Hub) -> Self {
        let (mock, channel) = mock();
        let front = serve_hub(hub);
        tokio::spawn(async move { front.serve_channel(channel, Principal::Process).await });
        let mut client = Self { mock, requests: 0 };
        let info = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": OLD.as_str(), "capabilities": {}, "clientInfo": info });
        client.request("initialize", params).await;
        client.notify("notifications/initialized");
        client
    }

    fn notify(&self, method: &str) {
        self.mock.receive(json!({ "jsonrpc": "2.0", "method": method }).to_string());
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.mock.receive(request.to_string());
        let answer = |client: &Self| client.sent().into_iter().find(|message| message["id"] == id);
        until(|| answer(self).is_some()).await;
        answer(self).unwrap()["result"].clone()
    }

    fn sent(&self) -> Vec<Value> {
        self.mock.sent().iter().map(|message| serde_json::from_str(message).unwrap()).collect()
    }

    /// Returns the notifications that lists have changed, by what has.
    pub(crate) fn list_changes(&self) -> Vec<String> {
        let methods =
            self.sent().into_iter().filter_map(|message| message["method"].as_str().map(str::to_owned));
        methods.filter(|method| method.ends_with("list_changed")).collect()
    }
}

/// Longer than changes are gathered; the clock of these tests moves by itself when nothing else does.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn no_list_changed_is_sent_for_servers_that_are_on_the_first_list() {
    let town = TestServers::default();
    let servers = ["a", "b", "c", "d", "e", "f"];
    for name in servers {
        town.add_server(name, &echo_server(&["t"]), OLD);
    }
    let hub = town.hub();
    within(hub.set_servers(servers.map(lazy).to_vec())).await;
    let mut client = RawClient::connect(&hub).await;
    settle().await;
    assert_eq!(client.list_changes(), [""; 0], "nothing was listed yet");
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), servers.len());
    settle().await;
    assert_eq!(client.list_changes(), [""; 0], "everything was on the list");
}

#[tokio::test(start_paused = true)]
async fn servers_started_together_are_announced_once_on_shown_lists() {
    let town = TestServers::default();
    let servers = ["a", "b", "c", "d", "e", "f"];
    for name in servers {
        town.add_server(name, &echo_server(&["t"]), OLD);
    }
    servers[1..].iter().for_each(|name| town.block_connections(name));
    let limits = HubLimits { first_list_timeout: Duration::from_secs(1), ..quick() };
    let hub = town.hub_within(limits);
    within(hub.set_servers(servers.map(lazy).to_vec())).await;
    let mut client = RawClient::connect(&hub).await;
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "the others are not waited for");
    servers[1..].iter().for_each(|name| town.allow_connections(name));
    settle().await;
    assert_eq!(client.list_changes(), ["notifications/tools/list_changed"]);
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), servers.len());
    settle().await;
    assert_eq!(client.list_changes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn client_is_not_notified_of_changes_for_other_capabilities() {
    let town = TestServers::default();
    town.add_script("a", by_capabilities(), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let mut raw = RawClient::connect(&hub).await;
    raw.request("tools/list", json!({})).await;
    let builder = declaring(ClientCapabilities::default().with_form()).pin(OLD);
    let other = client(&serve_hub(&hub), builder, Principal::Anonymous).await;
    assert_eq!(tools(&other).await, ["a__ask", "a__t"]);
    settle().await;
    assert_eq!(raw.list_changes(), [""; 0]);
}

#[tokio::test]
async fn call_of_an_unlisted_tool_waits_only_for_its_own_server() {
    for up in [OLD, NEW] {
        for down in [OLD, NEW] {
            let town = TestServers::default();
            town.add_server("well", &echo_server(&["t"]), up);
            town.add_server("slow", &echo_server(&["t"]), up);
            town.block_connections("slow");
            let never = Duration::from_secs(3600);
            let hub = town.hub_within(HubLimits {
                first_list_timeout: never,
                first_call_timeout: never,
                ..quick()
            });
            within(hub.set_servers(vec![lazy("slow"), lazy("well")])).await;
            let client = plain_client(&hub, down).await;
            assert_eq!(say(&client, "well__t").await, "t", "{up} {down}");
            assert!(say(&client, "well__u").await.contains("Unknown tool"), "{up} {down}");
            assert!(say(&client, "else__t").await.contains("Unknown tool"), "{up} {down}");
            let mut late = Box::pin(say(&client, "slow__t"));
            assert!(late.as_mut().now_or_never().is_none(), "{up} {down}");
            until(|| town.connection_count("slow") > 0).await;
            town.allow_connections("slow");
            assert_eq!(late.await, "t", "{up} {down}");
        }
    }
}

#[tokio::test]
async fn hanging_server_is_left_out_of_lists_and_announced_when_it_is_up() {
    for down in [OLD, NEW] {
        let town = TestServers::default();
        town.add_server("well", &echo_server(&["t"]), OLD);
        town.add_server("slow", &echo_server(&["t"]), OLD);
        town.block_connections("slow");
        let hub = town.hub_within(HubLimits { first_list_timeout: Duration::from_millis(50), ..quick() });
        within(hub.set_servers(vec![lazy("slow"), lazy("well")])).await;
        let client = plain_client(&hub, down).await;
        let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
        assert_eq!(tools(&client).await, ["well__t"]);
        town.allow_connections("slow");
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{down}");
        assert_eq!(tools(&client).await, ["slow__t", "well__t"], "{down}");
    }
}

#[tokio::test]
async fn listing_without_a_connection_is_fetched_again_after_a_change() {
    let town = TestServers::default();
    let server = town.add_server("a", &echo_server(&["t"]), OLD);
    let hub = town.hub_within(HubLimits { idle_timeout: Duration::from_millis(1), ..quick() });
    within(hub.set_servers(vec![eager("a")])).await;
    let builder = declaring(ClientCapabilities::default().with_form()).pin(NEW);
    let asked = client(&serve_hub(&hub), builder, Principal::Anonymous).await;
    assert_eq!(tools(&asked).await, ["a__t"]);
    until(|| hub.status_of("a").unwrap().connections <= 1).await;
    server.add(crate::support::echo_tool("u")).unwrap();
    let bare = plain_client(&hub, NEW).await;
    let mut changes = within(bare.subscribe(ChangeFilter::all_lists())).await.unwrap();
    while tools(&bare).await != ["a__t", "a__u"] {
        within(changes.next()).await;
    }
    assert_eq!(tools(&asked).await, ["a__t", "a__u"]);
}

/// A file for listings in a folder of its own, which goes with it.
pub(crate) struct ListingsFile(std::path::PathBuf);

impl ListingsFile {
    pub(crate) fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-{test}-{}", std::process::id()));
        Self(folder.join("listings.json"))
    }

    pub(crate) fn hub(&self, town: &TestServers, limits: HubLimits) -> Hub {
        let mut options = town.options(limits);
        options.listings_file = Some(self.0.clone());
        Hub::new(options)
    }
}

impl Drop for ListingsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

#[tokio::test]
async fn restarted_hub_answers_lists_from_the_listings_file() {
    for (up, down) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let file = ListingsFile::new("restarted-hub");
        let town = TestServers::default();
        town.add_server("a", &echo_server(&["t"]), up);
        let first = file.hub(&town, quick());
        within(first.set_servers(vec![lazy("a")])).await;
        let builder = || declaring(ClientCapabilities::default().with_form()).pin(down);
        assert_eq!(tools(&client(&serve_hub(&first), builder(), Principal::Anonymous).await).await, ["a__t"]);
        within(first.shutdown()).await;
        town.add_server("a", &echo_server(&["t", "u"]), up);
        town.block_connections("a");
        let never = Duration::from_secs(3600);
        let second = file.hub(&town, HubLimits { first_list_timeout: never, ..quick() });
        within(second.set_servers(vec![lazy("a")])).await;
        assert_eq!(town.connection_count("a"), 1, "nothing is started before a client comes");
        let client = client(&serve_hub(&second), builder(), Principal::Anonymous).await;
        let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
        assert_eq!(tools(&client).await, ["a__t"], "{up} {down}: from the file");
        let mut call = Box::pin(say(&client, "a__t"));
        assert!(call.as_mut().now_or_never().is_none(), "{up} {down}: the server is not up");
        town.allow_connections("a");
        assert_eq!(call.await, "t", "{up} {down}");
        while tools(&client).await != ["a__t", "a__u"] {
            within(changes.next()).await;
        }
    }
}

#[tokio::test]
async fn stored_listings_are_dropped_if_the_server_cannot_start() {
    let file = ListingsFile::new("failed-after-restart");
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), OLD);
    let first = file.hub(&town, quick());
    within(first.set_servers(vec![lazy("a")])).await;
    assert_eq!(tools(&plain_client(&first, OLD).await).await, ["a__t"]);
    within(first.shutdown()).await;
    town.set_unreachable("a", "out of order");
    let second = file.hub(&town, quick());
    within(second.set_servers(vec![lazy("a")])).await;
    let client = plain_client(&second, NEW).await;
    let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
    while !tools(&client).await.is_empty() {
        within(changes.next()).await;
    }
}
