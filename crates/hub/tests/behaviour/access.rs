//! Access rules: what callers may see and use.

use std::collections::BTreeMap;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::{ChangeEvent, ChangeFilter, Client, ClientCall, Error};
use trunkline_config::{ConfigFile, ConfigVariables};
use trunkline_hub::{AccessRules, Hub, HubOptions};
use trunkline_server::{Host, Prompt, Resource, ResourceTemplate, Server};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, TestServers, client, eager, echo_tool, lazy, named_principal, quick, say, serve_hub, tools,
    within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

fn rules(toml: &str) -> AccessRules {
    let variables = ConfigVariables::fixed([("", ""); 0]);
    AccessRules::new(ConfigFile::parse("trunkline.toml", toml, variables).unwrap().access_rules().unwrap())
}

/// Ann may use the whole of `a`; Bob only one tool of `b`, and no resource.
const TWO_USERS: &str = "
    [[access]]
    action = 'allow'
    principal = 'ann'
    servers = 'a'

    [[access]]
    action = 'allow'
    principal = 'bob'
    servers = 'b'
    tools = 'one'
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ItemVariables {
    #[allow(dead_code, reason = "every id is the same item")]
    id: String,
}

async fn names(_: String, _: BTreeMap<String, String>) -> Vec<String> {
    vec!["ann".to_owned()]
}

/// A server with an item of each kind; their names begin with the name of the server.
fn full_server(name: &'static str) -> Server {
    Server::new(name)
        .instructions(format!("Ask {name}."))
        .with(echo_tool("one"))
        .with(echo_tool("two"))
        .with(
            Prompt::new("hello")
                .optional("who", "whom")
                .complete("who", names)
                .get(move || async move { name }),
        )
        .with(Resource::new(format!("{name}:day"), "day").text(name))
        .with(
            ResourceTemplate::new(format!("{name}:items/{{id}}"), "items")
                .complete("id", names)
                .read(move |_: ItemVariables| async move { name }),
        )
}

/// A hub with two such servers.
async fn hub_of_two(access: AccessRules, up: Revision) -> (TestServers, Hub) {
    let servers = TestServers::default();
    for name in ["a", "b"] {
        servers.add_server(name, &full_server(name), up);
    }
    let hub = Hub::new(HubOptions { access, ..servers.options(quick()) });
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    (servers, hub)
}

async fn client_of(front: &Host, revision: Revision, name: &str) -> Client {
    client(front, Client::builder().pin(revision), named_principal(name)).await
}

/// Returns the code and the message of the error of a request.
async fn refusal(client: &Client, method: &'static str, params: serde_json::Value) -> (i64, String) {
    match within(client.run(ClientCall::other(method, params.clone()))).await {
        Err(Error::ErrorResponse(response)) => (response.code, response.message),
        other => panic!("{method} {params}: {other:?}"),
    }
}

async fn prompts(client: &Client) -> Vec<String> {
    within(client.prompts()).await.unwrap().iter().map(|prompt| prompt.name.clone()).collect()
}

async fn resources(client: &Client) -> Vec<String> {
    let resources = within(client.resources()).await.unwrap();
    let templates = within(client.templates()).await.unwrap();
    let uris = resources.iter().map(|resource| resource.uri.clone());
    uris.chain(templates.iter().map(|template| template.uri_template.clone())).collect()
}

async fn read(client: &Client, uri: &str) -> String {
    match within(client.read(uri)).await {
        Ok(read) => format!("{:?}", read.contents.first()),
        Err(error) => format!("error: {error}"),
    }
}

const RESOURCE_TOOLS: [&str; 2] = ["list_mcp_resources", "read_mcp_resource"];

