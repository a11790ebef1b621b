//! Results of a modern server, for clients of older revisions.

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientCall};
use trunkline_hub::Hub;

use crate::support::{NEW, ScriptReply, TestServers, eager, plain_client, script, within};

use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// A hub in front of a modern server that lists one tool, and returns this result for its calls.
async fn hub(tool: Value, result: Value) -> (TestServers, Hub) {
    let town = TestServers::default();
    let (_, opener) = script(move |_, message| match message["method"].as_str() {
        Some("tools/list") => {
            ScriptReply::Result(json!({ "resultType": "complete", "tools": [tool], "ttlMs": 0,
            "cacheScope": "private" }))
        }
        Some("tools/call") => ScriptReply::Result(result.clone()),
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, NEW);
    let hub = town.hub();
    within(hub.set_servers(vec![eager("a")])).await;
    (town, hub)
}

async fn run(client: &Client, call: ClientCall) -> Value {
    within(client.run(call)).await.unwrap().decode().unwrap()
}

fn plain_tool() -> Value {
    json!({ "name": "t", "inputSchema": { "type": "object" } })
}

/// Returns what a client of each revision gets of a block.
async fn seen(block: Value) -> Vec<(Revision, Value)> {
    let (_town, hub) = hub(plain_tool(), json!({ "resultType": "complete", "content": [block] })).await;
    let mut seen = Vec::new();
    for revision in Revision::ALL {
        let client = plain_client(&hub, revision).await;
        let result = run(&client, ClientCall::tool("a__t", json!({}))).await;
        seen.push((revision, result["content"][0].clone()));
    }
    seen
}

#[tokio::test]
async fn resource_links_become_text_for_revisions_without_them() {
    let link = json!({ "type": "resource_link", "uri": "x:y", "name": "the book", "description": "A book." });
    for (revision, block) in seen(link.clone()).await {
        if revision >= V2025_06_18 {
            assert_eq!(block, link, "{revision}");
        } else {
            assert_eq!(block["type"], "text", "{revision}: {block}");
            let text = block["text"].as_str().unwrap();
            assert!(text.contains("the book") && text.contains("x:y") && text.contains("A book."), "{text}");
        }
    }
}

#[tokio::test]
async fn audio_becomes_a_resource_or_text_for_revisions_without_it() {
    let sound = json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" });
    for (revision, block) in seen(sound.clone()).await {
        if revision >= V2025_03_26 {
            assert_eq!(block, sound, "{revision}");
        } else {
            assert!(["resource", "text"].contains(&block["type"].as_str().unwrap()), "{block}");
        }
    }
}

#[tokio::test]
async fn content_meta_is_removed_for_revisions_without_it() {
    let block = json!({ "type": "text", "text": "t", "_meta": { "x.example/y": 1 },
        "annotations": { "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" } });
    for (revision, block) in seen(block).await {
        let is_known = revision >= V2025_06_18;
        assert_eq!(block.get("_meta").is_some(), is_known, "{revision}: {block}");
        assert_eq!(block["annotations"].get("lastModified").is_some(), is_known, "{revision}: {block}");
        assert_eq!(block["annotations"]["priority"], 0.5, "{revision}: {block}");
    }
}

#[tokio::test]
async fn structured_content_is_wrapped_or_becomes_text() {
    for (value, is_object) in [(json!([1, 2]), false), (json!({ "n": 1 }), true), (json!("s"), false)] {
        let result = json!({ "resultType": "complete", "content": [], "structuredContent": value });
        let (_town, hub) = hub(plain_tool(), result).await;
        for revision in Revision::ALL {
            let client = plain_client(&hub, revision).await;
            let got = run(&client, ClientCall::tool("a__t", json!({}))).await;
            let wrapped = if is_object { value.clone() } else { json!({ "result": value }) };
            let expected = match revision {
                V2024_11_05 | V2025_03_26 => None,
                V2025_06_18 | V2025_11_25 => Some(&wrapped),
                V2026_07_28 => Some(&value),
            };
            assert_eq!(got.get("structuredContent"), expected, "{revision}: {got}");
            if revision < V2025_06_18 {
                let text = got["content"][0]["text"].as_str().unwrap_or_default();
                let said: Value = serde_json::from_str(text).unwrap_or_default();
                assert!(said == value || said == wrapped, "{revision}: it is said as text: {got}");
            }
        }
    }
}

#[tokio::test]
async fn tool_definition_is_adapted_to_the_revision_of_the_client() {
    let tool = json!({
        "name": "t", "title": "The tool", "description": "Does it.",
        "icons": [{ "src": "https://x.example/i.png" }],
        "inputSchema": { "type": "object", "properties": { "a": { "type": "integer" } } },
        "outputSchema": { "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array",
            "items": { "$ref": "#/$defs/n" }, "$defs": { "n": { "type": "number" } } },
        "annotations": { "readOnlyHint": true },
        "_meta": { "x.example/y": 1 },
    });
    let (_town, hub) = hub(tool.clone(), json!({ "content": [] })).await;
    for revision in Revision::ALL {
        let client = plain_client(&hub, revision).await;
        let listed = run(&client, ClientCall::other("tools/list", json!({}))).await;
        let got = &listed["tools"][0];
        assert_eq!(got["name"], "a__t");
        assert_eq!((&got["description"], &got["inputSchema"]), (&tool["description"], &tool["inputSchema"]));
        assert_eq!(got.get("title").is_some(), revision >= V2025_06_18, "{revision}: {got}");
        assert_eq!(got.get("icons").is_some(), revision >= V2025_11_25, "{revision}: {got}");
        assert_eq!(got.get("_meta").is_some(), revision >= V2025_06_18, "{revision}: {got}");
        let annotations = got.get("annotations");
        assert_eq!(annotations.is_some(), revision >= V2025_03_26, "{revision}: {got}");
        if revision == V2025_03_26 {
            assert_eq!(annotations.unwrap()["title"], "The tool");
        }
        let schema = got.get("outputSchema");
        match revision {
            V2024_11_05 | V2025_03_26 => assert_eq!(schema, None, "{revision}"),
            V2025_06_18 | V2025_11_25 => {
                let schema = schema.unwrap();
                assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["result"])));
                assert_eq!(schema["properties"]["result"]["items"]["$ref"], "#/properties/result/$defs/n");
            }
            V2026_07_28 => assert_eq!(schema, tool.get("outputSchema")),
        }
        // Members of the newest revision are left out for every older one.
        for key in ["resultType", "ttlMs", "cacheScope"] {
            assert_eq!(listed.get(key).is_some(), revision == V2026_07_28, "{revision}: {listed}");
        }
    }
}

