//! Access rules from end to end: a hub with two users of static tokens and one of an authorization server.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::auth_table::{IssuerFixture, RESOURCE};
use crate::bare_client::{HttpReply, post};
use crate::messages::{call, modern, parse_lines};
use crate::process::{RunningCommand, file, folder, run};

const ANN: &str = "ann-token-0123456789";
const BOB: &str = "bob-token-0123456789";

fn config(folder: &Path, issuer: &str) -> String {
    let own = env!("CARGO_BIN_EXE_trunkline");
    let server = |name: &str, builtin: &str| {
        let args = ["serve", "--stdio", "--no-config", "--builtin", builtin];
        format!("[servers.{name}]\ncommand = {own:?}\nargs = {args:?}\n")
    };
    let rules = [
        "name = \"ann\"\naction = \"allow\"\nprincipal = \"ann\"",
        "name = \"no clock for bob\"\naction = \"deny\"\nprincipal = \"bob\"\nservers = \"clock\"",
        "name = \"bob\"\naction = \"allow\"\nprincipal = \"bob\"",
        "name = \"speakers\"\naction = \"allow\"\nservers = \"voice\"\nscope = \"voice:speak\"",
    ];
    let rules: String = rules.iter().map(|rule| format!("[[access]]\n{rule}\n")).collect();
    let auth = format!(
        "[auth]\npublic_url = \"{RESOURCE}\"\ntokens = \"tokens\"\n[[auth.issuers]]\nissuer = \"{issuer}\"\n"
    );
    let text = format!("{}{}{auth}{rules}", server("voice", "echo"), server("clock", "time"));
    file(folder, "trunkline.toml", &text, 0o600)
}

fn send(address: SocketAddr, token: &str, method: &str, params: Value) -> HttpReply {
    post(address, &modern(1, method, params), &[("Authorization", &format!("Bearer {token}"))])
}

fn listed(address: SocketAddr, token: &str) -> Vec<String> {
    let reply = send(address, token, "tools/list", json!({})).json();
    let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn called(address: SocketAddr, token: &str, tool: &str, arguments: Value) -> HttpReply {
    send(address, token, "tools/call", call(tool, arguments))
}

#[test]
fn access_rules_decide_lists_calls_audit_lines_and_explanations() {
    let issuer = IssuerFixture::start();
    let folder = folder("access_rules");
    file(&folder, "tokens", &format!("ann {ANN}\nbob {BOB}\n"), 0o600);
    let config = config(&folder, &issuer.server.issuer());
    let log = folder.join("audit.jsonl");
    let args = ["--trust", "--config", &config, "--audit", log.to_str().unwrap()];
    let (running, address) = RunningCommand::serve("access_rules_served", &args);
    let (speaker, listener) = (
        issuer.token(&json!({ "scope": "mcp:use voice:speak" })),
        issuer.token(&json!({ "scope": "mcp:use" })),
    );
    let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
    for (token, voice, clock) in
        [(ANN, true, true), (BOB, true, false), (speaker.as_str(), true, false), (&listener, true, false)]
    {
        let tools = listed(address, token);
        assert_eq!((has(&tools, "voice__echo"), has(&tools, "clock__now")), (voice, clock), "{tools:?}");
    }
    let hi = || json!({ "message": "hi" });
    for token in [ANN, BOB, &speaker] {
        let reply = called(address, token, "voice__echo", hi()).json();
        assert_eq!(reply["result"]["content"][0]["text"], "hi", "{reply}");
    }
    let lacks = called(address, &listener, "voice__echo", hi());
    assert_eq!(lacks.status, 403, "{lacks:?}");
    let challenge = lacks.header("www-authenticate").unwrap();
    assert!(challenge.contains("insufficient_scope") && challenge.contains("voice:speak"), "{challenge}");
    // What is denied is answered like what does not exist.
    let denied = called(address, BOB, "clock__now", json!({}));
    let absent = called(address, BOB, "clock__non", json!({}));
    assert_eq!(denied.status, absent.status);
    assert_eq!(denied.body.replace("clock__now", "x"), absent.body.replace("clock__non", "x"));
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(![ANN, BOB, &speaker, &listener].iter().any(|token| written.contains(*token)), "{written}");
    let lines = parse_lines(&written);
    let called_by = |scopes: &str| {
        let found = |line: &&Value| line["scopes"] == scopes && line["method"] == "tools/call";
        lines.iter().find(found).unwrap_or_else(|| panic!("{written}"))
    };
    let (speaking, listening) = (called_by("mcp:use voice:speak"), called_by("mcp:use"));
    assert_eq!((&speaking["oauth_client"], &listening["oauth_client"]), (&json!("app"), &json!("app")));
    let credential = |line: &Value| line["credential"].as_str().unwrap().to_owned();
    assert_eq!(credential(speaking).len(), 16, "{speaking}");
    assert_ne!(credential(speaking), credential(listening), "of one user, but two tokens");
    assert!(lines[0].get("credential").is_none(), "the token of ann is her name: {}", lines[0]);
    let calls: Vec<_> = lines
        .iter()
        .filter(|line| line["method"] == "tools/call")
        .map(|line| line["rule"].as_str().unwrap_or("-").to_owned())
        .collect();
    assert_eq!(
        calls[..5],
        [
            "allowed by `ann`",
            "allowed by `bob`",
            "allowed by `speakers`",
            "needs the scope voice:speak for `speakers`",
            "denied by `no clock for bob`",
        ],
        "{lines:?}"
    );
    for (words, code, part) in [
        (&["ann", "clock__now"][..], 0, "ann"),
        (&["bob", "clock__now"], 1, "no clock for bob"),
        (&["cleo", "voice__echo", "--scope", "voice:speak"], 0, "speakers"),
        (&["cleo", "voice__echo", "--scope", "mcp:use"], 1, "voice:speak"),
    ] {
        let checked = run(&[&["access", "check"], words, &["--config", &config]].concat(), "");
        assert_eq!(checked.code, Some(code), "{words:?}: {checked:?}");
        let printed = format!("{}{}", checked.stdout, checked.stderr);
        assert!(printed.contains(part), "{words:?}: {checked:?}");
    }
}
