use std::time::Duration;

use serde_json::{Value, json};
use trunkline_commands::{Policy, Program};
use trunkline_server::transport::process::RunLimits;

use crate::peer::{LegacyPeer, text};
use crate::support::{host, program, store};

async fn peer(program: &Program) -> LegacyPeer {
    LegacyPeer::legacy(&host(program), json!({})).await
}

#[tokio::test]
async fn every_argument_kind_reaches_the_program_unchanged() {
    let mut peer = peer(&program()).await;
    let arguments = json!({
        "input": "in put", "output": "out\nput", "rest": ["-x", "--", ""], "dry": true, "color": false, "verbose": 3,
        "form": "toml", "port": 1024, "ratio": -0.5, "strict": false, "tag": ["-t", "--tag", "@f"], "keys": ["a", "-b"],
        "size": [640, 480], "when": "--never", "user": "ann", "token_file": "/t", "quiet": false, "from_url": "x",
    });
    let result = peer.call("convert", arguments.clone()).await;
    let printed: Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(printed, arguments);
    let bare = peer.call("convert", json!({ "input": "i", "when": true })).await;
    let printed: Value = serde_json::from_str(&text(&bare)).unwrap();
    assert_eq!(printed["when"], "always");
}

#[tokio::test]
async fn invalid_arguments_are_rejected_before_anything_runs() {
    // A missing executable is reported when a command is run.
    let mut peer = peer(&program().executable("/nowhere/depot")).await;
    for (arguments, said) in [
        (json!({}), "input"),
        (json!({ "input": 7 }), "input"),
        (json!({ "input": "i", "port": 80 }), "port"),
        (json!({ "input": "i", "form": "xml" }), "form"),
        (json!({ "input": "i", "size": [1] }), "size"),
        (json!({ "input": "i", "user": "ann" }), "token"),
        (json!({ "input": "i", "quiet": true, "verbose": 1 }), "quiet"),
        (json!({ "input": "i", "from_url": "u", "from_file": "f" }), "from_"),
        (json!({ "input": "i", "serve": 1 }), "serve"),
        (json!({ "input": "a\u{0}b" }), "NUL"),
        (json!({ "input": "x".repeat(1 << 20) }), "1048576 bytes"),
    ] {
        let result = peer.call("convert", arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(said), "{said}: {result}");
        assert!(!text(&result).contains("nowhere"), "{result}");
    }
    let fits = peer.call("convert", json!({ "input": "i", "quiet": false, "verbose": 1 })).await;
    assert!(text(&fits).contains("/nowhere/depot"), "{fits}");
}