#[tokio::test]
async fn callers_list_and_call_exactly_the_allowed_items() {
    for (front_revision, up) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let (_servers, hub) = hub_of_two(rules(TWO_USERS), up).await;
        let front = serve_hub(&hub);
        let (ann, bob) =
            (client_of(&front, front_revision, "ann").await, client_of(&front, front_revision, "bob").await);
        assert_eq!(tools(&ann).await, ["a__one", "a__two", RESOURCE_TOOLS[0], RESOURCE_TOOLS[1]]);
        assert_eq!(tools(&bob).await, ["b__one"]);
        assert_eq!((prompts(&ann).await, prompts(&bob).await), (vec!["a__hello".to_owned()], vec![]));
        assert_eq!(resources(&ann).await, ["a:day", "a:items/{id}"]);
        assert_eq!(resources(&bob).await, [""; 0]);
        assert_eq!(ann.server().instructions.as_deref(), Some("Ask a."));
        assert_eq!(bob.server().instructions.as_deref(), Some("Ask b."));
        assert_eq!(
            (say(&ann, "a__one").await, say(&bob, "b__one").await),
            ("one".to_owned(), "one".to_owned())
        );
        assert!(read(&ann, "a:items/7").await.contains("\"a\""));
        let listed = within(ann.call(RESOURCE_TOOLS[0], json!({}))).await.unwrap().text();
        assert!(listed.contains("a:day") && !listed.contains("b:day"), "{listed}");
        for (arguments, expected) in [
            (json!({ "uri": "b:day" }), "no server has the resource b:day"),
            (json!({ "uri": "b:day", "server": "b" }), "`b` has no resources"),
        ] {
            let refused = within(ann.call(RESOURCE_TOOLS[1], arguments)).await.unwrap();
            assert_eq!(refused.text(), expected);
        }
        // A caller that no rule mentions sees nothing.
        let carl = client_of(&front, front_revision, "carl").await;
        assert_eq!(tools(&carl).await, [""; 0]);
        assert_eq!(carl.server().instructions, None);
    }
}

#[tokio::test]
async fn denied_items_are_refused_exactly_like_unknown_ones() {
    for (front_revision, up) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let (_servers, hub) = hub_of_two(rules(TWO_USERS), up).await;
        let front = serve_hub(&hub);
        let bob = client_of(&front, front_revision, "bob").await;
        let named = |name: &str| json!({ "name": name, "arguments": {} });
        let completion = |reference: serde_json::Value| json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
        let prompt = |name: &str| completion(json!({ "type": "ref/prompt", "name": name }));
        let template = |uri: &str| completion(json!({ "type": "ref/resource", "uri": uri }));
        for (method, params, denied, unknown) in [
            ("tools/call", &named as &dyn Fn(&str) -> serde_json::Value, "a__one", "a__nix"),
            ("tools/call", &named, "b__two", "b__nix"),
            ("tools/call", &named, RESOURCE_TOOLS[0], "list_mcp_nothings"),
            ("prompts/get", &named, "b__hello", "b__nix"),
            ("resources/read", &|uri| json!({ "uri": uri }), "a:day", "nix:day"),
            ("resources/read", &|uri| json!({ "uri": uri }), "b:items/1", "nix:items/1"),
            ("completion/complete", &prompt, "b__hello", "b__nix"),
            ("completion/complete", &template, "b:items/{id}", "nix:items/{id}"),
        ] {
            let (code, message) = refusal(&bob, method, params(denied)).await;
            let expected = refusal(&bob, method, params(unknown)).await;
            assert_eq!((code, message.replace(denied, unknown)), expected, "{method} {denied}");
        }
        if front_revision == OLD {
            let uri = |uri: &str| json!({ "uri": uri });
            let (code, message) = refusal(&bob, "resources/subscribe", uri("a:day")).await;
            let expected = refusal(&bob, "resources/subscribe", uri("nix:day")).await;
            assert_eq!((code, message.replace("a:day", "nix:day")), expected);
        }
    }
}

const SCOPED: &str = "
    [[access]]
    action = 'allow'
    servers = 'a'
    scope = ['a:use', 'a:more']

    [[access]]
    action = 'allow'
    servers = 'b'
    tools = 'one'
";

