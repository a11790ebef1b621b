//! Described commands, run for real: git, curl, sqlite3 and python3.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

use std::future::poll_fn;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_commands::{CommandConfig, DescribedCommand, DescribedSet, Policy};
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::transport::{Channel as _, MemoryChannel};
use trunkline_server::{HostOptions, Server};

const DEADLINE: Duration = Duration::from_secs(60);

/// Fails loudly where a program is missing that the test is about.
#[expect(clippy::disallowed_methods, reason = "these programs are what is tested")]
fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = std::process::Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{program} cannot be run: {error}; install it, for example with `apt-get install {program}`")
    });
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn folder(test: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("described-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn server(folder: &Path, commands: &Value, rules: &[&str]) -> Server {
    let commands = commands.as_object().unwrap().iter().map(|(name, config)| {
        let config: CommandConfig = serde_json::from_value(config.clone()).unwrap();
        DescribedCommand::new(name, config, folder).unwrap()
    });
    let set = DescribedSet::new(commands.collect(), Policy::from_rules(rules).unwrap());
    set.add_to(Server::new("test"))
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|block| block.as_text()).unwrap_or_default()
}

#[tokio::test]
async fn described_git_command_runs_as_a_tool() {
    let folder = folder("git");
    run("git", &["init", "--quiet", "--initial-branch=main", "."], &folder);
    let commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--allow-empty", "-m"];
    for message in ["first", "second -x", "third"] {
        run("git", &[&commit[..], &[message]].concat(), &folder);
    }
    let server = server(
        &folder,
        &json!({
            "log": {
                "description": "Shows the last commits.",
                "argv": ["git", "log", "--format=%s", ["-n", "{count}"], "--grep={words}", "--end-of-options", "{branch}", "--"],
                "arguments": {
                    "count": { "type": "integer", "min": 1, "max": 50, "default": 10 },
                    "words": { "required": false },
                    "branch": { "default": "HEAD" },
                },
                "read_only": true,
            },
        }),
        &[],
    );
    let call = async |arguments: Value| server.call("log", arguments).await.unwrap();
    assert_eq!(text(&call(json!({ "count": 2 })).await), "third\nsecond -x\n");
    assert_eq!(text(&call(json!({ "words": "-x" })).await), "second -x\n");
    let unknown = call(json!({ "branch": "nowhere" })).await;
    assert!(unknown.is_error && text(&unknown).contains("nowhere"), "{unknown:?}");
    for refused in [json!({ "count": 51 }), json!({ "branch": "--output=/tmp/x" }), json!({ "count": "2" })] {
        assert!(call(refused.clone()).await.is_error, "{refused}");
    }
}

#[tokio::test]
async fn described_sqlite_command_returns_structured_json() {
    let folder = folder("sqlite");
    run(
        "sqlite3",
        &["shop.db", "create table item(name, price); insert into item values('tea', 3), ('cup', 5);"],
        &folder,
    );
    let server = server(
        &folder,
        &json!({
            "query": {
                "argv": ["sqlite3", "-safe", "-readonly", "-json", "shop.db", "{statement}"],
                "arguments": { "statement": { "program": true } },
                "output": "json",
            },
        }),
        &[],
    );
    let found =
        server.call("query", json!({ "statement": "select name from item where price > 3" })).await.unwrap();
    assert_eq!(found.structured.unwrap().as_str(), r#"[{"name":"cup"}]"#);
    for refused in ["delete from item", ".shell touch owned", "-cmd", "no sql"] {
        let result = server.call("query", json!({ "statement": refused })).await.unwrap();
        assert!(result.is_error, "{refused}: {result:?}");
    }
    assert!(!folder.join("owned").exists());
}

/// Answers one request over HTTP with its first line.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{line}",
                line.len()
            );
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn described_curl_command_runs_as_a_tool() {
    let base = echo();
    let server = server(
        &folder("curl"),
        &json!({
            "fetch": {
                "argv": ["curl", "--silent", "--show-error", "--fail", "--globoff", "--proto", "=http,https", "--max-time", "20", format!("{base}/{{path}}")],
                "arguments": { "path": { "pattern": "^[A-Za-z0-9/._-]*$" } },
            },
        }),
        &[],
    );
    let fetched = server.call("fetch", json!({ "path": "a/b" })).await.unwrap();
    assert_eq!(text(&fetched).trim_end(), "GET /a/b HTTP/1.1", "{fetched:?}");
    assert!(server.call("fetch", json!({ "path": "a b" })).await.unwrap().is_error);
}

