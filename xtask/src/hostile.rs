//! `cargo xtask hostile`: official clients list and call the healthy servers of a hub that has a server of every hostile kind beside
//! them. Memory and log of the hub stay small, and the memory is given back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::interop::copy_scripts;
use crate::run::{self, BackgroundProcess};
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, root};

/// The kinds of `interop/python/hostile_upstream.py` that talk over pipes.
const KINDS: &[&str] =
    &["mute", "flood", "pings", "many", "huge", "deep", "thief", "logs", "garbage", "malformed"];

/// How long the clients work, in seconds.
const SECONDS: usize = 600;

/// The most memory that the hub may use, in MiB: what `docs/limits.md` allows for messages and unread data is more.
const MAX_MEMORY: usize = 512;

/// The memory that the hub may keep in any case, in MiB: the lists of the hostile servers, with 10,000 tools and long texts.
const KEPT_MEMORY: usize = 160;

/// The longest log of the hub, in bytes.
const MAX_LOG: u64 = 1_000_000;

const END_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn command(mut args: Args) -> TaskResult {
    let seconds = args.number().unwrap_or(SECONDS);
    let is_release = args.flag("--release");
    args.finish()?;
    let tools = tools::install()?;
    copy_scripts(&tools)?;
    let hub = match is_release {
        true => fixture::build_release("trunkline-cli", "--bin", "trunkline")?,
        false => fixture::build_of("trunkline-cli", "trunkline")?,
    };
    run_for(seconds, &tools, &hub)
}

/// Runs all clients for some seconds.
pub(crate) fn run_for(seconds: usize, tools: &InstalledTools, hub: &Path) -> TaskResult {
    let folder = fixture::results_folder("hostile")?;
    let pings = fixture::free_address()?;
    let _pinging = {
        let mut command = run::command(&tools.python_v1);
        command.arg("-B").arg(upstream_script()).args(["ws-pings", &pings.port().to_string()]);
        BackgroundProcess::start(&mut command)?
    };
    let config = folder.join("mcp.json");
    fs::write(&config, json!({ "mcpServers": servers(tools, hub, pings.port()) }).to_string())?;
    let log = folder.join("hub.log");
    let running = start_hub(hub, &config, &folder, &log)?;
    let before = memory(running.id())?;
    let (most, outcome) = run_clients(tools, &running, seconds, &folder)?;
    // The hub gives memory back to the system every few seconds.
    std::thread::sleep(Duration::from_secs(20));
    let (after, written) = (memory(running.id())?, fs::metadata(&log)?.len());
    println!(
        "memory {before} MiB before, {most} MiB at most, {after} MiB 20 s after; log {written} bytes; {} kinds, {seconds} s",
        KINDS.len() + 1
    );
    running.stop(END_TIMEOUT)?;
    outcome?;
    require(most < MAX_MEMORY, "the hub used too much memory")?;
    require(after <= KEPT_MEMORY.max(most / 2), "the hub did not give its memory back")?;
    require(written < MAX_LOG, "the log of the hub is too long")
}

fn require(is_so: bool, problem: &str) -> TaskResult {
    if is_so { Ok(()) } else { Err(problem.into()) }
}

fn upstream_script() -> PathBuf {
    root().join("interop/python/hostile_upstream.py")
}

/// Describes two healthy servers and one of every hostile kind.
fn servers(tools: &InstalledTools, hub: &Path, pings: u16) -> Map<String, Value> {
    let mut servers = Map::new();
    for name in ["good-a", "good-b"] {
        let arguments = ["serve", "--stdio", "--no-config", "--builtin", "echo"];
        servers.insert(name.to_owned(), json!({ "command": hub, "args": arguments }));
    }
    for kind in KINDS {
        let entry = json!({ "command": tools.python_v1, "args": ["-B", upstream_script(), kind] });
        servers.insert((*kind).to_owned(), entry);
    }
    servers.insert("ws-pings".to_owned(), json!({ "url": format!("ws://127.0.0.1:{pings}/ws") }));
    servers
}

fn start_hub(hub: &Path, config: &Path, home: &Path, log: &Path) -> TaskResult<FixtureServer> {
    let output = File::create(log)?;
    let mut command = run::command(hub);
    command.env("HOME", home).env("XDG_STATE_HOME", home.join("state")).env_remove("XDG_RUNTIME_DIR");
    FixtureServer::start_by(|address| {
        command.args(["serve", "--trust", "--http", &address.to_string(), "--config"]).arg(config);
        command.stdout(std::process::Stdio::null()).stderr(output);
        command
    })
}

/// Runs all clients at one time; returns the most memory of the hub meanwhile, and whether every client was content.
fn run_clients(
    tools: &InstalledTools,
    hub: &FixtureServer,
    seconds: usize,
    folder: &Path,
) -> TaskResult<(usize, TaskResult)> {
    let python = root().join("interop/python/hostile_load.py");
    let node = tools.node_folder.join("hostile-load.mjs");
    let clients = [
        ("python-v1", &tools.python_v1, Some(&python)),
        ("python-v2", &tools.python_v2, Some(&python)),
        ("typescript", &tools.node, Some(&node)),
        ("rmcp", &fixture::build_rmcp("hostile-load")?, None),
    ];
    let mut working = Vec::new();
    for (name, program, script) in clients {
        let output = folder.join(format!("{name}.log"));
        let log = File::create(&output)?;
        let mut command = run::command(program);
        command.args(script).args([&hub.url("http", "/mcp"), &seconds.to_string()]);
        command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(log.try_clone()?).stderr(log);
        working.push((name, BackgroundProcess::start(&mut command)?, output));
    }
    let (mut most, mut outcome) = (0, Ok(()));
    let give_up = Instant::now() + Duration::from_secs(seconds as u64 + 300);
    while !working.is_empty() {
        std::thread::sleep(Duration::from_millis(200));
        most = most.max(memory(hub.id())?);
        let mut left = Vec::new();
        for (name, mut client, output) in working {
            match client.ended()? {
                Some(status) => {
                    let said = fs::read_to_string(&output)?;
                    println!("{name}: {}", said.trim_end().lines().last().unwrap_or_default());
                    if !status.success() {
                        outcome = Err(format!("{name} failed: see {}", output.display()).into());
                    }
                }
                None if Instant::now() > give_up => outcome = Err(format!("{name} does not end").into()),
                None => left.push((name, client, output)),
            }
        }
        working = left;
    }
    Ok((most, outcome))
}

/// Returns the resident memory of a process in MiB.
fn memory(process: u32) -> TaskResult<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory is reported")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? / 1024)
}
