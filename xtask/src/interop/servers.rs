//! Servers that others made, and servers of ours on the SDKs of others, driven by our client and by our command.

use std::collections::VecDeque;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use super::lock;
use super::row::{ResultRow, RunSelection};
use super::script::{self, ScriptRun, SkipPolicy};
use crate::fixture::{self, START_TIMEOUT};
use crate::run::{self, BackgroundProcess};
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, root};

/// One server, how it is started, and in which ways it is driven.
struct ForeignServer {
    name: &'static str,
    start: fn(&InstalledServers<'_>) -> Vec<PathBuf>,
    transports: &'static [ServerTransport],
    /// The modes in which the client SDK drives it; the command drives it in the first and, over HTTP, in all.
    modes: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerTransport {
    Stdio,
    Http,
    Sse,
}

use ServerTransport::{Http, Sse, Stdio};

/// The modes of a server with one era: automatic, and pinned, older revisions included.
const LEGACY: &[&str] = &["auto", "legacy"];
const BOTH: &[&str] = &["auto", "legacy", "modern"];

/// The slow ones come first, so that two at a time end at about the same time.
const SERVERS: &[ForeignServer] = &[
    ForeignServer {
        name: "pypi-mcp-v2",
        start: |at| python(&at.tools.python_v2, 2),
        transports: &[Stdio, Http],
        modes: BOTH,
    },
    ForeignServer {
        name: "pypi-mcp-v1",
        start: |at| python(&at.tools.python_v1, 1),
        transports: &[Stdio, Http],
        modes: LEGACY,
    },
    ForeignServer {
        name: "npm-server-v2",
        start: |at| node(at.tools, "server-v2.mjs"),
        transports: &[Stdio, Http],
        modes: BOTH,
    },
    ForeignServer {
        name: "npm-sdk-v1",
        start: |at| node(at.tools, "server-v1.mjs"),
        transports: &[Stdio, Http],
        modes: LEGACY,
    },
    ForeignServer {
        name: "everything",
        start: |at| npm(at.tools, "server-everything"),
        transports: &[Stdio, Sse, Http],
        modes: LEGACY,
    },
    ForeignServer {
        name: "filesystem",
        start: |at| npm(at.tools, "server-filesystem"),
        transports: &[Stdio],
        modes: LEGACY,
    },
    ForeignServer {
        name: "memory",
        start: |at| npm(at.tools, "server-memory"),
        transports: &[Stdio],
        modes: LEGACY,
    },
    ForeignServer {
        name: "time",
        start: |at| vec![at.pypi.join("mcp-server-time")],
        transports: &[Stdio],
        modes: BOTH,
    },
    ForeignServer {
        name: "git",
        start: |at| vec![at.pypi.join("mcp-server-git")],
        transports: &[Stdio],
        modes: BOTH,
    },
    ForeignServer {
        name: "fetch",
        // The page that it fetches is on this machine.
        start: |at| vec![at.pypi.join("mcp-server-fetch"), "--allow-private-ips".into()],
        transports: &[Stdio],
        modes: BOTH,
    },
];

pub(super) fn node(tools: &InstalledTools, script: &str) -> Vec<PathBuf> {
    vec![tools.node.clone(), tools.node_folder.join(script)]
}

pub(super) fn npm(tools: &InstalledTools, package: &str) -> Vec<PathBuf> {
    let folder = tools.node_folder.join("node_modules/@modelcontextprotocol").join(package);
    vec![tools.node.clone(), folder.join("dist/index.js")]
}

fn python(interpreter: &Path, generation: u8) -> Vec<PathBuf> {
    let script = root().join(format!("interop/python/server_v{generation}.py"));
    // Nothing is to be written beside the scripts.
    vec![interpreter.to_path_buf(), "-B".into(), script]
}

/// Where everything is installed.
struct InstalledServers<'t> {
    tools: &'t InstalledTools,
    /// The folder of the programs from PyPI.
    pypi: PathBuf,
}

/// What drives a server.
#[derive(Debug)]
struct TestDrivers {
    checks: PathBuf,
    command: PathBuf,
}

/// Runs everything against every server, two servers at a time.
pub(super) fn run_all(tools: &InstalledTools, rows: &RunSelection) -> TaskResult<Vec<ResultRow>> {
    let wanted = |server: &ForeignServer, transport: ServerTransport| {
        plan(server, transport)
            .iter()
            .any(|(by, mode)| rows.log_of(&[server.name, transport.name(), by, mode]).is_some())
    };
    let groups = SERVERS.iter().flat_map(|server| server.transports.iter().map(move |on| (server, *on)));
    let groups: Vec<_> = groups.filter(|(server, transport)| wanted(server, *transport)).collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let installed = InstalledServers { tools, pypi: tools::install_servers()? };
    let drivers = TestDrivers {
        checks: fixture::build_of("trunkline-interop", "real-servers")?,
        command: fixture::build_of("trunkline-cli", "trunkline")?,
    };
    let queue: Mutex<VecDeque<_>> = Mutex::new(groups.iter().copied().enumerate().collect());
    let ran = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((place, (server, transport))) = next_item(&queue) {
                    let rows = run_group(&installed, &drivers, server, transport, rows);
                    lock(&ran).push((place, rows));
                }
            });
        }
    });
    let mut ran = ran.into_inner();
    ran.sort_by_key(|(place, _)| *place);
    Ok(ran.into_iter().flat_map(|(_, rows)| rows).collect())
}

