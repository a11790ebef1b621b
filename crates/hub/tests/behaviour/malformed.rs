//! Servers with malformed lists and results: clients of every revision get all valid items, and lose only the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientCall};
use trunkline_hub::{Hub, HubLimits};
use trunkline_server::UpstreamItem;

use crate::schemas::assert_valid;
use crate::support::{
    NEW, OLD, ScriptReply, TestServers, eager, echo_server, plain_client, quick, script, until, within,
};
use crate::warnings::{collect_warnings, collected_warnings};

/// What a server lists that gets everything wrong, and one item of each kind right.
fn listed(method: &str) -> Option<Value> {
    let deep = (0..100).fold(json!({ "type": "object" }), |inner, _| json!({ "not": inner }));
    let schemas = [
        json!({}),
        json!(null),
        json!([]),
        json!([1]),
        json!("object"),
        json!(7),
        json!(true),
        json!(false),
        json!({ "type": "string" }),
        json!({ "type": ["object", "null"] }),
        json!({ "type": "object", "properties": [] }),
        json!({ "type": "object", "properties": "a" }),
        json!({ "type": "object", "properties": { "a": "string" } }),
        json!({ "type": "object", "properties": { "a": true } }),
        json!({ "type": "object", "required": "a" }),
        json!({ "type": "object", "required": [7] }),
        json!({ "type": "object", "$schema": 7 }),
        deep,
    ];
    let members = [
        ("title", json!(7)),
        ("description", json!({})),
        ("outputSchema", json!(7)),
        ("outputSchema", json!({ "type": "strin" })),
        ("outputSchema", json!({ "pattern": "(" })),
        ("outputSchema", json!({ "$ref": "#/nowhere" })),
        ("annotations", json!([])),
        ("annotations", json!({ "readOnlyHint": "yes", "title": 7, "lastModified": 7, "audience": 7 })),
        ("annotations", json!({ "lastModified": "yesterday", "priority": 2, "audience": ["robot"] })),
        ("icons", json!("i.png")),
        ("icons", json!([{ "theme": "blue" }, 7])),
        ("_meta", json!("x")),
        ("execution", json!(7)),
        ("mimeType", json!(7)),
        ("size", json!(-1)),
        ("arguments", json!("a")),
        ("arguments", json!([{}])),
        ("arguments", json!([{ "name": "a", "required": "yes" }])),
    ];
    let (key, name, good) = match method {
        "tools/list" => ("tools", "name", json!({ "name": "good", "inputSchema": { "type": "object" } })),
        "prompts/list" => ("prompts", "name", json!({ "name": "good" })),
        "resources/list" => ("resources", "uri", json!({ "uri": "evil:good", "name": "good" })),
        "resources/templates/list" => {
            ("resourceTemplates", "uriTemplate", json!({ "uriTemplate": "evil:good/{id}", "name": "good" }))
        }
        _ => return None,
    };
    let changed = |at: usize, key: &str, value: &Value| {
        let mut item = good.clone();
        item[name] = json!(format!("evil:{at}"));
        item[key] = value.clone();
        item
    };
    let schemas = schemas.iter().enumerate().map(|(at, schema)| changed(at, "inputSchema", schema));
    let members = members.iter().enumerate().map(|(at, (key, value))| changed(100 + at, key, value));
    let nameless =
        [json!(7), json!(null), json!({}), changed(200, name, &json!(7)), good.clone(), good.clone()];
    let items: Vec<Value> = schemas.chain(members).chain(nameless).collect();
    Some(json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", (key): items }))
}

fn opened(message: &Value) -> Option<Value> {
    let capabilities =
        json!({ "tools": { "listChanged": true }, "prompts": {}, "resources": {}, "completions": {} });
    Some(match message["method"].as_str()? {
        "initialize" => {
            json!({ "protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
            "serverInfo": { "name": "evil", "version": "1" } })
        }
        "server/discover" => json!({ "resultType": "complete", "supportedVersions": [NEW.as_str()],
            "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private" }),
        "prompts/list" => json!({ "prompts": [] }),
        _ => return None,
    })
}

/// A hub with a server that is well behind one that is not.
async fn hub(
    up: Revision,
    says: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
) -> (TestServers, Hub) {
    let town = TestServers::default();
    town.add_server("well", &echo_server(&["t"]), NEW);
    let (_, opener) = script(move |_, message| {
        says(message).or_else(|| opened(message)).map_or(ScriptReply::AsUsual, ScriptReply::Result)
    });
    town.add_script("evil", opener, up);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("evil"), eager("well")])).await;
    (town, hub)
}

