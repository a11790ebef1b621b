//! What a handler knows of its caller, for legacy and modern callers over every transport: one table.

use serde::Serialize;
use serde_json::{Value, json};
use trunkline_server::{Context, EnvPolicy, Host, HostOptions, Json, Secret, Server, Tool, ToolError};

use crate::support::{Way, Ways};

/// A variable that every process has, so that it need not be set for the test.
const VARIABLE: &str = "PATH";

fn value() -> String {
    std::env::var(VARIABLE).unwrap()
}

#[derive(Serialize, schemars::JsonSchema)]
struct Seen {
    has_session: bool,
    client: Option<String>,
    revision: String,
    sampling: bool,
    content_types: Vec<String>,
    variable: bool,
    hidden: bool,
    roots: Option<Vec<String>>,
    primary: Option<String>,
    within: Option<bool>,
    outside: Option<bool>,
    count: u32,
    caller: Value,
}

async fn look(cx: Context) -> Result<Json<Seen>, ToolError> {
    let roots = cx.roots().await.ok();
    let count = cx.state::<u32>(None)?.update(|count| {
        *count += 1;
        *count
    });
    Ok(Json(Seen {
        has_session: cx.session_id().is_some(),
        client: cx.client().map(|client| client.name),
        revision: cx.revision().to_string(),
        sampling: cx.capabilities().sampling(),
        content_types: cx.content_types().iter().map(ToString::to_string).collect(),
        variable: cx.env(VARIABLE) == Some(Secret::new(value())),
        hidden: cx.env("HOME").is_none(),
        roots: roots.map(|roots| roots.into_iter().map(|root| root.uri).collect()),
        primary: cx.primary_root().await.ok().flatten().map(|root| root.uri),
        within: cx.in_roots("/usr/trunkline/../new-file").await.ok(),
        outside: cx.in_roots("/usr/../etc/passwd").await.ok(),
        count,
        caller: serde_json::to_value(cx.caller()).unwrap_or_default(),
    }))
}

fn host() -> Host {
    let names = vec![VARIABLE.to_owned()];
    let env = EnvPolicy { from_process: names.clone(), from_headers: names };
    let server = Server::new("s").with(Tool::new("look").run(look));
    server.host(HostOptions { env, ..HostOptions::default() }).unwrap()
}

async fn ways(capabilities: Value, roots: Value) -> Vec<Way> {
    let headers = vec![("x-env-path", value()), ("x-env-home", "/nowhere".to_owned())];
    Ways { capabilities, roots, headers }.open(&host()).await
}

#[tokio::test(start_paused = true)]
async fn a_handler_knows_the_same_of_every_caller_whatever_the_era_and_the_transport() {
    let roots = json!([{ "uri": "file:///usr", "name": "main" }, { "uri": "file:///tmp/other" }]);
    for mut way in ways(json!({ "roots": {}, "sampling": {} }), roots).await {
        let (name, is_legacy) = (way.name, way.is_legacy);
        for call in 1..=3 {
            let mut seen = way.structured("look", &json!({})).await;
            let caller = seen["caller"].take();
            assert_eq!(caller["env"], json!([VARIABLE]), "{name}: names only");
            assert!(!caller.to_string().contains(&value()), "{name}");
            let expected = json!({
                "has_session": is_legacy,
                "client": "test",
                "revision": if is_legacy { "2025-11-25" } else { "2026-07-28" },
                "sampling": true,
                "content_types": ["text", "image", "resource", "audio", "resource_link"],
                "variable": true,
                "hidden": true,
                "roots": ["file:///usr", "file:///tmp/other"],
                "primary": "file:///usr",
                "within": true,
                "outside": false,
                // A modern caller that brings no handle begins anew.
                "count": if is_legacy { call } else { 1 },
                "caller": null,
            });
            assert_eq!(seen, expected, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_does_not_have_is_absent_and_no_failure() {
    let ways = Ways { capabilities: json!({}), ..Ways::default() }.open(&host()).await;
    for mut way in ways {
        let seen = way.structured("look", &json!({})).await;
        let name = way.name;
        assert_eq!(seen["sampling"], false, "{name}");
        // Over a channel the variable is the process's; over HTTP nobody sent it.
        assert_eq!(seen["variable"], name.ends_with("channel"), "{name}");
        for absent in ["roots", "primary", "within", "outside"] {
            assert_eq!(seen[absent], Value::Null, "{name}: {absent}");
        }
    }
}

#[tokio::test]
async fn a_call_without_a_transport_has_a_context_too() {
    let server = Server::new("s").with(Tool::new("look").run(look));
    let seen = server.call("look", json!({})).await.unwrap().structured.unwrap();
    let seen: Value = serde_json::from_str(seen.as_str()).unwrap();
    assert_eq!((&seen["variable"], &seen["roots"], &seen["count"]), (&json!(false), &Value::Null, &json!(1)));
}