#[tokio::test]
async fn script_arguments_are_passed_by_environment_or_file_never_in_the_text() {
    let python = "import json, os; a = json.load(open(os.environ['ARGUMENTS_FILE'])); print(json.dumps({'n': len(a['words']), 'last': a['words'][-1]}))";
    let folder = folder("script");
    let server = server(
        &folder,
        &json!({
            "greet": {
                "script": "printf 'Hello %s, %s\\n' \"$ARG_NAME\" \"${ARG_TITLE:-nobody}\"",
                "arguments": { "name": {}, "title": { "required": false } },
            },
            "count": {
                "script": python, "interpreter": ["python3", "-c"], "pass": "file", "output": "json",
                "arguments": { "words": { "repeated": true } },
            },
        }),
        &[],
    );
    for name in ["Ann", "$(touch owned)", "'; touch owned; '", "`touch owned`", "-n", "%s", "a\nb"] {
        let greeted = server.call("greet", json!({ "name": name })).await.unwrap();
        assert_eq!(text(&greeted), format!("Hello {name}, nobody\n"));
    }
    let words = json!({ "words": ["a", "\"; import os; os.system('touch owned')"] });
    let counted = server.call("count", words).await.unwrap();
    let counted: Value = serde_json::from_str(counted.structured.expect("JSON").as_str()).unwrap();
    assert_eq!(counted["n"], 2);
    assert!(!folder.join("owned").exists());
}

#[tokio::test]
async fn described_command_hidden_by_policy_cannot_be_called() {
    let commands = json!({ "a-read": { "argv": ["echo", "a"] }, "a-write": { "argv": ["echo", "b"] } });
    let server = server(&folder("policy"), &commands, &["allow *-read"]);
    assert_eq!(text(&server.call("a-read", json!({})).await.unwrap()), "a\n");
    let hidden = server.call("a-write", json!({})).await.unwrap_err().to_string();
    let unknown = server.call("a-wriet", json!({})).await.unwrap_err().to_string();
    assert_eq!(hidden.replace("a-write", "X"), unknown.replace("a-wriet", "X"));
}

/// A client that responds to input requests, in either era.
struct InputClient {
    channel: MemoryChannel,
}

impl InputClient {
    async fn send(&mut self, message: &Value) {
        self.channel.send(&message.to_string());
        tokio::time::timeout(DEADLINE, poll_fn(|cx| self.channel.poll_flush(cx))).await.unwrap().unwrap();
    }

    async fn receive(&mut self) -> Value {
        let message =
            tokio::time::timeout(DEADLINE, poll_fn(|cx| self.channel.poll_receive(cx))).await.unwrap();
        serde_json::from_slice(&message.unwrap().unwrap()).unwrap()
    }
}

fn answer(action: &str, confirm: bool) -> Value {
    if action == "accept" {
        json!({ "action": action, "content": { "confirm": confirm } })
    } else {
        json!({ "action": action })
    }
}

fn confirmed_server(folder: &Path) -> Server {
    let command = json!({
        "push": { "argv": ["touch", "{file}"], "arguments": { "file": {} }, "confirm": "Make {file}?", "destructive": true },
    });
    server(folder, &command, &[])
}

#[tokio::test]
async fn command_requires_confirmation_in_the_legacy_era() {
    for (action, confirm, runs) in
        [("accept", true, true), ("accept", false, false), ("decline", true, false), ("cancel", true, false)]
    {
        let folder = folder("confirm-legacy");
        let host = confirmed_server(&folder).host(HostOptions::default()).unwrap();
        let mut client = InputClient { channel: host.connect() };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" },
        });
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
        client.receive().await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let call = json!({ "name": "push", "arguments": { "file": "made" } });
        client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).await;
        let asked = client.receive().await;
        assert_eq!(
            (&asked["method"], &asked["params"]["message"]),
            (&json!("elicitation/create"), &json!("Make made?"))
        );
        assert!(!folder.join("made").exists(), "nothing runs before the answer");
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer(action, confirm) })).await;
        let result = client.receive().await["result"].clone();
        assert_eq!(
            (folder.join("made").exists(), result["isError"] == true),
            (runs, !runs),
            "{action} {confirm}: {result}"
        );
    }
}

#[tokio::test]
async fn command_requires_confirmation_in_the_modern_era() {
    let meta = |capabilities: Value| {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    };
    for (confirm, runs) in [(true, true), (false, false)] {
        let folder = folder("confirm-modern");
        let host = confirmed_server(&folder).host(HostOptions::default()).unwrap();
        let mut client = InputClient { channel: host.connect() };
        let params = json!({ "name": "push", "arguments": { "file": "made" }, "_meta": meta(json!({ "elicitation": { "form": {} } })) });
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
        let asked = client.receive().await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"]["confirm"]["params"]["message"], "Make made?", "{asked}");
        assert!(!folder.join("made").exists());
        let mut again = params.clone();
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({ "confirm": answer("accept", confirm) });
        client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": again })).await;
        let result = client.receive().await["result"].clone();
        assert_eq!((folder.join("made").exists(), result["isError"] == true), (runs, !runs), "{result}");
    }
    // A client without the capability cannot run the command.
    let folder = folder("confirm-modern");
    let host = confirmed_server(&folder).host(HostOptions::default()).unwrap();
    let mut client = InputClient { channel: host.connect() };
    let params = json!({ "name": "push", "arguments": { "file": "made" }, "_meta": meta(json!({})) });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert_eq!(client.receive().await["error"]["code"], -32021);
    assert!(!folder.join("made").exists());
}
