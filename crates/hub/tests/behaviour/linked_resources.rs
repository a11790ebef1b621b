//! Resources that are on no list, and that a server pointed at in a result.

use serde_json::json;
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::ResourceBody;
use trunkline_client::{Client, Error};
use trunkline_hub::{Hub, ServerSwitch};

use crate::support::{
    NEW, OLD, ScriptReply, TestServers, client, eager, named_principal, script, serve_hub, within,
};

/// Two servers with resources on no list; each tool points at the address that it is called with.
async fn two_pointing() -> (TestServers, Hub) {
    let town = TestServers::default();
    for (name, revision) in [("a", OLD), ("b", NEW)] {
        let (_, opener) = script(move |_, message| {
            let uri = &message["params"]["uri"];
            match message["method"].as_str() {
                Some("tools/call") => {
                    let uri = &message["params"]["arguments"]["uri"];
                    let link = json!({ "type": "resource_link", "uri": uri, "name": "it" });
                    ScriptReply::Result(json!({ "resultType": "complete", "content": [link] }))
                }
                Some("resources/read") => {
                    let contents = json!([{ "uri": uri, "text": format!("read at {name}") }]);
                    ScriptReply::Result(json!({ "resultType": "complete", "contents": contents, "ttlMs": 0,
                        "cacheScope": "private" }))
                }
                _ => ScriptReply::AsUsual,
            }
        });
        town.add_script(name, opener, revision);
    }
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a"), eager("b")])).await;
    (town, hub)
}

async fn connect(hub: &Hub, who: &str, down: Revision) -> Client {
    client(&serve_hub(hub), Client::builder().pin(down), named_principal(who)).await
}

async fn point(client: &Client, tool: &str, uri: &str) {
    within(client.call(tool, json!({ "uri": uri }))).await.unwrap();
}

async fn read(client: &Client, uri: &str) -> String {
    match within(client.read(uri)).await {
        Ok(read) => match &read.contents[0].body {
            ResourceBody::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        },
        Err(Error::ErrorResponse(refused)) => refused.message,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn linked_resource_is_read_from_the_server_that_linked_it() {
    for down in [OLD, NEW] {
        let (_town, hub) = two_pointing().await;
        let ada = connect(&hub, "ada", down).await;
        assert_eq!(read(&ada, "x:1").await, "resource not found");
        point(&ada, "a__t", "x:1").await;
        point(&ada, "b__t", "x:2").await;
        assert_eq!(
            (read(&ada, "x:1").await, read(&ada, "x:2").await),
            ("read at a".into(), "read at b".into())
        );
        let by_tool = within(ada.call("read_mcp_resource", json!({ "uri": "x:2" }))).await.unwrap();
        assert!(by_tool.raw().as_str().contains("read at b"), "{:?}", by_tool.raw());
    }
}

#[tokio::test]
async fn resource_linked_by_two_servers_is_read_from_the_first_configured() {
    for order in [["a", "b"], ["b", "a"]] {
        let (_town, hub) = two_pointing().await;
        let ada = connect(&hub, "ada", NEW).await;
        for tool in order.map(|server| format!("{server}__t")) {
            point(&ada, &tool, "x:1").await;
        }
        assert_eq!(read(&ada, "x:1").await, "read at a", "{order:?}");
        within(hub.set_servers(vec![eager("b"), eager("a")])).await;
        assert_eq!(read(&ada, "x:1").await, "read at b", "{order:?}");
    }
}

#[tokio::test]
async fn linked_resource_is_not_readable_by_another_principal() {
    let (_town, hub) = two_pointing().await;
    let (ada, bob) = (connect(&hub, "ada", NEW).await, connect(&hub, "bob", NEW).await);
    point(&ada, "a__t", "x:1").await;
    point(&bob, "b__t", "x:1").await;
    assert_eq!((read(&ada, "x:1").await, read(&bob, "x:1").await), ("read at a".into(), "read at b".into()));
    assert_eq!(read(&connect(&hub, "eve", NEW).await, "x:1").await, "resource not found");
}

#[tokio::test]
async fn linked_resource_falls_back_to_the_other_server_while_its_own_is_disabled() {
    let (_town, hub) = two_pointing().await;
    let ada = connect(&hub, "ada", OLD).await;
    point(&ada, "a__t", "x:1").await;
    hub.toggle("a", ServerSwitch::Off).unwrap();
    // The other one is the only one with resources now, and knows best what it has.
    assert_eq!(read(&ada, "x:1").await, "read at b");
    hub.toggle("a", ServerSwitch::On).unwrap();
    assert_eq!(read(&ada, "x:1").await, "read at a");
}