#[tokio::test]
async fn items_that_lack_only_a_scope_are_listed_and_refused_with_it() {
    for (revision, up) in [(OLD, NEW), (NEW, OLD)] {
        let (_servers, hub) = hub_of_two(rules(SCOPED), up).await;
        let front = serve_hub(&hub);
        let ann = client_of(&front, revision, "ann").await;
        let listed = tools(&ann).await;
        assert_eq!(listed, ["a__one", "a__two", "b__one", RESOURCE_TOOLS[0], RESOURCE_TOOLS[1]]);
        assert_eq!(prompts(&ann).await, ["a__hello"]);
        assert_eq!(resources(&ann).await, ["a:day", "a:items/{id}"]);
        let argument = json!({ "name": "who", "value": "" });
        let mut requests = vec![
            ("tools/call", json!({ "name": "a__one", "arguments": {} })),
            ("tools/call", json!({ "name": RESOURCE_TOOLS[1], "arguments": { "uri": "a:day" } })),
            ("prompts/get", json!({ "name": "a__hello" })),
            ("resources/read", json!({ "uri": "a:day" })),
            ("resources/read", json!({ "uri": "a:items/1" })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "a__hello" }, "argument": argument }),
            ),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/resource", "uri": "a:items/{id}" }, "argument": argument }),
            ),
        ];
        if revision == OLD {
            requests.push(("resources/subscribe", json!({ "uri": "a:day" })));
        }
        for (method, params) in requests {
            let (_, message) = refusal(&ann, method, params).await;
            assert_eq!(message, "the token needs the scope: a:use a:more", "{method}");
        }
        if revision == NEW {
            let refused = within(ann.subscribe(ChangeFilter::default().with_uri("a:day"))).await;
            assert!(refused.unwrap_err().to_string().contains("a:use a:more"));
        }
        assert_eq!(say(&ann, "b__one").await, "one");
        // A caller without a token has no scope to ask for.
        let process = client(&front, Client::builder().pin(revision), Principal::Process).await;
        assert_eq!(tools(&process).await, ["b__one"]);
    }
}

#[tokio::test]
async fn list_change_of_a_denied_server_is_not_announced() {
    for revision in BOTH {
        let servers = TestServers::default();
        let [a, b] = ["a", "b"].map(|name| servers.add_server(name, &full_server(name), NEW));
        let open = TWO_USERS.replace("tools = 'one'", "");
        let hub = Hub::new(HubOptions { access: rules(&open), ..servers.options(quick()) });
        within(hub.set_servers(vec![eager("a"), eager("b")])).await;
        let front = serve_hub(&hub);
        let mut streams = Vec::new();
        for name in ["ann", "bob"] {
            let client = client_of(&front, revision, name).await;
            tools(&client).await;
            let changes = within(client.subscribe(ChangeFilter { tools: true, ..ChangeFilter::default() }))
                .await
                .unwrap();
            streams.push((client, changes));
        }
        b.add(echo_tool("three")).unwrap();
        assert_eq!(within(streams[1].1.next()).await, Some(ChangeEvent::Tools), "{revision}");
        assert_eq!(streams[0].1.next().now_or_never(), None, "{revision}: it is not about what she sees");
        assert!(tools(&streams[1].0).await.contains(&"b__three".to_owned()));
        a.add(echo_tool("three")).unwrap();
        assert_eq!(within(streams[0].1.next()).await, Some(ChangeEvent::Tools), "{revision}");
        assert!(tools(&streams[0].0).await.contains(&"a__three".to_owned()));
    }
}

