//! The hub as a library: the example, and tools that a program registers while clients are connected.

use futures_util::StreamExt as _;
use serde_json::json;
use trunkline_client::{ChangeEvent, ChangeFilter};
use trunkline_hub::Hub;
use trunkline_server::Tool;

use self::example::{register_tool, start_hub};
use crate::support::{
    NEW, OLD, TestServers, eager, echo_server, plain_client, say, serve_hub_over_http, tools, within,
};

#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../examples/hub.rs"]
mod example;

/// Serves a server over HTTP, and writes a file that names it.
async fn config_file(test: &str) -> (Hub, std::path::PathBuf) {
    let town = TestServers::default();
    town.add_server("up", &echo_server(&["t"]), NEW);
    let upstream = town.hub();
    within(upstream.set_servers(vec![eager("up")])).await;
    let url = serve_hub_over_http(&upstream).await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{test}-{}.json", std::process::id()));
    std::fs::write(&file, json!({ "mcpServers": { "far": { "url": url } } }).to_string()).unwrap();
    (upstream, file)
}

#[tokio::test]
async fn example_hub_serves_a_file_and_tools_registered_at_run_time() {
    let (_upstream, file) = config_file("example_hub").await;
    let (hub, own) = start_hub(file.to_str().unwrap()).await.unwrap();
    for revision in [OLD, NEW] {
        let client = plain_client(&hub, revision).await;
        let listed = tools(&client).await;
        assert!(listed.contains(&"far__up__t".to_owned()), "{listed:?}");
        assert!(!listed.contains(&"count".to_owned()), "{listed:?}");
        let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
        register_tool(&own).unwrap();
        assert_eq!(within(changes.next()).await.unwrap(), ChangeEvent::Tools);
        let all = within(client.tools()).await.unwrap();
        let tool = all.iter().find(|tool| tool.name == "count").unwrap();
        assert_eq!(tool.description.as_deref(), Some("Counts the characters of a text."));
        assert_eq!(tool.annotations.as_ref().unwrap().read_only, Some(true));
        assert!(tool.input_schema.as_str().contains("\"text\""), "{:?}", tool.input_schema);
        let called = within(client.call("count", json!({ "text": "four" }))).await.unwrap();
        assert_eq!(called.text(), "4");
        assert!(own.remove_tool("count"));
        assert_eq!(within(changes.next()).await.unwrap(), ChangeEvent::Tools);
        assert!(!tools(&client).await.contains(&"count".to_owned()));
    }
    own.add(Tool::new("hello").run(async || "hello")).unwrap();
    let client = plain_client(&hub, NEW).await;
    within(async {
        while !tools(&client).await.contains(&"hello".to_owned()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(say(&client, "hello").await, "hello");
    std::fs::remove_file(file).unwrap();
}