async fn run(client: &Client, call: ClientCall) -> Value {
    within(client.run(call)).await.unwrap().decode().unwrap()
}

#[tokio::test]
async fn malformed_list_item_is_skipped_alone_in_every_revision() {
    for up in [OLD, NEW] {
        let before = (UpstreamItem::LeftOut.counted(), UpstreamItem::Repaired.counted());
        let (_town, hub) = hub(up, |message| listed(message["method"].as_str()?)).await;
        for revision in Revision::ALL {
            let client = plain_client(&hub, revision).await;
            for (method, key, definition, expected) in [
                ("tools/list", "tools", "ListToolsResult", &["evil__good", "well__t"][..]),
                ("prompts/list", "prompts", "ListPromptsResult", &["evil__good"]),
                ("resources/list", "resources", "ListResourcesResult", &["evil:good"]),
                (
                    "resources/templates/list",
                    "resourceTemplates",
                    "ListResourceTemplatesResult",
                    &["evil:good/{id}"],
                ),
            ] {
                let page = run(&client, ClientCall::other(method, json!({}))).await;
                assert_valid(revision, definition, &page);
                let text = page.to_string();
                for name in expected {
                    assert!(text.contains(&format!("\"{name}\"")), "{revision}: {method}: {name} in {text}");
                }
                assert!(page[key].as_array().unwrap().len() > 10, "{revision}: {method}: most are repaired");
            }
        }
        let status = hub.status_of("evil").unwrap();
        let has = |lines: &[String], line: &str| {
            assert!(lines.iter().any(|told| told.contains(line)), "{line}: {lines:?}");
        };
        has(&status.skipped, "tools: evil:8: `inputSchema.type` must be `object`");
        has(&status.skipped, "tools: evil:17: the value nests deeper than 60 levels");
        has(&status.skipped, "prompts: evil:116: `arguments[0].name` is missing");
        has(&status.skipped, "it is listed more than once");
        has(&status.repaired, "tools: evil:0: `inputSchema.type` must be `object`");
        has(&status.repaired, "resources: evil:108: `annotations.audience[0]` must be");
        assert!(status.skipped.len() + status.repaired.len() < 170, "{status:?}");
        assert!(UpstreamItem::LeftOut.counted() > before.0 && UpstreamItem::Repaired.counted() > before.1);
    }
}

#[tokio::test]
async fn malformed_result_fails_only_its_call_and_names_the_server() {
    for up in [OLD, NEW] {
        let (_town, hub) = hub(up, |message| {
            let result = match message["params"]["arguments"]["wrong"].as_str()? {
                "content" => json!({ "content": "text" }),
                "text" => json!({ "content": [{ "type": "text" }] }),
                "flag" => json!({ "content": [], "isError": "no" }),
                _ => json!({ "content": [{ "type": "hologram" }], "isError": null }),
            };
            (message["method"] == "tools/call").then_some(result)
        })
        .await;
        for revision in Revision::ALL {
            let client = plain_client(&hub, revision).await;
            for (wrong, expected) in [
                ("content", "`content` must be an array"),
                ("text", "`content[0].text` is missing"),
                ("flag", "`isError` must be true or false"),
            ] {
                let error =
                    within(client.call("evil__t", json!({ "wrong": wrong }))).await.unwrap_err().to_string();
                assert!(error.contains("upstream `evil`") && error.contains(expected), "{revision}: {error}");
            }
            let result = run(&client, ClientCall::tool("evil__t", json!({ "wrong": "kind" }))).await;
            assert_valid(revision, "CallToolResult", &result);
            assert!(result["content"][0]["text"].as_str().unwrap().contains("hologram"), "{result}");
            assert_eq!(within(client.call("well__t", json!({}))).await.unwrap().text(), "t");
        }
    }
}