pub(super) fn next_item<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    lock(queue).pop_front()
}

/// Lists by what, and in which modes, a server is driven over a transport.
fn plan(server: &ForeignServer, transport: ServerTransport) -> Vec<(&'static str, &'static str)> {
    let sdk = server.modes.iter().map(|mode| ("sdk", *mode));
    // Over pipes every run of the command starts the server anew.
    let count = if transport == Http { server.modes.len() } else { 1 };
    sdk.chain(server.modes.iter().take(count).map(|mode| ("binary", *mode))).collect()
}

/// Runs everything against one server over one transport; over HTTP it is one process for all.
fn run_group(
    installed: &InstalledServers<'_>,
    drivers: &TestDrivers,
    server: &ForeignServer,
    transport: ServerTransport,
    rows: &RunSelection,
) -> Vec<ResultRow> {
    let mut ran = Vec::new();
    let mut listening: Option<TaskResult<(BackgroundProcess, String)>> = None;
    for (by, mode) in plan(server, transport) {
        let place = [server.name, transport.name(), by, mode];
        let Some(log) = rows.log_of(&place) else { continue };
        let scratch = rows.results.join("scratch").join(format!("{}-{}", server.name, transport.name()));
        let outcome = std::fs::create_dir_all(&scratch).map_err(Into::into).and_then(|()| {
            let mut command = run::command(&drivers.checks);
            command.args(["--server", server.name, "--mode", mode, "--scratch"]).arg(&scratch);
            if by == "binary" {
                command.arg("--binary").arg(&drivers.command);
            }
            if transport == Stdio {
                command.arg("--").args((server.start)(installed));
            } else {
                let listening = listening.get_or_insert_with(|| listen(installed, server, transport, rows));
                let (_, url) = listening.as_ref().map_err(ToString::to_string)?;
                command.arg("--url").arg(url);
            }
            script::run(&mut command, &log, SkipPolicy::Refused)
        });
        // A server that cannot be driven at all is a row that is not content, and not the end of the others.
        let outcome = outcome.unwrap_or_else(|error| ScriptRun::not_run(error.to_string()));
        ran.push(ResultRow::new(&place, &outcome));
    }
    ran
}

/// A server that listens still does so after this.
const STABLE_AFTER: Duration = Duration::from_millis(300);

/// Starts a server that listens, and waits until it does.
fn listen(
    installed: &InstalledServers<'_>,
    server: &ForeignServer,
    transport: ServerTransport,
    rows: &RunSelection,
) -> TaskResult<(BackgroundProcess, String)> {
    let address = fixture::free_address()?;
    let words = (server.start)(installed);
    let (program, arguments) = words.split_first().ok_or("a server without a program")?;
    let log = rows.results.join(format!("{}-{}-server.log", server.name, transport.name()));
    let output = File::create(log)?;
    let mut command: Command = run::command(program);
    command
        .args(arguments)
        .stdout(output.try_clone()?)
        .stderr(output)
        .env("PORT", address.port().to_string());
    match (server.name, transport) {
        ("everything", Sse) => command.arg("sse"),
        ("everything", _) => command.arg("streamableHttp"),
        _ => command.args(["--http", &address.port().to_string()]),
    };
    let mut running = BackgroundProcess::start(&mut command)?;
    wait_until_listening(&mut running, address)?;
    let path = if transport == Sse { "/sse" } else { "/mcp" };
    Ok((running, format!("http://{address}{path}")))
}

/// Waits until a program that was started listens at its address.
pub(super) fn wait_until_listening(running: &mut BackgroundProcess, address: SocketAddr) -> TaskResult {
    // Several servers start at a time, slowly; until then another process may have the port for a moment.
    running.wait_until(START_TIMEOUT, || {
        let is_there = run::is_listening(address);
        std::thread::sleep(STABLE_AFTER);
        is_there && run::is_listening(address)
    })
}

impl ServerTransport {
    fn name(self) -> &'static str {
        match self {
            Stdio => "stdio",
            Http => "http",
            Sse => "sse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_is_driven_by_the_sdk_in_every_mode_and_by_the_command() {
        for server in SERVERS {
            for transport in server.transports {
                let plan = plan(server, *transport);
                for mode in server.modes {
                    assert!(plan.contains(&("sdk", mode)), "{} {transport:?} {mode}", server.name);
                }
                assert!(plan.contains(&("binary", "auto")), "{} {transport:?}", server.name);
            }
        }
    }

    #[test]
    fn interop_servers_are_the_documented_ones() {
        let names: Vec<_> = SERVERS.iter().map(|server| server.name).collect();
        for name in [
            "everything",
            "filesystem",
            "memory",
            "time",
            "git",
            "fetch",
            "npm-server-v2",
            "pypi-mcp-v1",
            "pypi-mcp-v2",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let everything = SERVERS.iter().find(|server| server.name == "everything").unwrap();
        assert_eq!(everything.transports, [Stdio, Sse, Http]);
    }
}
