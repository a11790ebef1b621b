//! Servers that are programs: this test binary itself, started again as a server.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::Client;
use trunkline_client::transport::Command;
use trunkline_client::transport::process::{self, RunLimits};
use trunkline_config::{
    ConfigFile, ConfigVariables, ConnectionSharing, LocalProgram, ServerConfig, ServerLocation, ServerName,
    StartMode,
};
use trunkline_hub::{Hub, HubLimits, HubOptions, UpstreamConnectionState};
use trunkline_server::{Context, Server, Tool, stdio};

use crate::support::{NEW, OLD, plain_client, quick, say, tools, until, within};

const MODE: &str = "TRUNKLINE_TEST_MODE";

/// Not a test of anything: the server that the others start. What the harness prints before it is noise to a client.
#[test]
fn hub_child_process_serves_stdio_when_requested() {
    let Ok(mode) = std::env::var(MODE) else { return };
    // The harness may have begun a line of its own, which is noise to every client.
    writeln!(std::io::stdout()).unwrap();
    match mode.as_str() {
        "modern" => serve(),
        "legacy" => serve_old(),
        "mute" => std::io::stdin().lines().for_each(drop),
        "broken" => {
            writeln!(std::io::stderr(), "the token is missing").unwrap();
        }
        other => panic!("{other}"),
    }
}

fn serve() {
    let server = Server::new("child")
        .with(Tool::new("pid").run(async || std::process::id().to_string()))
        .with(Tool::new("hang").run(async |cx: Context| {
            cx.progress(1, 2);
            std::future::pending::<()>().await;
        }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.serve(stdio())).unwrap();
}

/// A server of the old days, which knows nothing but sessions.
fn serve_old() {
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (id, params) = (&message["id"], &message["params"]);
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "0" } }),
            "tools/list" => {
                let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": [tool("pid"), tool("hang")] })
            }
            "tools/call" if params["name"] == "pid" => {
                json!({ "content": [{ "type": "text", "text": std::process::id().to_string() }] })
            }
            "tools/call" => {
                let token = &params["_meta"]["progressToken"];
                let said = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": 1 } });
                writeln!(output, "{said}").unwrap();
                continue;
            }
            _ if id.is_null() => continue,
            _ => {
                let error = json!({ "code": -32601, "message": "unknown" });
                writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "error": error })).unwrap();
                continue;
            }
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": answer })).unwrap();
    }
}

fn program(name: &str, mode: &str) -> ServerConfig {
    let mut program = LocalProgram::new(std::env::current_exe().unwrap().to_str().unwrap());
    program.args = ["--exact", "programs::hub_child_process_serves_stdio_when_requested", "--nocapture"]
        .map(Into::into)
        .to_vec();
    program.env.insert(MODE.to_owned(), mode.into());
    ServerConfig::new(ServerName::parse(name).unwrap(), ServerLocation::Program(program))
}

fn hub_within(limits: HubLimits) -> Hub {
    Hub::new(HubOptions { limits, ..HubOptions::default() })
}

