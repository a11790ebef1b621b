//! The memory for listings: a server beyond its share loses its own lists, and no others.

use serde_json::{Value, json};
use trunkline_hub::HubLimits;

use crate::support::{
    OLD, ScriptReply, TestServers, eager, echo_server, plain_client, quick, script, tools, until, within,
};

/// A server that lists one tool and one prompt with texts of this length.
fn add_verbose_server(town: &TestServers, name: &str, bytes: usize) {
    let (_, opener) = script(move |_, message| {
        let item = |schema: Value| {
            let mut item = json!({ "name": "long", "description": "x".repeat(bytes) });
            item.as_object_mut().unwrap().extend(schema.as_object().unwrap().clone());
            item
        };
        match message["method"].as_str() {
            Some("initialize") => ScriptReply::Result(json!({
                "protocolVersion": OLD.as_str(),
                "capabilities": { "tools": {}, "prompts": {} },
                "serverInfo": { "name": "verbose", "version": "1" },
            })),
            Some("tools/list") => ScriptReply::Result(
                json!({ "tools": [item(json!({ "inputSchema": { "type": "object" } }))] }),
            ),
            Some("prompts/list") => ScriptReply::Result(json!({ "prompts": [item(json!({}))] })),
            _ => ScriptReply::AsUsual,
        }
    });
    town.add_script(name, opener, OLD);
}

#[tokio::test]
async fn lists_beyond_the_bytes_of_one_server_are_refused_alone() {
    let town = TestServers::default();
    add_verbose_server(&town, "verbose", 300 << 10);
    town.add_server("well", &echo_server(&["t"]), OLD);
    let limits = HubLimits { listing_bytes: 400 << 10, text_bytes: 1 << 20, ..quick() };
    let hub = town.hub_within(limits);
    within(hub.set_servers(vec![eager("verbose"), eager("well")])).await;
    until(|| hub.status_of("verbose").unwrap().tools == 1 && hub.status_of("well").unwrap().tools == 1).await;
    let status = hub.status_of("verbose").unwrap();
    assert_eq!(
        (status.prompts, &*status.skipped[0]),
        (0, "prompts: the lists of the server together have more than 409600 bytes")
    );
    assert_eq!(tools(&plain_client(&hub, OLD).await).await, ["verbose__long", "well__t"]);
}

#[tokio::test]
async fn server_without_memory_for_its_lists_leaves_those_of_others_alone() {
    let town = TestServers::default();
    add_verbose_server(&town, "first", 300 << 10);
    add_verbose_server(&town, "second", 300 << 10);
    town.add_server("well", &echo_server(&["t"]), OLD);
    let limits = HubLimits { all_listing_bytes: 1 << 20, text_bytes: 1 << 20, ..quick() };
    let hub = town.hub_within(limits);
    within(hub.set_servers(vec![eager("first")])).await;
    until(|| hub.status_of("first").unwrap().tools == 1).await;
    within(hub.set_servers(vec![eager("first"), eager("second"), eager("well")])).await;
    until(|| !hub.status_of("second").unwrap().skipped.is_empty()).await;
    until(|| hub.status_of("well").unwrap().tools == 1).await;
    let second = hub.status_of("second").unwrap();
    assert!(
        second.tools == 0 && second.skipped[0].contains("memory for the lists of all servers"),
        "{second:?}"
    );
    assert_eq!(tools(&plain_client(&hub, OLD).await).await, ["first__long", "well__t"]);
    // What one gives back another gets.
    within(hub.set_servers(vec![eager("second"), eager("well")])).await;
    until(|| hub.status_of("second").unwrap().tools == 1).await;
}
