//! `tools`, `prompts`, `resources`, `complete` and `info`: the same in both eras and over every transport.

use serde_json::{Value, json};

use super::{TRANSPORTS, TestPeer, ask, output};

#[test]
fn tools_print_as_signatures_over_every_transport() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let tools = output(&peer, way, &["tools"]);
        assert!(tools.contains("add(a: int, [b: int = 1]) -> "), "{way}: {tools}");
        assert!(tools.contains("\n    Adds two numbers.\n"), "{way}: one line of the description: {tools}");
        assert!(!tools.contains("The second is one"), "{way}: {tools}");
        assert!(tools.contains("table() -> {rows: object[]}\n"), "{way}: {tools}");
    }
}

#[test]
fn tool_details_show_its_schemas() {
    let peer = TestPeer::start();
    let shown = output(&peer, "modern", &["tools", "add", "--schema"]);
    for part in [
        "  description:\n    Adds two numbers.\n    The second is one",
        "  hints: read-only",
        "  input schema:\n    {\n",
    ] {
        assert!(shown.contains(part), "no `{part}` in\n{shown}");
    }
    assert!(!shown.contains("test_simple_text"), "{shown}");
    let unknown = ask(&peer, "modern", &["tools", "ad", "--schema"]);
    assert_eq!(unknown.code, Some(2));
    assert_eq!(unknown.stderr, "error: unknown tool `ad`\nhint: did you mean `add`?\n");
}

#[test]
fn tools_are_json_as_the_server_wrote_it_and_for_the_apis_of_models() {
    let peer = TestPeer::start();
    let json = |words: &[&str]| -> Value { serde_json::from_str(&output(&peer, "legacy", words)).unwrap() };
    let tools = json(&["tools", "add", "--json"]);
    assert_eq!(tools[0]["name"], "add");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["a"]));
    let anthropic = json(&["tools", "add", "--format", "anthropic"]);
    assert_eq!(anthropic[0]["input_schema"]["type"], "object");
    let openai = json(&["tools", "add", "--format", "openai"]);
    assert_eq!((&openai[0]["type"], &openai[0]["function"]["name"]), (&json!("function"), &json!("add")));
    let gemini = json(&["tools", "add", "--format", "gemini"]);
    assert!(gemini.to_string().contains("functionDeclarations"), "{gemini}");
}

#[test]
fn prompts_and_resources_are_listed() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let prompts = output(&peer, way, &["prompts"]);
        assert!(prompts.contains("test_prompt_with_arguments(arg1, arg2)\n    Repeats"), "{way}: {prompts}");
        let resources = output(&peer, way, &["resources"]);
        assert!(resources.starts_with("URI "), "{way}: {resources}");
        assert!(resources.contains("\nTEMPLATE "), "{way}: {resources}");
        assert!(resources.contains("test://template/{id}/data"), "{way}: {resources}");
    }
    let resources: Value = serde_json::from_str(&output(&peer, "modern", &["resources", "--json"])).unwrap();
    assert!(resources["resources"].as_array().unwrap().len() > 2, "{resources}");
    assert_eq!(resources["resourceTemplates"][0]["uriTemplate"], "test://template/{id}/data");
}

#[test]
fn arguments_are_completed() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let finished = ask(&peer, way, &["complete", "test_prompt_with_arguments", "arg1=t"]);
        assert_eq!(finished.code, Some(0), "{way}: {finished:?}");
        assert!(finished.stdout.lines().all(|line| line.starts_with('t')), "{way}: {finished:?}");
    }
    let nothing = ask(&peer, "modern", &["complete", "test_prompt_with_arguments"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

#[test]
fn info_shows_identity_and_connection_attempts() {
    let peer = TestPeer::start();
    for (way, revision, era, transport) in [
        ("modern", "2026-07-28", "modern", "streamable-http"),
        ("legacy", "2025-11-25", "legacy", "streamable-http"),
        ("sse", "2025-11-25", "legacy", "sse"),
        ("websocket", "2026-07-28", "modern", "websocket"),
        ("pipes", "2026-07-28", "modern", "stdio"),
    ] {
        let text = output(&peer, way, &["info"]);
        assert!(text.contains(&format!("revision      {revision} ({era})\n")), "{way}: {text}");
        let json: Value = serde_json::from_str(&output(&peer, way, &["info", "--json"])).unwrap();
        assert_eq!(json["name"], "everything", "{way}: {json}");
        assert_eq!((&json["era"], &json["transport"]), (&json!(era), &json!(transport)), "{way}");
        assert_eq!(json["capabilities"]["tools"]["listChanged"], true, "{way}: {json}");
    }
}

#[test]
fn every_revision_option_is_negotiated() {
    let peer = TestPeer::start();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let url = peer.url();
        let finished = crate::process::run(&["info", "--json", "--revision", revision, &url], "");
        let json: Value = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
        assert_eq!(json["protocolVersion"], revision);
    }
}
