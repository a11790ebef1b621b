//! `cargo xtask hostile`: official clients list and use the healthy servers of a hub, first alone and then with a server of every
//! hostile kind beside them. Memory and log of the hub stay small, and the memory is given back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::interop::copy_scripts;
use crate::run::{self, BackgroundProcess};
use crate::table::TextTable;
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, root};

/// The kinds of `interop/python/hostile_upstream.py` that talk over pipes.
const KINDS: &[&str] =
    &["mute", "flood", "pings", "many", "huge", "deep", "thief", "logs", "garbage", "malformed"];

/// The kinds that are also there over HTTP.
const HTTP_KINDS: &[&str] = &["mute", "flood", "many", "garbage", "malformed"];

/// How long the clients work beside hostile servers, in seconds.
const SECONDS: usize = 600;

/// The clients work for this part of the time without hostile servers first.
const CONTROL_PART: usize = 5;

/// The most memory that the hub may use, in MiB: what `docs/limits.md` allows for messages and unread data is more.
const MAX_MEMORY: usize = 512;

/// The memory that the hub may have grown by in the end, in MiB, when the hostile servers are gone.
const MAX_GROWTH: usize = 48;

/// The longest log of the hub, in bytes.
const MAX_LOG: u64 = 1_000_000;

/// The hub gives memory back to the system every few seconds.
const GIVE_BACK: Duration = Duration::from_secs(12);

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
    let bed = HostileBed::build(tools, hub)?;
    let running = bed.start_hub()?;
    let alone = bed.run_clients(&running, seconds.div_ceil(CONTROL_PART), "alone")?;
    let before = memory(running.id())?;
    let _http = bed.add_hostile_servers()?;
    let beside = bed.run_clients(&running, seconds, "hostile")?;
    std::thread::sleep(GIVE_BACK);
    let idle = memory(running.id())?;
    bed.write_config(&bed.healthy_servers())?;
    std::thread::sleep(GIVE_BACK);
    let (after, written) = (memory(running.id())?, fs::metadata(bed.log())?.len());
    print!("{}", comparison(&alone, &beside).render());
    println!(
        "memory {before} MiB before the hostile servers, {} MiB at most, {idle} MiB {} s after the calls, {after} MiB without the \
         hostile servers; log {written} bytes; {} hostile servers, {seconds} s",
        beside.most_memory,
        GIVE_BACK.as_secs(),
        KINDS.len() + HTTP_KINDS.len() + 1
    );
    running.stop(END_TIMEOUT)?;
    alone.outcome?;
    beside.outcome?;
    require(beside.most_memory < MAX_MEMORY, "the hub used too much memory")?;
    require(after <= before + MAX_GROWTH, "the hub did not give its memory back")?;
    require(written < MAX_LOG, "the log of the hub is too long")
}

fn require(is_so: bool, problem: &str) -> TaskResult {
    if is_so { Ok(()) } else { Err(problem.into()) }
}

/// The programs of a run, and its folder.
struct HostileBed<'a> {
    tools: &'a InstalledTools,
    hub: &'a Path,
    shop: PathBuf,
    rmcp: PathBuf,
    folder: PathBuf,
    ports: HostilePorts,
}

/// Where the hostile servers listen that are not programs of the hub.
struct HostilePorts {
    pings: u16,
    http: u16,
}

/// The result of running all clients once.
struct LoadRun {
    seconds: usize,
    /// The last line that each client printed.
    reports: Vec<(&'static str, String)>,
    /// The most memory of the hub meanwhile, in MiB.
    most_memory: usize,
    outcome: TaskResult,
}

impl<'a> HostileBed<'a> {
    /// Builds all programs: nothing is compiled while the clients work.
    fn build(tools: &'a InstalledTools, hub: &'a Path) -> TaskResult<Self> {
        let example = ["--package", "trunkline-cli", "--example", "shop"];
        Ok(Self {
            tools,
            hub,
            shop: fixture::build_with(&example, "shop", &[])?,
            rmcp: fixture::build_rmcp("hostile-load")?,
            folder: fixture::results_folder("hostile")?,
            ports: HostilePorts {
                pings: fixture::free_address()?.port(),
                http: fixture::free_address()?.port(),
            },
        })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("hub.log")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("mcp.json")
    }

    /// Describes the servers that every client must be able to use.
    fn healthy_servers(&self) -> Map<String, Value> {
        let mut servers = Map::new();
        for name in ["good-a", "good-b"] {
            let arguments = ["serve", "--stdio", "--no-config", "--builtin", "echo"];
            servers.insert(name.to_owned(), json!({ "command": self.hub, "args": arguments }));
        }
        servers.insert("shop".to_owned(), json!({ "command": self.shop }));
        servers
    }