#[tokio::test]
async fn long_texts_are_truncated_and_oversized_items_skipped() {
    let (_town, hub) = hub(OLD, |message| {
        let tool = |name: &str, description: String, schema: Value| {
            json!({ "name": name, "description": description, "inputSchema": schema })
        };
        let object = || json!({ "type": "object" });
        match (message["method"].as_str()?, message["params"]["cursor"].as_str()) {
            ("tools/list", None) => {
                let tool = tool("a", "é".repeat(1_900_000), object());
                Some(json!({ "tools": [tool], "nextCursor": "b" }))
            }
            ("tools/list", _) => {
                let large = json!({ "type": "object", "description": "x".repeat(2_000_000) });
                let tools = [tool("b", "x".repeat(1_000_000), object()), tool("c", String::new(), large)];
                Some(json!({ "tools": tools }))
            }
            _ => None,
        }
    })
    .await;
    // Its client reads messages of 4 MiB, and the two texts are more than that together.
    let client = plain_client(&hub, NEW).await;
    let tools = within(client.tools()).await.unwrap();
    let described: Vec<_> = tools.iter().map(|tool| (&*tool.name, tool.description.as_deref())).collect();
    let [(a, Some(first)), (b, Some(second)), .., ("well__t", _)] = described[..] else {
        panic!("{}", tools.len())
    };
    assert_eq!((a, b), ("evil__a", "evil__b"));
    let most = HubLimits::default().text_bytes;
    assert!(first.len() <= most && first.ends_with("é… (cut)"), "{}", first.len());
    assert!(second.len() == most && second.ends_with("x… (cut)"), "{}", second.len());
    let status = hub.status_of("evil").unwrap();
    assert_eq!(status.skipped, ["tools: c: it is too large"]);
    assert_eq!(
        status.repaired,
        ["tools: a: texts that are too long: 1", "tools: b: texts that are too long: 1"]
    );
}

#[tokio::test]
async fn repeatedly_malformed_list_is_logged_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let town = TestServers::default();
    let counted = asked.clone();
    let (evil, opener) = script(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            counted.fetch_add(1, Ordering::SeqCst);
            let tools: Vec<_> =
                (0..500).map(|n| json!({ "name": format!("t{n}"), "inputSchema": 7 })).collect();
            ScriptReply::Result(json!({ "tools": tools }))
        }
        _ => opened(message).map_or(ScriptReply::AsUsual, ScriptReply::Result),
    });
    town.add_script("evil", opener, OLD);
    let _collecting = collect_warnings();
    let hub = town.hub_within(quick());
    within(hub.set_servers(vec![eager("evil")])).await;
    for round in 2..12 {
        evil.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        until(|| asked.load(Ordering::SeqCst) >= round).await;
    }
    let lines = collected_warnings();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("evil") && lines[0].contains("500") && lines[0].len() < 1000, "{lines:?}");
    let left_out = hub.status_of("evil").unwrap().skipped;
    assert_eq!((left_out.len(), &*left_out[20]), (21, "tools: and 480 more"));
}

#[tokio::test]
async fn refused_list_is_logged_with_the_server_and_is_in_its_status() {
    let town = TestServers::default();
    let (_evil, opener) = script(move |_, message| match message["method"].as_str() {
        Some("tools/list") => ScriptReply::Error(json!({ "code": -32603, "message": "no list today" })),
        _ => opened(message).map_or(ScriptReply::AsUsual, ScriptReply::Result),
    });
    town.add_script("evil", opener, OLD);
    let _collecting = collect_warnings();
    let hub = town.hub_within(quick());
    within(hub.set_servers(vec![eager("evil")])).await;
    until(|| hub.status_of("evil").unwrap().skipped.len() == 1).await;
    let lines = collected_warnings();
    assert!(lines[0].contains("evil") && lines[0].contains("no list today"), "{lines:?}");
    let status = hub.status_of("evil").unwrap();
    assert!(status.skipped[0].contains("no list today"), "{:?}", status.skipped);
    assert!(status.capabilities.unwrap().tools.is_some());
}
