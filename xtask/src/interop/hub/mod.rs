//! Clients of others in front of a hub with servers of others behind it, one of which hangs.

mod upstreams;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use self::upstreams::HubUpstreams;
use super::lock;
use super::row::{ResultRow, RunSelection};
use super::script::{self, ScriptRun, SkipPolicy};
use super::servers::next_item;
use crate::fixture::{self, FixtureServer};
use crate::tools::InstalledTools;
use crate::{TaskResult, root, run};

pub(super) const COLUMNS: &[&str] = &["through", "client", "transport"];

/// How many groups run at a time. They wait for starting servers most of the time, so there are more than cores.
const CONCURRENT_GROUPS: usize = 3;

/// How long a hub may take to end all servers that it has started.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// A client as it is run against the hub over one transport.
#[derive(Debug)]
struct HubClient {
    name: &'static str,
    transport: HubTransport,
    runtime: ClientRuntime,
    script: &'static str,
    options: &'static [&'static str],
    hub: HubSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HubTransport {
    /// The client starts a hub of its own, and perhaps several.
    Stdio,
    Http,
    /// The client starts `mcp-remote`, which connects to the hub over HTTP.
    Remote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientRuntime {
    PythonV1,
    PythonV2,
    /// PyPI `fastmcp` 4.
    PythonAgent,
    Node,
}

/// The hub in front of which a client is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HubSize {
    /// All servers; over HTTP it is one process for all clients.
    Full,
    /// All servers, in a hub that has seen no client before: log messages that name no call are forwarded only over a
    /// connection that has served one client alone.
    FullOwn,
    /// Two servers that start quickly, and none that hangs; over HTTP a hub that has seen no client before.
    Small,
    /// One server that lists other tools in each era; over HTTP a hub that has seen no client before.
    Eras,
}

use ClientRuntime::{Node, PythonAgent, PythonV1, PythonV2};
use HubSize::{Eras, Full, FullOwn, Small};
use HubTransport::{Http, Remote, Stdio};

const UPSTREAMS: &[&str] = &["--upstreams"];

const fn client(
    name: &'static str,
    transport: HubTransport,
    (runtime, script): (ClientRuntime, &'static str),
    options: &'static [&'static str],
) -> HubClient {
    HubClient { name, transport, runtime, script, options, hub: Full }
}

const fn small(
    name: &'static str,
    transport: HubTransport,
    script: &'static str,
    options: &'static [&'static str],
) -> HubClient {
    HubClient { name, transport, runtime: PythonV1, script, options, hub: Small }
}

