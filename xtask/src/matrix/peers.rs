//! The table of official peers: the SDKs as clients of the bridge, and as servers behind it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::cell::FeatureCell;
use super::grid::FeatureGrid;
use super::log::CheckLog;
use crate::fixture::{self, FixtureServer};
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, interop, root, run};

/// Each check inside a run has its own limit, so this one only catches a run that will not end.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);

/// What is looked at, and by which checks: of each group one is made, whichever the era has.
struct MatrixFeature {
    name: &'static str,
    by_clients: &'static [&'static [&'static str]],
    by_servers: &'static [&'static [&'static str]],
    /// Whether it needs forms, which early revisions have not.
    forms: bool,
}

const fn feature(
    name: &'static str,
    by_clients: &'static [&'static [&'static str]],
    by_servers: &'static [&'static [&'static str]],
) -> MatrixFeature {
    MatrixFeature { name, by_clients, by_servers, forms: false }
}

const fn with_forms(
    name: &'static str,
    by_clients: &'static [&'static [&'static str]],
    by_servers: &'static [&'static [&'static str]],
) -> MatrixFeature {
    MatrixFeature { name, by_clients, by_servers, forms: true }
}

const FEATURES: &[MatrixFeature] = &[
    feature("description", &[&["about"]], &[&["connect"], &["about"]]),
    feature(
        "list",
        &[&["list_tools"], &["list_prompts"], &["list_resources"], &["list_resource_templates"]],
        &[&["lists"]],
    ),
    feature("call", &[&["call"], &["call_content_kinds"]], &[&["call"]]),
    feature("calls at one time", &[&["call_concurrently"]], &[&["call_concurrently"]]),
    feature(
        "call that fails",
        &[&["call_tool_error"], &["call_unknown_tool"], &["call_wrong_arguments"]],
        &[&["call_fails"], &["call_unknown_tool"], &["call_wrong_arguments"]],
    ),
    feature("read", &[&["read_text"], &["read_binary"], &["read_template"]], &[&["read"]]),
    feature("resource that is not there", &[&["read_unknown"]], &[&["read_unknown"]]),
    feature(
        "get prompt",
        &[&["get_prompt"], &["get_prompt_with_arguments"], &["get_prompt_contents"]],
        &[&["prompt"]],
    ),
    feature("complete", &[&["completion"]], &[&["completion"]]),
    feature("progress", &[&["progress"]], &[&["progress"]]),
    feature("log", &[&["logging"]], &[&["log"]]),
    feature(
        "cancel by the client",
        &[&["cancel"], &["usable_after_cancel"]],
        &[&["cancel"], &["usable_after_cancel"]],
    ),
    with_forms("elicitation, accepted", &[&["elicitation_accept"]], &[&["form_accept"]]),
    with_forms("elicitation, declined", &[&["elicitation_decline"]], &[&["form_decline"], &["form_cancel"]]),
    with_forms("two elicitations in sequence", &[&["multi_round"]], &[&["one_after_the_other"]]),
    feature("sampling", &[&["sampling"]], &[&["model"]]),
    feature("roots", &[&["roots"]], &[&["roots"]]),
    feature(
        "change notices",
        &[&["list_changed_notification", "listen_list_changed"]],
        &[&["tools"], &["prompts_and_resources"]],
    ),
    feature("resource subscription", &[&["resource_subscription", "listen_resource"]], &[&["resource"]]),
];

/// The eras, each by the revision that stands for it.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("modern", "2026-07-28")];

/// An official package, and how it is run as a client.
struct PeerClient {
    package: &'static str,
    lock: &'static str,
    speaks: &'static str,
    run: fn(&InstalledTools) -> (PathBuf, PathBuf),
    options: &'static [&'static str],
    /// Whether it reaches the bridge over HTTP, and not over pipes.
    over_http: bool,
}

const NODE: &str = "package-lock.json";

const CLIENTS: &[PeerClient] = &[
    PeerClient {
        package: "mcp",
        lock: "2024-11-05.txt",
        speaks: "2024-11-05",
        run: |tools| (tools.python_2024.clone(), python("client_2024.py")),
        options: &["--mode", "legacy"],
        over_http: false,
    },
    PeerClient {
        package: "sdk-of-2025-03-26",
        lock: NODE,
        speaks: "2025-03-26",
        run: |tools| node(tools, "client-v1.mjs"),
        options: &["--mode", "legacy", "--sdk", "sdk-of-2025-03-26"],
        over_http: true,
    },
    PeerClient {
        package: "mcp",
        lock: "v1.txt",
        speaks: "2025-11-25",
        run: |tools| (tools.python_v1.clone(), python("client_v1.py")),
        options: &["--mode", "legacy"],
        over_http: true,
    },
    PeerClient {
        package: "@modelcontextprotocol/sdk",
        lock: NODE,
        speaks: "2025-11-25",
        run: |tools| node(tools, "client-v1.mjs"),
        options: &["--mode", "legacy"],
        over_http: true,
    },
    PeerClient {
        package: "mcp",
        lock: "v2.txt",
        speaks: "2025-11-25",
        run: |tools| (tools.python_v2.clone(), python("client_v2.py")),
        options: &["--mode", "legacy"],
        over_http: true,
    },
    PeerClient {
        package: "@modelcontextprotocol/client",
        lock: NODE,
        speaks: "2025-11-25",
        run: |tools| node(tools, "client-v2.mjs"),
        options: &["--mode", "legacy"],
        over_http: true,
    },
    PeerClient {
        package: "mcp",
        lock: "v2.txt",
        speaks: "2026-07-28",
        run: |tools| (tools.python_v2.clone(), python("client_v2.py")),
        options: &["--mode", "auto"],
        over_http: true,
    },
    PeerClient {
        package: "@modelcontextprotocol/client",
        lock: NODE,
        speaks: "2026-07-28",
        run: |tools| node(tools, "client-v2.mjs"),
        options: &["--mode", "auto"],
        over_http: true,
    },
];

/// An official package, and how it is run as a server over pipes.
struct PeerServer {
    package: &'static str,
    lock: &'static str,
    speaks: &'static str,
    run: fn(&InstalledTools) -> (PathBuf, PathBuf),
    /// The name under which its checks are known.
    checks: &'static str,
}

const SERVERS: &[PeerServer] = &[
    PeerServer {
        package: "mcp",
        lock: "2024-11-05.txt",
        speaks: "2024-11-05",
        run: |tools| (tools.python_2024.clone(), python("server_2024.py")),
        checks: "pypi-mcp-2024-11-05",
    },
    PeerServer {
        package: "sdk-of-2025-03-26",
        lock: NODE,
        speaks: "2025-03-26",
        run: |tools| node(tools, "server-2025.mjs"),
        checks: "npm-sdk-2025-03-26",
    },
    PeerServer {
        package: "mcp",
        lock: "v1.txt",
        speaks: "2025-11-25",
        run: |tools| (tools.python_v1.clone(), python("server_v1.py")),
        checks: "pypi-mcp-v1",
    },
    PeerServer {
        package: "@modelcontextprotocol/sdk",
        lock: NODE,
        speaks: "2025-11-25",
        run: |tools| node(tools, "server-v1.mjs"),
        checks: "npm-sdk-v1",
    },
    PeerServer {
        package: "mcp",
        lock: "v2.txt",
        speaks: "2026-07-28",
        run: |tools| (tools.python_v2.clone(), python("server_v2.py")),
        checks: "pypi-mcp-v2",
    },
    PeerServer {
        package: "@modelcontextprotocol/server",
        lock: NODE,
        speaks: "2026-07-28",
        run: |tools| node(tools, "server-v2.mjs"),
        checks: "npm-server-v2",
    },
];

fn python(script: &str) -> PathBuf {
    root().join("interop/python").join(script)
}

fn node(tools: &InstalledTools, script: &str) -> (PathBuf, PathBuf) {
    (tools.node.clone(), tools.node_folder.join(script))
}

/// Names a package for readers, with its version and its revisions.
fn heading(package: &str, lock: &str, speaks: &str) -> TaskResult<String> {
    let version = tools::pins().find(|(name, _, file)| *name == package && file.ends_with(lock));
    let (_, version, _) = version.ok_or_else(|| format!("{package} has no pin"))?;
    let name = match package {
        "mcp" => "PyPI `mcp`".to_owned(),
        "sdk-of-2025-03-26" => "npm `@modelcontextprotocol/sdk`".to_owned(),
        package => format!("npm `{package}`"),
    };
    Ok(format!("{name} {version} in {speaks}"))
}

/// What is built and installed for the table.
struct PeerPrograms {
    tools: InstalledTools,
    fixture: PathBuf,
    bridge: PathBuf,
    checks: PathBuf,
    results: PathBuf,
}

/// Measures the table: the clients and the servers at the same time.
pub(super) fn measure() -> TaskResult<Vec<FeatureGrid>> {
    let tools = tools::install()?;
    interop::copy_scripts(&tools)?;
    let programs = PeerPrograms {
        tools,
        fixture: fixture::build("everything-server")?,
        bridge: fixture::build_of("trunkline-cli", "trunkline")?,
        checks: fixture::build_of("trunkline-interop", "real-servers")?,
        results: fixture::results_folder("matrix-peers")?,
    };
    // Errors stay within their thread, as they need not be fit to leave it.
    let (clients, servers) = std::thread::scope(|scope| {
        let servers = scope.spawn(|| programs.servers().map_err(|error| error.to_string()));
        (
            programs.clients(),
            servers.join().unwrap_or_else(|_| Err("the servers' half broke down".to_owned())),
        )
    });
    Ok(vec![clients?, servers?])
}

impl PeerPrograms {
    fn clients(&self) -> TaskResult<FeatureGrid> {
        let mut grid = FeatureGrid::new("Clients of the bridge");
        for client in CLIENTS {
            let column = heading(client.package, client.lock, client.speaks)?;
            for (era, revision) in ERAS {
                let server = FixtureServer::start_by(|address| {
                    let mut command = run::command(&self.fixture);
                    command.args(["--http", &address.to_string(), "--revisions", revision]);
                    command
                })?;
                let url = server.url("http", "/mcp");
                let bridge =
                    client.over_http.then(|| FixtureServer::start_bridge(&self.bridge, &url)).transpose()?;
                let (program, script) = (client.run)(&self.tools);
                let mut command = run::command(program);
                command.arg(script).args(client.options).env("PYTHONDONTWRITEBYTECODE", "1");
                match &bridge {
                    Some(bridge) => command.args(["--url", &bridge.url("http", "/mcp")]),
                    None => command.arg("--").arg(&self.bridge).args(["bridge", &url]),
                };
                let text = self.log_of(&mut command, &format!("{column} and {era}"))?;
                let log = CheckLog::read(&text).map_err(|problem| format!("{column}, {era}: {problem}"))?;
                for feature in FEATURES {
                    grid.put(feature.name, &column, era, log.cell(feature.by_clients)?);
                }
            }
        }
        Ok(grid)
    }

    fn servers(&self) -> TaskResult<FeatureGrid> {
        let mut grid = FeatureGrid::new("Servers behind the bridge");
        let scratch = self.results.join("scratch");
        std::fs::create_dir_all(&scratch)?;
        for server in SERVERS {
            let column = heading(server.package, server.lock, server.speaks)?;
            for (era, _) in ERAS {
                let (program, script) = (server.run)(&self.tools);
                let mut command = run::command(&self.checks);
                command.args(["--server", server.checks, "--mode", era, "--scratch"]).arg(&scratch);
                command.arg("--").arg(&self.bridge).args(["bridge", "--log-level", "warn", "--"]);
                command.arg(program).arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
                let text = self.log_of(&mut command, &format!("{column} and {era}, server"))?;
                let log = CheckLog::read(&text).map_err(|problem| format!("{column}, {era}: {problem}"))?;
                for feature in FEATURES {
                    let cell = match feature.forms && server.speaks < "2025-06-18" {
                        true => FeatureCell::Cannot(format!("{} has no elicitation", server.speaks)),
                        false => log.cell(feature.by_servers)?,
                    };
                    grid.put(feature.name, &column, era, cell);
                }
            }
        }
        Ok(grid)
    }

    /// Runs a command to its end and returns its output.
    fn log_of(&self, command: &mut Command, name: &str) -> TaskResult<String> {
        println!("  {name}");
        let log = self.results.join(format!("{}.log", name.replace(['/', ' ', '`', ','], "-")));
        run::run_logged(command, &log, RUN_TIMEOUT)?;
        read(&log)
    }
}

fn read(log: &Path) -> TaskResult<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(log)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned_and_has_one_column() {
        let clients = CLIENTS.iter().map(|peer| heading(peer.package, peer.lock, peer.speaks).unwrap());
        let servers = SERVERS.iter().map(|peer| heading(peer.package, peer.lock, peer.speaks).unwrap());
        for headings in [clients.collect::<Vec<_>>(), servers.collect()] {
            let distinct: std::collections::BTreeSet<_> = headings.iter().collect();
            assert_eq!(distinct.len(), headings.len(), "{headings:?}");
        }
        assert_eq!(heading("mcp", "2024-11-05.txt", "2024-11-05").unwrap(), "PyPI `mcp` 1.7.1 in 2024-11-05");
    }

    #[test]
    fn every_revision_with_a_package_of_its_own_is_on_both_sides() {
        for revision in ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"] {
            assert!(CLIENTS.iter().any(|client| client.speaks == revision), "{revision}");
            assert!(SERVERS.iter().any(|server| server.speaks == revision), "{revision}");
        }
    }
}
