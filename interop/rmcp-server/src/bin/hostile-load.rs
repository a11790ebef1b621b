//! A client on rmcp in front of a hub with hostile servers: it lists and uses the healthy ones, again and again.
//!
//! ```text
//! hostile-load URL SECONDS
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use rmcp::transport::StreamableHttpClientTransport;

const HEALTHY: [&str; 2] = ["good-a__echo", "good-b__echo"];

const RESOURCE_TEXTS: [(&str, &str); 2] =
    [("menu://today", "Apple cake, carrot cake."), ("recipe://apple", "Bake the apple for an hour.")];

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().context("URL is missing")?;
    let seconds = words.next().context("SECONDS is missing")?.parse()?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut rounds, mut calls, mut slowest) = (0_u32, 0, Duration::ZERO);
    while Instant::now() < end {
        let began = Instant::now();
        calls += once(&url, rounds).await.with_context(|| format!("round {rounds}"))?;
        slowest = slowest.max(began.elapsed());
        rounds += 1;
    }
    println!("{rounds} rounds, {calls} calls of healthy servers, slowest round {:.1} s", slowest.as_secs_f32());
    Ok(())
}

/// Connects, lists all pages and calls the healthy servers; returns the number of calls.
async fn once(url: &str, round: u32) -> anyhow::Result<u32> {
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await?;
    // The SDK reads every item into its types, so that one malformed tool would fail the list.
    let tools = client.list_all_tools().await?;
    let resources = client.list_all_resources().await?;
    client.list_all_resource_templates().await?;
    let prompts = client.list_all_prompts().await?;
    ensure!(resources.iter().any(|resource| resource.uri == "menu://today"), "the menu is not listed");
    ensure!(prompts.iter().any(|prompt| prompt.name == "shop__toast"), "the prompt is not listed");
    for (uri, expected) in RESOURCE_TEXTS {
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        ensure!(format!("{read:?}").contains(expected), "{uri}: {read:?}");
    }
    for name in HEALTHY {
        ensure!(tools.iter().any(|tool| tool.name == name), "not listed: {name}");
    }
    let mut calls = 0;
    for at in 0..20 {
        for name in HEALTHY {
            let message = format!("{round}/{at}");
            let arguments = serde_json::Map::from_iter([("message".to_owned(), message.clone().into())]);
            let result = client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
            let text = result.content.first().and_then(|content| content.as_text());
            ensure!(text.is_some_and(|text| text.text == message), "{name}: {result:?}");
            calls += 1;
        }
    }
    client.cancel().await?;
    Ok(calls)
}
