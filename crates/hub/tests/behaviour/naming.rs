//! Names, addresses and references of many servers behind one.

use std::sync::Arc;

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::{PromptMessage, ResourceBody};
use trunkline_client::{Client, CompletionRequest, Error};
use trunkline_config::NamePattern;
use trunkline_hub::{Hub, HubOptions, NameTemplate};
use trunkline_server::{Prompt, Resource, ResourceTemplate, Server};

use crate::support::{NEW, OLD, TestServers, eager, echo_server, plain_client, say, tools, within};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Guest {
    #[serde(rename = "who")]
    _who: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    #[serde(rename = "n")]
    _n: String,
}

/// A server with a prompt, resources and a template that name their owner.
fn library(whose: &'static str) -> Server {
    Server::new(whose)
        .instructions(format!("Ask {whose}."))
        .with(
            Prompt::new("greet")
                .get(move |_: Guest| async move { vec![PromptMessage::user(whose)] })
                .complete("who", move |_: String, _| async move { vec![whose.to_owned()] }),
        )
        .with(Resource::new(format!("{whose}:book"), "book").text(whose))
        .with(Resource::new("shared:book", "book").text(whose))
        .with(
            ResourceTemplate::new(format!("{whose}:page/{{n}}"), "page")
                .read(move |_: Page| async move { whose })
                .complete("n", move |_: String, _| async move { vec![format!("page of {whose}")] }),
        )
}

async fn two_libraries() -> (Hub, Client) {
    let town = TestServers::default();
    town.add_server("a", &library("a"), Revision::V2025_03_26);
    town.add_server("b", &library("b"), Revision::NEWEST);
    let hub = town.hub();
    hub.set_servers(vec![eager("a"), eager("b")]).await;
    let client = plain_client(&hub, Revision::NEWEST).await;
    (hub, client)
}

#[tokio::test]
async fn prompts_and_completions_are_routed_to_their_owner() {
    let (_hub, client) = two_libraries().await;
    for whose in ["a", "b"] {
        let prompt = within(client.get_prompt(format!("{whose}__greet"), json!({}))).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some(whose));
        let completion = CompletionRequest::prompt(format!("{whose}__greet"), "who", "");
        assert_eq!(within(client.complete(completion)).await.unwrap().values, [whose]);
        let completion = CompletionRequest::template(format!("{whose}:page/{{n}}"), "n", "");
        assert_eq!(within(client.complete(completion)).await.unwrap().values, [format!("page of {whose}")]);
    }
    let Err(Error::ErrorResponse(refused)) = within(client.get_prompt("greet", json!({}))).await else {
        panic!()
    };
    assert!(refused.message.contains("Unknown prompt"), "{refused}");
}

#[tokio::test]
async fn resources_are_read_from_their_first_owner() {
    let (hub, client) = two_libraries().await;
    let listed = within(client.resources()).await.unwrap();
    let uris: Vec<_> = listed.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(uris, ["a:book", "b:book", "shared:book"]);
    for (uri, expected) in
        [("a:book", "a"), ("b:book", "b"), ("a:page/7", "a"), ("b:page/7", "b"), ("shared:book", "a")]
    {
        let read = within(client.read(uri)).await.unwrap();
        assert_eq!(read.contents[0].body, ResourceBody::Text(expected.to_owned()), "{uri}");
    }
    let Err(Error::ErrorResponse(refused)) = within(client.read("nobodys:book")).await else { panic!() };
    assert_eq!(refused.code, -32602);
    let [collision] = &hub.collisions()[..] else { panic!("{:?}", hub.collisions()) };
    assert_eq!((collision.name.as_str(), collision.owners.len()), ("shared:book", 2));
}

