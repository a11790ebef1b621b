//! What a client sees: the lists that its own capabilities give, at once, and notifications of what it has seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use trunkline_client::protocol::model::ClientCapabilities;
use trunkline_client::transport::{Mock, Opener, mock};
use trunkline_client::{Builder, Change, Client, Watch};
use trunkline_hub::{Hub, HubLimits};
use trunkline_session::Principal;

use crate::support::{
    Answers, NEW, OLD, Says, Town, client, eager, front, lazy, parrots, plain, quick, said, say, script,
    tools, until, within,
};

/// A server that lists `ask` to clients with elicitation, `sample` to clients with sampling, and `t` to all. In the legacy era
/// it learns of capabilities when a session begins, and in the modern one with each request.
fn by_capabilities() -> Opener {
    let shown: Arc<Mutex<HashMap<usize, Value>>> = Arc::default();
    let (_, opener) = script(move |peer, message| match message["method"].as_str() {
        Some("server/discover") => Says::Result(json!({
            "resultType": "complete",
            "supportedVersions": [NEW.as_str()],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        Some("initialize") => {
            let capabilities = message["params"]["capabilities"].clone();
            shown.lock().unwrap().insert(peer.number, capabilities);
            Says::Result(json!({
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
            Says::Result(json!({ "tools": tools }))
        }
        Some("tools/call") => Says::Result(said(message["params"]["name"].as_str().unwrap())),
        _ => Says::AsUsual,
    });
    opener
}

fn declaring(capabilities: ClientCapabilities) -> Builder {
    Client::builder().input(Answers::new(|_| panic!("nothing is asked")).declaring(capabilities))
}

#[tokio::test]
async fn each_client_lists_what_its_capabilities_give_in_any_order() {
    let none = ClientCapabilities::default();
    let cases = [
        (none.clone(), &["a__t"][..]),
        (none.with_form(), &["a__ask", "a__t"][..]),
        (none.with_sampling(), &["a__sample", "a__t"][..]),
        (none.with_form().with_sampling(), &["a__ask", "a__sample", "a__t"][..]),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        for (up, revision) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
            let town = Town::default();
            town.script("a", by_capabilities(), up);
            let hub = town.hub();
            within(hub.set_servers(vec![lazy("a")])).await;
            let front = front(&hub);
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
async fn a_client_that_calls_before_it_lists_finds_the_tools_of_its_capabilities() {
    let town = Town::default();
    town.script("a", by_capabilities(), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    assert_eq!(tools(&plain(&hub, OLD).await).await, ["a__t"]);
    let builder = declaring(ClientCapabilities::default().with_form()).pin(NEW);
    let client = client(&front(&hub), builder, Principal::Anonymous).await;
    assert_eq!(say(&client, "a__ask").await, "ask");
}

/// A legacy client that is a script, and writes down all that it is sent.
pub(crate) struct RawClient {
    mock: Mock,
    requests: u64,
}

impl RawClient {
    pub(crate) async fn connect(hub: &Hub) -> Self {
        let (mock, channel) = mock();
        let front = front(hub);
        tokio::spawn(async move { front.channel(channel, Principal::Process).await });
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
    let town = Town::default();
    let servers = ["a", "b", "c", "d", "e", "f"];
    for name in servers {
        town.settle(name, &parrots(&["t"]), OLD);
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
async fn servers_that_come_up_together_are_announced_once_and_only_on_lists_that_were_shown() {
    let town = Town::default();
    let servers = ["a", "b", "c", "d", "e", "f"];
    for name in servers {
        town.settle(name, &parrots(&["t"]), OLD);
    }
    servers[1..].iter().for_each(|name| town.shut(name));
    let limits = HubLimits { first_lists_within: Duration::from_secs(1), ..quick() };
    let hub = town.hub_within(limits);
    within(hub.set_servers(servers.map(lazy).to_vec())).await;
    let mut client = RawClient::connect(&hub).await;
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "the others are not waited for");
    servers[1..].iter().for_each(|name| town.open(name));
    settle().await;
    assert_eq!(client.list_changes(), ["notifications/tools/list_changed"]);
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), servers.len());
    settle().await;
    assert_eq!(client.list_changes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_notified_of_what_changes_for_other_capabilities() {
    let town = Town::default();
    town.script("a", by_capabilities(), OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let mut raw = RawClient::connect(&hub).await;
    raw.request("tools/list", json!({})).await;
    let builder = declaring(ClientCapabilities::default().with_form()).pin(OLD);
    let other = client(&front(&hub), builder, Principal::Anonymous).await;
    assert_eq!(tools(&other).await, ["a__ask", "a__t"]);
    settle().await;
    assert_eq!(raw.list_changes(), [""; 0]);
}

#[tokio::test]
async fn a_call_waits_for_its_own_server_and_for_no_other() {
    for up in [OLD, NEW] {
        for down in [OLD, NEW] {
            let town = Town::default();
            town.settle("well", &parrots(&["t"]), up);
            town.settle("slow", &parrots(&["t"]), up);
            town.shut("slow");
            let never = Duration::from_secs(3600);
            let hub =
                town.hub_within(HubLimits { first_lists_within: never, first_call_within: never, ..quick() });
            within(hub.set_servers(vec![lazy("slow"), lazy("well")])).await;
            let client = plain(&hub, down).await;
            assert_eq!(say(&client, "well__t").await, "t", "{up} {down}");
            assert!(say(&client, "well__u").await.contains("Unknown tool"), "{up} {down}");
            assert!(say(&client, "else__t").await.contains("Unknown tool"), "{up} {down}");
            let mut late = Box::pin(say(&client, "slow__t"));
            assert!(late.as_mut().now_or_never().is_none(), "{up} {down}");
            until(|| town.visits("slow") > 0).await;
            town.open("slow");
            assert_eq!(late.await, "t", "{up} {down}");
        }
    }
}

#[tokio::test]
async fn a_list_is_answered_without_a_server_that_hangs_which_is_announced_when_it_is_up() {
    for down in [OLD, NEW] {
        let town = Town::default();
        town.settle("well", &parrots(&["t"]), OLD);
        town.settle("slow", &parrots(&["t"]), OLD);
        town.shut("slow");
        let hub = town.hub_within(HubLimits { first_lists_within: Duration::from_millis(50), ..quick() });
        within(hub.set_servers(vec![lazy("slow"), lazy("well")])).await;
        let client = plain(&hub, down).await;
        let mut changes = within(client.subscribe(Watch::lists())).await.unwrap();
        assert_eq!(tools(&client).await, ["well__t"]);
        town.open("slow");
        assert_eq!(within(changes.next()).await, Some(Change::Tools), "{down}");
        assert_eq!(tools(&client).await, ["slow__t", "well__t"], "{down}");
    }
}

#[tokio::test]
async fn a_listing_that_nothing_keeps_up_to_date_is_learnt_again_after_a_change() {
    let town = Town::default();
    let server = town.settle("a", &parrots(&["t"]), OLD);
    let hub = town.hub_within(HubLimits { idle: Duration::from_millis(1), ..quick() });
    within(hub.set_servers(vec![eager("a")])).await;
    let builder = declaring(ClientCapabilities::default().with_form()).pin(NEW);
    let asked = client(&front(&hub), builder, Principal::Anonymous).await;
    assert_eq!(tools(&asked).await, ["a__t"]);
    until(|| hub.status_of("a").unwrap().connections <= 1).await;
    server.add(crate::support::parrot("u")).unwrap();
    let bare = plain(&hub, NEW).await;
    let mut changes = within(bare.subscribe(Watch::lists())).await.unwrap();
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

    pub(crate) fn hub(&self, town: &Town, limits: HubLimits) -> Hub {
        let mut options = town.options(limits);
        options.catalogue_file = Some(self.0.clone());
        Hub::new(options)
    }
}

impl Drop for ListingsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

#[tokio::test]
async fn a_restarted_hub_answers_lists_from_the_previous_run_until_its_servers_are_up() {
    for (up, down) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let file = ListingsFile::new("restarted-hub");
        let town = Town::default();
        town.settle("a", &parrots(&["t"]), up);
        let first = file.hub(&town, quick());
        within(first.set_servers(vec![lazy("a")])).await;
        let builder = || declaring(ClientCapabilities::default().with_form()).pin(down);
        assert_eq!(tools(&client(&front(&first), builder(), Principal::Anonymous).await).await, ["a__t"]);
        within(first.shutdown()).await;
        town.settle("a", &parrots(&["t", "u"]), up);
        town.shut("a");
        let never = Duration::from_secs(3600);
        let second = file.hub(&town, HubLimits { first_lists_within: never, ..quick() });
        within(second.set_servers(vec![lazy("a")])).await;
        assert_eq!(town.visits("a"), 1, "nothing is started before a client comes");
        let client = client(&front(&second), builder(), Principal::Anonymous).await;
        let mut changes = within(client.subscribe(Watch::lists())).await.unwrap();
        assert_eq!(tools(&client).await, ["a__t"], "{up} {down}: from the file");
        let mut call = Box::pin(say(&client, "a__t"));
        assert!(call.as_mut().now_or_never().is_none(), "{up} {down}: the server is not up");
        town.open("a");
        assert_eq!(call.await, "t", "{up} {down}");
        while tools(&client).await != ["a__t", "a__u"] {
            within(changes.next()).await;
        }
    }
}

#[tokio::test]
async fn listings_of_the_previous_run_go_where_the_server_cannot_be_started() {
    let file = ListingsFile::new("failed-after-restart");
    let town = Town::default();
    town.settle("a", &parrots(&["t"]), OLD);
    let first = file.hub(&town, quick());
    within(first.set_servers(vec![lazy("a")])).await;
    assert_eq!(tools(&plain(&first, OLD).await).await, ["a__t"]);
    within(first.shutdown()).await;
    town.abandon("a", "out of order");
    let second = file.hub(&town, quick());
    within(second.set_servers(vec![lazy("a")])).await;
    let client = plain(&second, NEW).await;
    let mut changes = within(client.subscribe(Watch::lists())).await.unwrap();
    while !tools(&client).await.is_empty() {
        within(changes.next()).await;
    }
}