    /// Starts the hostile servers that listen, and adds all kinds to the configuration that the hub follows.
    fn add_hostile_servers(&self) -> TaskResult<[BackgroundProcess; 2]> {
        let HostilePorts { pings, http } = self.ports;
        let start = |kind: &str, port: u16| {
            let mut command = run::command(&self.tools.python_v1);
            command.arg("-B").arg(upstream_script()).args([kind, &port.to_string()]);
            BackgroundProcess::start(&mut command)
        };
        let listening = [start("ws-pings", pings)?, start("http", http)?];
        let mut servers = self.healthy_servers();
        for kind in KINDS {
            let entry = json!({ "command": self.tools.python_v1, "args": ["-B", upstream_script(), kind] });
            servers.insert((*kind).to_owned(), entry);
        }
        for kind in HTTP_KINDS {
            servers
                .insert(format!("http-{kind}"), json!({ "url": format!("http://127.0.0.1:{http}/{kind}") }));
        }
        servers.insert("ws-pings".to_owned(), json!({ "url": format!("ws://127.0.0.1:{pings}/ws") }));
        self.write_config(&servers)?;
        Ok(listening)
    }

    fn write_config(&self, servers: &Map<String, Value>) -> TaskResult {
        Ok(fs::write(self.config(), json!({ "mcpServers": servers }).to_string())?)
    }

    fn start_hub(&self) -> TaskResult<FixtureServer> {
        self.write_config(&self.healthy_servers())?;
        let output = File::create(self.log())?;
        let mut command = run::command(self.hub);
        command.env("HOME", &self.folder).env("XDG_STATE_HOME", self.folder.join("state"));
        command.env_remove("XDG_RUNTIME_DIR");
        FixtureServer::start_by(|address| {
            command.args(["serve", "--trust", "--http", &address.to_string(), "--config"]).arg(self.config());
            command.stdout(std::process::Stdio::null()).stderr(output);
            command
        })
    }

    /// Runs all clients at one time.
    fn run_clients(&self, hub: &FixtureServer, seconds: usize, servers: &'static str) -> TaskResult<LoadRun> {
        let python = root().join("interop/python/hostile_load.py");
        let node = self.tools.node_folder.join("hostile-load.mjs");
        let clients = [
            ("PyPI mcp 1.x", &self.tools.python_v1, Some(&python)),
            ("PyPI mcp 2.x", &self.tools.python_v2, Some(&python)),
            ("npm sdk 1.x", &self.tools.node, Some(&node)),
            ("rmcp", &self.rmcp, None),
        ];
        let mut working = Vec::new();
        for (name, program, script) in clients {
            let output = self.folder.join(format!("{}-{servers}.log", name.replace(' ', "-")));
            let log = File::create(&output)?;
            let mut command = run::command(program);
            command.args(script).args([&hub.url("http", "/mcp"), &seconds.to_string()]);
            // Rust's and Node's clients do the same in both runs.
            command.args(script.filter(|script| **script == python).map(|_| servers));
            command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(log.try_clone()?).stderr(log);
            working.push((name, BackgroundProcess::start(&mut command)?, output));
        }
        let mut ran = LoadRun { seconds, reports: Vec::new(), most_memory: 0, outcome: Ok(()) };
        let give_up = Instant::now() + Duration::from_secs(seconds as u64 + 300);
        while !working.is_empty() {
            std::thread::sleep(Duration::from_millis(200));
            ran.most_memory = ran.most_memory.max(memory(hub.id())?);
            let mut left = Vec::new();
            for (name, mut client, output) in working {
                match client.ended()? {
                    Some(status) => {
                        let printed = fs::read_to_string(&output)?;
                        ran.reports.push((name, printed.trim_end().lines().last().unwrap_or("").to_owned()));
                        if !status.success() {
                            ran.outcome = Err(format!("{name} failed: see {}", output.display()).into());
                        }
                    }
                    None if Instant::now() > give_up => {
                        ran.outcome = Err(format!("{name} does not end").into());
                    }
                    None => left.push((name, client, output)),
                }
            }
            working = left;
        }
        ran.reports.sort_unstable();
        Ok(ran)
    }
}

/// Shows what each client did alone and beside the hostile servers.
fn comparison(alone: &LoadRun, beside: &LoadRun) -> TextTable {
    let (for_alone, for_beside) = (alone.seconds, beside.seconds);
    let columns = [
        "client".to_owned(),
        format!("alone, {for_alone} s"),
        format!("beside, {for_beside} s"),
        "rate".to_owned(),
    ];
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = TextTable::new(&columns);
    for ((name, control), (_, report)) in alone.reports.iter().zip(&beside.reports) {
        let rate = |report: &str, seconds: usize| Some(calls_of(report)? / seconds as f64);
        let ratio =
            rate(report, for_beside).zip(rate(control, for_alone)).map(|(beside, alone)| beside / alone);
        let ratio = ratio.map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.2} ×"));
        table.row(vec![(*name).to_owned(), control.clone(), report.clone(), ratio]);
    }
    table
}

/// Returns how many calls a client reports: `12 rounds, 480 calls of healthy servers, …`.
fn calls_of(report: &str) -> Option<f64> {
    report.split(", ").find_map(|part| part.strip_suffix(" calls of healthy servers"))?.parse().ok()
}

fn upstream_script() -> PathBuf {
    root().join("interop/python/hostile_upstream.py")
}

/// Returns the resident memory of a process in MiB.
fn memory(process: u32) -> TaskResult<usize> {
    Ok(trunkline_testing::resident_bytes(process)? >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_calls_are_read_from_the_line_of_a_client() {
        let line = "12 rounds, 480 calls of healthy servers, slowest round 1.5 s";
        assert_eq!(calls_of(line), Some(480.0));
        assert_eq!(calls_of("Traceback: 480 calls"), None);
    }
}