#[tokio::test]
async fn resource_tools_list_and_read_resources() {
    let (_hub, client) = two_libraries().await;
    assert_eq!(tools(&client).await, ["list_mcp_resources", "read_mcp_resource"]);
    let all = within(client.call("list_mcp_resources", json!({}))).await.unwrap().text();
    assert!(all.contains("a:book") && all.contains("b:book"), "{all}");
    let of_b = within(client.call("list_mcp_resources", json!({ "server": "b" }))).await.unwrap().text();
    assert!(!of_b.contains("a:book") && of_b.contains("b:book"), "{of_b}");
    let read = within(client.call("read_mcp_resource", json!({ "uri": "a:book" }))).await.unwrap();
    assert!(read.raw().as_str().contains(r#""text":"a""#), "{:?}", read.raw());
    // The plain name belongs to the first server, and the item of the other has a qualified name.
    for (arguments, said) in [
        (json!({ "uri": "shared:book" }), r#""text":"a""#),
        (json!({ "uri": "shared:book", "server": "b" }), r#""text":"b""#),
    ] {
        let read = within(client.call("read_mcp_resource", arguments)).await.unwrap();
        assert!(read.raw().as_str().contains(said), "{:?}", read.raw());
    }
    for (arguments, said) in [
        (json!({ "uri": "a:nothing" }), "no server has"),
        (json!({ "uri": "a:nothing", "server": "a" }), "not found"),
        (json!({ "uri": "a:book", "server": "c" }), "`c` has no resources"),
        (json!({}), "`uri` must be a string"),
    ] {
        let failed = within(client.call("read_mcp_resource", arguments)).await.unwrap();
        assert!(failed.is_error && failed.text().contains(said), "{}", failed.text());
    }
}

#[tokio::test]
async fn colliding_tool_names_are_reported_and_both_are_callable() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["b__c"]), Revision::NEWEST);
    town.add_server("a__b", &echo_server(&["c"]), Revision::V2024_11_05);
    let hub = town.hub();
    hub.set_servers(vec![eager("a"), eager("a__b")]).await;
    let client = plain_client(&hub, Revision::V2024_11_05).await;
    assert!(say(&client, "a__b__c").await.contains("Unknown tool"), "it is not guessed whose it is");
    let mut said = Vec::new();
    for name in tools(&client).await {
        said.push(say(&client, &name).await);
    }
    said.sort();
    assert_eq!(said, ["b__c", "c"]);
    assert!(hub.collisions()[0].to_string().contains("`b__c` of `a`"));
    // Once one of them is gone, the other has its name.
    hub.set_servers(vec![eager("a__b")]).await;
    assert_eq!(tools(&client).await, ["a__b__c"]);
}

#[tokio::test]
async fn instructions_are_joined_and_names_follow_the_template() {
    let town = TestServers::default();
    town.add_server("a", &library("a"), Revision::NEWEST);
    town.add_server("b", &library("b").with(crate::support::echo_tool("t")), Revision::V2025_06_18);
    let options =
        HubOptions { connector: Arc::new(town), names: NameTemplate::agent(), ..HubOptions::default() };
    let hub = Hub::new(options);
    hub.set_servers(vec![eager("a"), eager("b")]).await;
    let client = plain_client(&hub, Revision::V2025_11_25).await;
    assert_eq!(client.server().instructions.as_deref(), Some("# a\n\nAsk a.\n\n# b\n\nAsk b."));
    assert_eq!(client.server().identity.as_ref().unwrap().name, "trunkline");
    assert!(tools(&client).await.contains(&"mcp__b__t".to_owned()));
    assert_eq!(say(&client, "mcp__b__t").await, "t");
}

#[tokio::test]
async fn exposed_names_are_valid_for_every_model_api() {
    let town = TestServers::default();
    let long: &'static str = "t123456789_".repeat(11).leak();
    town.add_server("Figma Dev Mode", &echo_server(&["get.code", "get_code", long]), Revision::V2025_11_25);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("Figma Dev Mode")])).await;
    let client = plain_client(&hub, Revision::NEWEST).await;
    let listed = tools(&client).await;
    let mut said = Vec::new();
    for name in &listed {
        assert!(name.len() <= 64, "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
        said.push(say(&client, name).await);
    }
    said.sort();
    assert_eq!(said, ["get.code", "get_code", long]);
    assert!(say(&client, "Figma_Dev_Mode__get_code").await.contains("Unknown tool"), "it would be of two");
    let [collision] = &hub.collisions()[..] else { panic!("{:?}", hub.collisions()) };
    assert_eq!(collision.owners.len(), 2);
}

#[tokio::test]
async fn tool_rules_apply_while_the_hub_is_running() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["read_file", "read_dir", "write_file"]), Revision::V2025_06_18);
    let hub = town.hub();
    let mut config = eager("a");
    config.tools.allow = vec![NamePattern::new("*_file")];
    config.tools.deny = vec![NamePattern::new("write_*")];
    config.tools.rename.insert("read_file".to_owned(), "cat".to_owned());
    config.tools.describe.insert("read_file".to_owned(), "Shows a file.".to_owned());
    within(hub.set_servers(vec![config.clone()])).await;
    let client = plain_client(&hub, Revision::NEWEST).await;
    let listed = within(client.tools()).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|tool| (&*tool.name, tool.description.as_deref())).collect();
    assert_eq!(listed, [("a__cat", Some("Shows a file."))]);
    assert_eq!(say(&client, "a__cat").await, "read_file");
    for hidden in ["a__read_file", "a__read_dir", "a__write_file"] {
        assert!(say(&client, hidden).await.contains("Unknown tool"), "{hidden}");
    }
    config.tools = trunkline_config::ToolRules::default();
    within(hub.set_servers(vec![config])).await;
    assert_eq!(tools(&client).await, ["a__read_dir", "a__read_file", "a__write_file"]);
    assert_eq!(town.connection_count("a"), 1, "the rules are ours, and no matter of the connection");
}