#[tokio::test]
async fn result_meta_is_forwarded_except_hop_by_hop_members() {
    let meta =
        json!({ "x.example/y": 1, "io.modelcontextprotocol/serverInfo": { "name": "far", "version": "1" } });
    let result =
        json!({ "resultType": "complete", "content": [], "_meta": meta, "vendor": { "kept": [1.50] } });
    let (_town, hub) = hub(plain_tool(), result).await;
    for revision in Revision::ALL {
        let client = plain_client(&hub, revision).await;
        let got = run(&client, ClientCall::tool("a__t", json!({}))).await;
        assert_eq!(got["_meta"]["x.example/y"], 1, "{revision}: {got}");
        let named = got["_meta"].get("io.modelcontextprotocol/serverInfo").map(|info| &info["name"]);
        let expected = (revision == V2026_07_28).then(|| json!("trunkline"));
        assert_eq!(named, expected.as_ref(), "{revision}: {got}");
        assert_eq!(got["vendor"], json!({ "kept": [1.50] }), "{revision}: {got}");
    }
}

#[tokio::test]
async fn request_meta_is_forwarded_except_hop_by_hop_members() {
    for up in Revision::ALL {
        let town = TestServers::default();
        let (heard, opener) = script(|_, _| ScriptReply::AsUsual);
        town.add_script("a", opener, up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        for down in [V2025_11_25, V2026_07_28] {
            let client = plain_client(&hub, down).await;
            let call = ClientCall::tool("a__t", json!({ "z": 1, "a": [1.0, 1e3] }))
                .meta("traceparent", json!("00-1-2-01").into())
                .meta("x.example/y", json!({ "b": 1 }).into());
            within(client.run(call)).await.unwrap();
            let sent = heard.of("tools/call").pop().unwrap();
            let meta = &sent["params"]["_meta"];
            assert_eq!(meta["traceparent"], "00-1-2-01", "{down} to {up}: {sent}");
            assert_eq!(meta["x.example/y"], json!({ "b": 1 }), "{down} to {up}: {sent}");
            let version = meta.get("io.modelcontextprotocol/protocolVersion");
            let expected = (up == V2026_07_28).then(|| json!(up.as_str()));
            assert_eq!(version, expected.as_ref(), "{down} to {up}: {sent}");
            assert_eq!(sent["params"]["arguments"], json!({ "z": 1, "a": [1.0, 1e3] }), "{down} to {up}");
        }
    }
}

#[tokio::test]
async fn completion_context_is_sent_only_to_revisions_with_it() {
    for up in Revision::ALL {
        let town = TestServers::default();
        let (heard, opener) = script(|_, message| match message["method"].as_str() {
            Some("prompts/list") => {
                ScriptReply::Result(json!({ "prompts": [{ "name": "p", "arguments": [{ "name": "x" }] }] }))
            }
            Some("completion/complete") => ScriptReply::Result(json!({ "completion": { "values": ["v"] } })),
            Some("initialize") => {
                ScriptReply::Result(json!({ "protocolVersion": message["params"]["protocolVersion"],
                "serverInfo": { "name": "s", "version": "1" }, "capabilities": { "prompts": {}, "completions": {} } }))
            }
            Some("server/discover") => ScriptReply::Result(json!({ "resultType": "complete",
                "supportedVersions": [NEW.as_str()], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "prompts": {}, "completions": {} } })),
            _ => ScriptReply::AsUsual,
        });
        town.add_script("a", opener, up);
        let hub = town.hub();
        within(hub.set_servers(vec![eager("a")])).await;
        let client = plain_client(&hub, NEW).await;
        let completed = run(
            &client,
            ClientCall::other(
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "a__p" },
                    "argument": { "name": "x", "value": "" }, "context": { "arguments": { "y": "1" } } }),
            ),
        )
        .await;
        assert_eq!(completed["completion"]["values"], json!(["v"]), "{up}");
        let sent = heard.of("completion/complete").pop().unwrap();
        assert_eq!(sent["params"]["ref"]["name"], "p");
        assert_eq!(sent["params"].get("context").is_some(), up >= V2025_06_18, "{up}: {sent}");
    }
}