#[tokio::test]
async fn output_lines_are_progress_if_the_caller_requested_it() {
    let mut peer = peer(&program()).await;
    let arguments = json!({ "lines": 3, "pause_ms": 1 });
    let asked = json!({ "name": "debug_slow", "arguments": arguments, "_meta": { "progressToken": "p" } });
    let messages = peer.exchange("tools/call", asked).await;
    let told: Vec<(u64, &str)> = messages
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"])
        .map(|params| (params["progress"].as_u64().unwrap(), params["message"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [(1, "line 1"), (2, "line 2"), (3, "line 3")]);
    assert_eq!(text(&messages.last().unwrap()["result"]), "line 1\nline 2\nline 3\n");
    let unasked = json!({ "name": "debug_slow", "arguments": arguments });
    assert_eq!(peer.exchange("tools/call", unasked).await.len(), 1);
}

#[tokio::test]
async fn failed_command_returns_both_outputs_and_its_exit_code() {
    let mut peer = peer(&program()).await;
    let result = peer.call("debug_fail", json!({ "code": 3 })).await;
    assert_eq!(result["isError"], true);
    let blocks: Vec<&str> =
        result["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(
        blocks,
        ["half of the work\n", "the other half failed\n`depot debug fail` exited with code 3"]
    );
    assert_eq!(result["_meta"]["trunkline/exitCode"], 3);
}

#[tokio::test]
async fn endless_command_is_killed_at_its_timeout() {
    let limits = RunLimits {
        timeout: Some(Duration::from_millis(300)),
        kill_after: Duration::from_millis(200),
        ..RunLimits::default()
    };
    let mut peer = peer(&program().limits(limits)).await;
    let result = peer.call("debug_wait", json!({})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "waiting\n\n`depot debug wait` timed out after 300ms and was ended");
}

#[tokio::test]
async fn command_has_empty_stdin_and_a_minimal_environment() {
    let mut peer = peer(&program().inherit("CARGO_MANIFEST_DIR").env("GIVEN", "1")).await;
    assert_eq!(text(&peer.call("debug_read", json!({})).await), "0 bytes\n");
    let result = peer.call("debug_environment", json!({})).await;
    let text = text(&result);
    let names: Vec<&str> = text.lines().collect();
    for name in ["NO_COLOR", "TERM", "PATH", "CARGO_MANIFEST_DIR", "GIVEN"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for name in ["CARGO", "CARGO_PKG_NAME", "RUST_BACKTRACE"] {
        assert!(!names.contains(&name), "{name} in {names:?}");
    }
}

#[tokio::test]
async fn output_beyond_the_limit_is_truncated_with_a_note() {
    let limits = RunLimits { stdout_bytes: 1000, ..RunLimits::default() };
    let mut peer = peer(&program().limits(limits)).await;
    let result = peer.call("debug_flood", json!({ "bytes": 5_000_000 })).await;
    let (kept, mark) = result["content"][0]["text"].as_str().unwrap().split_at(1000);
    assert!(kept.starts_with("0123456789abcde\n0123"), "{kept:.40}");
    assert_eq!(mark, "\n[4999000 more bytes were omitted]");
    let link = &result["content"][1];
    assert_eq!(
        (&link["type"], &link["name"], &link["size"]),
        (&json!("resource_link"), &json!("output of depot debug flood"), &json!(5_000_000))
    );
    let read = peer.request("resources/read", json!({ "uri": link["uri"] })).await;
    let whole = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(whole.len() == 5_000_000 && whole.starts_with(kept), "{}", whole.len());
    let listed = peer.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]), "what one caller caused is not listed for others");
}

#[tokio::test]
async fn json_output_becomes_structured_content_with_the_json_option() {
    let (_store, service) = store();
    let program = program().env("DEPOT_SERVICE", service).json_output("--format", "json");
    let mut peer = peer(&program).await;
    peer.call("component_add", json!({ "component_name": "cart", "field": ["version=7"] })).await;
    let listed = peer.call("component_list", json!({})).await;
    assert_eq!(listed["structuredContent"], json!({ "result": [{ "name": "cart", "version": "7" }] }));
    assert_eq!(
        serde_json::from_str::<Value>(&text(&listed)).unwrap(),
        json!([{ "name": "cart", "version": "7" }])
    );
    let got = peer.call("component_get", json!({ "component_name": "cart" })).await;
    assert_eq!(got["structuredContent"], json!({ "name": "cart", "version": "7" }));
    let missing = peer.call("component_get", json!({ "component_name": "none" })).await;
    assert!(missing["isError"] == true && missing.get("structuredContent").is_none(), "{missing}");
}

#[tokio::test]
async fn exposed_parent_argument_is_accepted() {
    let (_store, service) = store();
    let program = program().env("DEPOT_SERVICE", service).expose("format").policy(Policy::new());
    let mut peer = peer(&program).await;
    let listed = peer.call("component_list", json!({ "format": "json" })).await;
    assert_eq!(text(&listed), "[]\n");
    let listed = peer.call("cloud_token_list", json!({})).await;
    assert_eq!(text(&listed), "NAME\tFIELDS\n(none)\n");
}

#[tokio::test]
async fn unreachable_backend_fails_only_the_call() {
    let mut peer = peer(&program().env("DEPOT_SERVICE", "http://127.0.0.1:9")).await;
    let failed = peer.call("component_list", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert!(text(&failed).contains("the store at http://127.0.0.1:9 cannot be reached"), "{failed}");
    assert_eq!(peer.call("version", json!({})).await["isError"], false);
}