const fn eras(name: &'static str, transport: HubTransport, options: &'static [&'static str]) -> HubClient {
    HubClient { name, transport, runtime: PythonV2, script: "eras.py", options, hub: Eras }
}

const V1: (ClientRuntime, &str) = (PythonV1, "client_v1.py");
const V2: (ClientRuntime, &str) = (PythonV2, "client_v2.py");
const FASTMCP: (ClientRuntime, &str) = (PythonAgent, "client_fastmcp.py");
const LANGCHAIN: (ClientRuntime, &str) = (PythonV1, "agent_langchain.py");
const OPENAI: (ClientRuntime, &str) = (PythonV1, "agent_openai.py");
const AI_SDK: (ClientRuntime, &str) = (Node, "client-ai-sdk.mjs");

/// The clients in groups; those of a group run one after the other, and the long groups come first.
const GROUPS: &[&[HubClient]] = &[
    &[client("langchain-mcp-adapters", Stdio, LANGCHAIN, &[])],
    // These answer questions. They take turns, as clients with equal capabilities share connections to the servers.
    &[
        client("python-v1", Http, V1, UPSTREAMS),
        client("python-v2", Http, V2, UPSTREAMS),
        client("fastmcp-4", Http, FASTMCP, UPSTREAMS),
    ],
    // Its client has the capabilities of `python-v1`, and would get the connections that have served that one.
    &[HubClient { hub: FullOwn, ..client("mcp-remote", Remote, V1, UPSTREAMS) }],
    &[client("ai-sdk", Stdio, AI_SDK, &[])],
    &[client("python-v1", Stdio, V1, UPSTREAMS)],
    &[client("python-v2", Stdio, V2, UPSTREAMS)],
    &[client("fastmcp-4", Stdio, FASTMCP, UPSTREAMS)],
    &[client("openai-agents", Stdio, OPENAI, &[])],
    &[client("langchain-mcp-adapters", Http, LANGCHAIN, &[])],
    &[client("openai-agents", Http, OPENAI, &[])],
    &[client("ai-sdk", Http, AI_SDK, &[])],
    &[small("capabilities-plain-first", Stdio, "capabilities.py", &["--mode", "plain"])],
    &[small("capabilities-able-first", Stdio, "capabilities.py", &["--mode", "able"])],
    &[small("capabilities-plain-first", Http, "capabilities.py", &["--mode", "plain"])],
    &[small("capabilities-able-first", Http, "capabilities.py", &["--mode", "able"])],
    &[eras("eras-legacy-first", Stdio, &["--mode", "legacy"])],
    &[eras("eras-modern-first", Stdio, &["--mode", "2026-07-28"])],
    &[eras("eras-legacy-first", Http, &["--mode", "legacy"])],
    &[eras("eras-modern-first", Http, &["--mode", "2026-07-28"])],
    &[small("langchain-mcp-adapters-small", Stdio, LANGCHAIN.1, &["--mode", "small"])],
    &[small("leave", Stdio, "leave.py", &[])],
    // It starts its hub itself, over HTTP, as it also kills it.
    &[small("restarted", Stdio, "restarted.py", &[])],
];

impl HubTransport {
    fn name(self) -> &'static str {
        match self {
            Stdio => "stdio",
            Http | Remote => "http",
        }
    }
}

impl HubClient {
    fn row_name(&self) -> [&'static str; 3] {
        ["hub", self.name, self.transport.name()]
    }
}

/// Runs the clients that are wanted, some groups at a time.
pub(super) fn run_all(tools: &InstalledTools, rows: &RunSelection) -> TaskResult<Vec<ResultRow>> {
    let wanted = |client: &&HubClient| rows.log_of(&client.row_name()).is_some();
    let groups: Vec<Vec<&HubClient>> =
        GROUPS.iter().map(|group| group.iter().filter(wanted).collect::<Vec<_>>()).collect();
    let groups: Vec<_> = groups.into_iter().filter(|group| !group.is_empty()).collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let bed = TestBed::prepare(tools, rows)?;
    let queue: Mutex<VecDeque<_>> = Mutex::new(groups.into_iter().enumerate().collect());
    let ran = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_GROUPS {
            scope.spawn(|| {
                while let Some((place, group)) = next_item(&queue) {
                    let rows: Vec<ResultRow> = group.into_iter().map(|client| bed.row(client)).collect();
                    lock(&ran).push((place, rows));
                }
            });
        }
    });
    bed.shared.stop(END_TIMEOUT)?;
    let mut ran = ran.into_inner();
    ran.sort_by_key(|(place, _)| *place);
    Ok(ran.into_iter().flat_map(|(_, rows)| rows).collect())
}

/// Everything that the clients need.
struct TestBed<'t> {
    tools: &'t InstalledTools,
    rows: &'t RunSelection,
    binary: PathBuf,
    upstreams: HubUpstreams,
    /// The hub with all servers that clients reach over HTTP.
    shared: FixtureServer,
}

impl<'t> TestBed<'t> {
    fn prepare(tools: &'t InstalledTools, rows: &'t RunSelection) -> TaskResult<Self> {
        let binary = fixture::build_of("trunkline-cli", "trunkline")?;
        let folder = rows.results.join("hub");
        fs::create_dir_all(&folder)?;
        let upstreams = HubUpstreams::start(tools, &folder)?;
        let shared = start_hub(&binary, &upstreams.full, &folder.join("shared"))?;
        Ok(Self { tools, rows, binary, upstreams, shared })
    }

    /// Runs one client. One that cannot be run at all is a row that is not content, and not the end of the others.
    fn row(&self, client: &HubClient) -> ResultRow {
        let outcome = self.run(client).unwrap_or_else(|error| ScriptRun::not_run(error.to_string()));
        ResultRow::new(&client.row_name(), &outcome)
    }