#[tokio::test]
async fn tool_renamed_to_an_existing_name_is_reported_as_a_collision() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["x", "y"]), Revision::NEWEST);
    let hub = town.hub();
    let mut config = eager("a");
    config.tools.rename.insert("x".to_owned(), "y".to_owned());
    within(hub.set_servers(vec![config])).await;
    let client = plain_client(&hub, Revision::NEWEST).await;
    assert!(say(&client, "a__y").await.contains("Unknown tool"));
    let mut said = Vec::new();
    for name in tools(&client).await {
        said.push(say(&client, &name).await);
    }
    assert_eq!(said.len(), hub.collisions()[0].owners.iter().filter(|(.., here)| here.is_some()).count());
}

#[tokio::test]
async fn template_of_two_servers_belongs_to_the_first_and_is_reported() {
    let town = TestServers::default();
    let shelf = |whose: &'static str| {
        let page = ResourceTemplate::new("page:{n}", "page").read(move |_: Page| async move { whose });
        Server::new(whose).with(page)
    };
    town.add_server("a", &shelf("a"), Revision::V2025_11_25);
    town.add_server("b", &shelf("b"), Revision::NEWEST);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    let client = plain_client(&hub, Revision::V2025_11_25).await;
    assert_eq!(within(client.templates()).await.unwrap().len(), 1);
    let read = within(client.read("page:1")).await.unwrap();
    assert_eq!(read.contents[0].body, ResourceBody::Text("a".to_owned()));
    assert!(hub.collisions()[0].to_string().contains("resource template `page:{n}`"));
    within(hub.set_servers(vec![eager("b")])).await;
    let read = within(client.read("page:1")).await.unwrap();
    assert_eq!(read.contents[0].body, ResourceBody::Text("b".to_owned()));
}

#[tokio::test]
async fn hub_option_sets_the_name_template() {
    let town = TestServers::default();
    town.add_server("a", &echo_server(&["t"]), Revision::NEWEST);
    for (template, expected) in [
        ("{server}__{tool}", "a__t"),
        ("mcp__{server}__{tool}", "mcp__a__t"),
        ("x-{server}-{tool}", "x-a-t"),
        ("{tool}", "t"),
    ] {
        let options = HubOptions {
            connector: Arc::new(town.clone()),
            names: template.parse().unwrap(),
            ..HubOptions::default()
        };
        let hub = Hub::new(options);
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, Revision::NEWEST).await;
        assert_eq!(tools(&client).await, [expected]);
        assert_eq!(say(&client, expected).await, "t");
    }
}

#[tokio::test]
async fn tool_named_like_a_hub_tool_does_not_replace_it_and_is_reported() {
    let town = TestServers::default();
    let posing = echo_server(&["t", "read_mcp_resource"]).with(Resource::new("a:day", "day").text("a day"));
    town.add_server("a", &posing, OLD);
    let hub = Hub::new(HubOptions {
        connector: Arc::new(town.clone()),
        names: "{tool}".parse::<NameTemplate>().unwrap(),
        ..HubOptions::default()
    });
    within(hub.set_servers(vec![eager("a")])).await;
    let client = plain_client(&hub, NEW).await;
    let read = within(client.call("read_mcp_resource", json!({ "uri": "a:day" }))).await.unwrap();
    assert!(format!("{read:?}").contains("a day"), "{read:?}");
    assert_eq!(tools(&client).await, ["list_mcp_resources", "read_mcp_resource", "t"]);
    let [collision] = &hub.collisions()[..] else { panic!("{:?}", hub.collisions()) };
    assert_eq!(
        collision.to_string(),
        "tool `read_mcp_resource` is reserved for the hub; `read_mcp_resource` of `a` is not exposed"
    );
    // It can be had by another name.
    let mut renamed = eager("a");
    renamed.tools.rename.insert("read_mcp_resource".to_owned(), "fetch".to_owned());
    within(hub.set_servers(vec![renamed])).await;
    assert!(hub.collisions().is_empty());
    assert_eq!(say(&client, "fetch").await, "read_mcp_resource");
}