#[tokio::test]
async fn replaced_rules_count_at_once_and_change_lists_are_announced() {
    for revision in BOTH {
        let (_servers, hub) = hub_of_two(AccessRules::default(), NEW).await;
        let front = serve_hub(&hub);
        let bob = client_of(&front, revision, "bob").await;
        assert!(tools(&bob).await.contains(&"a__one".to_owned()));
        let mut changes =
            within(bob.subscribe(ChangeFilter { tools: true, ..ChangeFilter::default() })).await.unwrap();
        for (access, expected) in [
            (rules(TWO_USERS), &["b__one"][..]),
            (rules(&TWO_USERS.replace("'bob'", "'carl'")), &[]),
            (rules("[[access]]\naction = 'allow'\ntools = 'one'"), &["a__one", "b__one"]),
        ] {
            hub.set_access(&access);
            let is_allowed = expected.contains(&"b__one");
            assert_eq!(say(&bob, "b__one").await == "one", is_allowed, "{revision}: before any notice");
            assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{revision}");
            assert_eq!(tools(&bob).await, expected, "{revision}");
        }
        hub.set_access(&AccessRules::default());
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{revision}");
        assert_eq!(say(&bob, "a__two").await, "two");
    }
}

#[tokio::test]
async fn resource_updates_end_when_rules_deny_the_resource() {
    for revision in BOTH {
        let servers = TestServers::default();
        let [a, b] = ["a", "b"].map(|name| servers.add_server(name, &full_server(name), NEW));
        let hub = servers.hub();
        within(hub.set_servers(vec![eager("a"), eager("b")])).await;
        let ann = client_of(&serve_hub(&hub), revision, "ann").await;
        let watched = ChangeFilter::default().with_uri("a:day").with_uri("b:day");
        let mut changes = within(ann.subscribe(watched)).await.unwrap();
        b.notify_updated("b:day");
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resource("b:day".to_owned())));
        hub.set_access(&rules(TWO_USERS));
        b.notify_updated("b:day");
        a.notify_updated("a:day");
        assert_eq!(
            within(changes.next()).await,
            Some(ChangeEvent::Resource("a:day".to_owned())),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn call_of_a_denied_server_neither_waits_for_it_nor_starts_it() {
    let servers = TestServers::default();
    for name in ["a", "b"] {
        servers.add_server(name, &full_server(name), NEW);
        servers.block_connections(name);
    }
    let hub = Hub::new(HubOptions { access: rules(TWO_USERS), ..servers.options(quick()) });
    within(hub.set_servers(vec![lazy("a"), lazy("b")])).await;
    let bob = client_of(&serve_hub(&hub), NEW, "bob").await;
    assert_eq!(say(&bob, "a__one").await, "error: the server refused: Unknown tool: a__one (-32602)");
    assert!(servers.is_unconnected("a"));
    servers.allow_connections("b");
    assert_eq!(say(&bob, "b__one").await, "one");
}

#[tokio::test]
async fn bridge_applies_access_rules_to_its_server() {
    let servers = TestServers::default();
    servers.add_server("a", &full_server("a"), OLD);
    let access = rules("[[access]]\naction = 'allow'\nprincipal = 'ann'\ntools = 'one'");
    let hub =
        within(Hub::bridge(lazy("a"), HubOptions { access, ..servers.options(quick()) })).await.unwrap();
    let front = serve_hub(&hub);
    let (ann, bob) = (client_of(&front, NEW, "ann").await, client_of(&front, NEW, "bob").await);
    assert_eq!(tools(&ann).await, ["one"]);
    assert_eq!(tools(&bob).await, [""; 0]);
    assert_eq!(resources(&ann).await, [""; 0]);
}

#[tokio::test]
async fn read_only_rule_shows_only_annotated_tools() {
    let servers = TestServers::default();
    let server = Server::new("a")
        .with(echo_tool("get").read_only())
        .with(echo_tool("liar").read_only().destructive())
        .with(echo_tool("set"));
    servers.add_server("a", &server, NEW);
    let access = rules("[[access]]\naction = 'allow'\nread_only = true");
    let hub = Hub::new(HubOptions { access, ..servers.options(quick()) });
    within(hub.set_servers(vec![eager("a")])).await;
    let ann = client_of(&serve_hub(&hub), NEW, "ann").await;
    assert_eq!(tools(&ann).await, ["a__get"]);
    assert!(say(&ann, "a__set").await.contains("Unknown tool"));
}