    fn run(&self, client: &HubClient) -> TaskResult<ScriptRun> {
        let place = client.row_name();
        let log = self.rows.log_of(&place).ok_or("this client is not wanted")?;
        let config = match client.hub {
            Full | FullOwn => &self.upstreams.full,
            Small => &self.upstreams.small,
            Eras => &self.upstreams.eras,
        };
        let home = self.rows.results.join("hub").join(place.join("-"));
        let mut command = self.interpreter(client);
        set_home(&mut command, &home)?;
        command.args(client.options);
        if matches!(client.hub, Small | Eras) {
            command.arg("--config").arg(config);
        }
        let own = match (client.hub, client.transport) {
            (FullOwn | Small | Eras, Http | Remote) => Some(start_hub(&self.binary, config, &home)?),
            _ => None,
        };
        let url = own.as_ref().unwrap_or(&self.shared).url("http", "/mcp");
        match client.transport {
            Stdio => command
                .arg("--")
                .arg(&self.binary)
                .args(["serve", "--stdio", "--trust", "--config"])
                .arg(config),
            Http => command.args(["--url", &url]),
            Remote => {
                let proxy = self.tools.node_folder.join("node_modules/mcp-remote/dist/proxy.js");
                command.arg("--").arg(&self.tools.node).arg(proxy).arg(&url)
            }
        };
        let ran = script::run(&mut command, &log, SkipPolicy::Refused)?;
        own.map(|hub| hub.stop(END_TIMEOUT)).transpose()?;
        Ok(ran)
    }

    fn interpreter(&self, client: &HubClient) -> Command {
        let python = root().join("interop/python").join(client.script);
        let (program, script) = match client.runtime {
            PythonV1 => (&self.tools.python_v1, python),
            PythonV2 => (&self.tools.python_v2, python),
            PythonAgent => (&self.tools.python_agent, python),
            Node => (&self.tools.node, self.tools.node_folder.join(client.script)),
        };
        let mut command = run::command(program);
        command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Starts a hub that listens, with a home of its own, and waits until it does.
fn start_hub(binary: &Path, config: &Path, home: &Path) -> TaskResult<FixtureServer> {
    fs::create_dir_all(home)?;
    let log = File::create(home.join("hub.log"))?;
    let output = log.try_clone()?;
    let mut command = run::command(binary);
    set_home(&mut command, home)?;
    FixtureServer::start_by(|address| {
        command.args(["serve", "--trust", "--http", &address.to_string(), "--config"]).arg(config);
        command.stdout(output).stderr(log);
        command
    })
}

/// Gives a program, and a hub that it starts, a home of its own, so that no row finds the stored listings of another.
fn set_home(command: &mut Command, home: &Path) -> TaskResult {
    fs::create_dir_all(home)?;
    // Of these variables the SDKs pass on the home alone, from which the hub derives the rest.
    command.env("HOME", home).env("XDG_STATE_HOME", home.join(".local/state"));
    command.env("XDG_CONFIG_HOME", home.join(".config")).env("XDG_CACHE_HOME", home.join(".cache"));
    command.env_remove("XDG_RUNTIME_DIR");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_promised_client_is_run_over_pipes_and_http() {
        let clients: Vec<&HubClient> = GROUPS.iter().copied().flatten().collect();
        for name in
            ["langchain-mcp-adapters", "openai-agents", "fastmcp-4", "ai-sdk", "python-v1", "python-v2"]
        {
            for transport in [Stdio, Http] {
                let found = clients.iter().any(|client| client.name == name && client.transport == transport);
                assert!(found, "{name} over {transport:?}");
            }
        }
        assert!(clients.iter().any(|client| client.transport == Remote));
        let places: BTreeSet<_> = clients.iter().map(|client| client.row_name()).collect();
        assert_eq!(places.len(), clients.len(), "two rows have one name");
    }

    #[test]
    fn every_client_has_its_script() {
        for client in GROUPS.iter().copied().flatten() {
            let folder = if client.runtime == Node { "interop/node" } else { "interop/python" };
            assert!(root().join(folder).join(client.script).exists(), "{}", client.script);
        }
    }
}