async fn pid(client: &Client, tool: &str) -> u32 {
    let said = say(client, tool).await;
    said.parse().unwrap_or_else(|_| panic!("{said}"))
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn kill(pid: u32) {
    let command = Command::new("kill").args(["-9".to_owned(), pid.to_string()]);
    let finished = within(process::run(&command, &RunLimits::default())).await.unwrap();
    assert!(finished.exit.success(), "{finished:?}");
}

#[tokio::test]
async fn killed_program_fails_its_call_and_the_next_call_works() {
    for mode in ["modern", "legacy"] {
        let hub = hub_within(quick());
        within(hub.set_servers(vec![program("a", mode), program("other", mode)])).await;
        let client = plain_client(&hub, NEW).await;
        let (first, other) = (pid(&client, "a__pid").await, pid(&client, "other__pid").await);
        let running = std::sync::Arc::new(tokio::sync::Notify::new());
        let (began, calling) = (running.clone(), client.clone());
        let call = tokio::spawn(async move {
            calling.call("a__hang", json!({})).progress(move |_| began.notify_one()).await
        });
        within(running.notified()).await;
        kill(first).await;
        let trunkline_client::Error::ErrorResponse(refused) = within(call).await.unwrap().unwrap_err() else {
            panic!()
        };
        assert!(refused.message.starts_with("upstream `a` was lost"), "{mode}: {}", refused.message);
        let data: Value = refused.data.unwrap().decode().unwrap();
        assert_eq!(data, json!({ "upstream": "a", "reason": "upstream_lost", "retryable": false }), "{mode}");
        let second = pid(&client, "a__pid").await;
        assert_ne!(first, second, "{mode}");
        assert_eq!(pid(&client, "other__pid").await, other, "{mode}: the other one was never touched");
        assert_eq!(hub.status_of("a").unwrap().starts, 2, "{mode}");
        within(hub.shutdown()).await;
        until(|| ![first, second, other].into_iter().any(is_alive)).await;
    }
}

#[tokio::test]
async fn no_process_is_left_after_remove_disconnect_replace_or_drop_of_the_hub() {
    let hub = hub_within(quick());
    let configs = ["removed", "disconnected", "replaced", "dropped"].map(|name| program(name, "legacy"));
    within(hub.set_servers(configs.to_vec())).await;
    let client = plain_client(&hub, OLD).await;
    let mut pids = Vec::new();
    for config in &configs {
        pids.push(pid(&client, &format!("{}__pid", config.name)).await);
    }
    assert!(pids.iter().copied().all(is_alive));
    within(hub.disconnect("disconnected")).await.unwrap();
    until(|| !is_alive(pids[1])).await;
    let [_, disconnected, _, dropped] = configs;
    within(hub.set_servers(vec![disconnected, program("replaced", "modern"), dropped])).await;
    until(|| !is_alive(pids[0]) && !is_alive(pids[2])).await;
    let replacement = pid(&client, "replaced__pid").await;
    assert!(is_alive(pids[3]) && is_alive(replacement));
    assert_eq!(pid(&client, "dropped__pid").await, pids[3], "it was never touched");
    drop((client, hub));
    until(|| !is_alive(pids[3]) && !is_alive(replacement)).await;
}

#[tokio::test]
async fn idle_program_is_stopped_and_restarted_for_the_next_call() {
    let hub = hub_within(quick());
    let mut config = program("a", "legacy");
    config.idle = Some(Duration::from_millis(1));
    within(hub.set_servers(vec![config])).await;
    let client = plain_client(&hub, NEW).await;
    let first = pid(&client, "a__pid").await;
    until(|| !is_alive(first)).await;
    assert_eq!(tools(&client).await, ["a__hang", "a__pid"]);
    assert_ne!(pid(&client, "a__pid").await, first);
}

#[tokio::test]
async fn per_call_program_exits_with_its_call() {
    let hub = hub_within(quick());
    let mut config = program("a", "legacy");
    config.sharing = ConnectionSharing::Call;
    within(hub.set_servers(vec![config])).await;
    let client = plain_client(&hub, NEW).await;
    let mut pids = Vec::new();
    for _ in 0..3 {
        pids.push(pid(&client, "a__pid").await);
    }
    pids.dedup();
    assert_eq!(pids.len(), 3);
    until(|| !pids.iter().copied().any(is_alive)).await;
}

#[tokio::test]
async fn program_that_fails_to_start_reports_its_last_stderr_lines() {
    let later = Duration::from_secs(600);
    let hub = hub_within(HubLimits { restart_delay: later, max_restart_delay: later, ..quick() });
    let nowhere = ServerConfig::new(
        ServerName::parse("nowhere").unwrap(),
        ServerLocation::Program(LocalProgram::new("trunkline-test-no-such-program")),
    );
    let mut broken = program("broken", "broken");
    broken.start = StartMode::Eager;
    within(hub.set_servers(vec![broken, nowhere, program("well", "legacy")])).await;
    let client = plain_client(&hub, OLD).await;
    assert_eq!(tools(&client).await, ["well__hang", "well__pid"]);
    for (name, words) in [("broken", "the token is missing"), ("nowhere", "trunkline-test-no-such-program")] {
        let status = hub.status_of(name).unwrap();
        assert_eq!(status.state, UpstreamConnectionState::Failed, "{name}");
        let reason = status.reason.unwrap();
        assert!(reason.contains(words), "{name}: {reason}");
    }
}

#[tokio::test]
async fn program_aborted_while_starting_leaves_no_process() {
    let hub = hub_within(quick());
    for _ in 0..5 {
        let mut config = program("mute", "mute");
        config.start = StartMode::Eager;
        let starting = {
            let hub = hub.clone();
            tokio::spawn(async move { hub.set_servers(vec![config]).await })
        };
        until(|| {
            hub.status_of("mute").is_ok_and(|status| status.state == UpstreamConnectionState::Connecting)
        })
        .await;
        within(hub.set_servers(Vec::new())).await;
        assert_eq!(within(starting).await.unwrap().failed.len(), 1);
    }
    // Nothing here knows its number, but it has our name and its own environment.
    until(|| !mutes_are_alive()).await;
}

fn mutes_are_alive() -> bool {
    let ours = format!("{MODE}=mute").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    environments.any(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == ours))
}

#[tokio::test]
async fn errors_for_callers_omit_variable_values_and_program_output() {
    const FILE: &str = r#"{ "mcpServers": { "leaky": {
        "command": "sh", "args": ["-c", "echo said-by-the-program >&2; exit 3", "${TOKEN}"]
    } } }"#;
    let variables = ConfigVariables::fixed([("TOKEN", "canary")]);
    let file = ConfigFile::parse("mcp.json", FILE, variables).unwrap();
    let hub = hub_within(quick());
    within(hub.set_servers(file.servers().unwrap())).await;
    let client = plain_client(&hub, NEW).await;
    let refused = within(client.call("leaky__anything", json!({}))).await.unwrap_err().to_string();
    within(hub.connect("leaky")).await.unwrap_err();
    let status = hub.status_of("leaky").unwrap().reason.unwrap();
    assert!(status.contains("said-by-the-program") && status.contains("${TOKEN}"), "{status}");
    for told in [&status, &refused] {
        assert!(!told.contains("canary"), "{told}");
    }
    assert!(!refused.contains("said-by-the-program"), "{refused}");
}
