//! The clients of the official SDKs, and an agent framework, against one server.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::row::{ResultRow, RunSelection};
use super::script::{self, SkipPolicy};
use crate::tools::InstalledTools;
use crate::{TaskResult, root, run};

/// Every client script with the interpreter that runs it and the modes that it has.
const CLIENTS: &[ScriptClient] = &[
    ScriptClient { name: "python-v1", script: "client_v1.py", modes: &["legacy"] },
    ScriptClient { name: "python-v2", script: "client_v2.py", modes: &["auto", "legacy", "2026-07-28"] },
    ScriptClient { name: "node-v1", script: "client-v1.mjs", modes: &["legacy"] },
    ScriptClient { name: "node-v2", script: "client-v2.mjs", modes: &["auto", "legacy", "2026-07-28"] },
    ScriptClient { name: "pydantic-ai", script: "agent_pydantic_ai.py", modes: &["auto"] },
];

#[derive(Debug)]
struct ScriptClient {
    name: &'static str,
    script: &'static str,
    modes: &'static [&'static str],
}

/// How a script reaches the server.
#[derive(Debug)]
pub(super) enum ClientTarget {
    Http(String),
    /// HTTP+SSE; a script knows it by the path.
    Sse(String),
    /// A script knows it by the scheme.
    WebSocket(String),
    Stdio(Vec<String>),
}

impl ClientTarget {
    fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
            Self::Stdio(_) => "stdio",
        }
    }

    /// Reports whether a client knows the transport: the second generation, on which the agents stand, dropped two.
    fn suits(&self, client: &ScriptClient) -> bool {
        !matches!(self, Self::Sse(_) | Self::WebSocket(_)) || client.name.ends_with("-v1")
    }

    /// Chooses the transport by a URL.
    pub(super) fn at(url: String) -> Self {
        if url.starts_with("ws") {
            Self::WebSocket(url)
        } else if url.ends_with("/sse") {
            Self::Sse(url)
        } else {
            Self::Http(url)
        }
    }
}

/// Runs every client against every target, one after the other.
pub(super) fn run_all(
    tools: &InstalledTools,
    targets: &[ClientTarget],
    rows: &RunSelection,
    skips: SkipPolicy,
) -> TaskResult<Vec<ResultRow>> {
    let mut ran = Vec::new();
    for client in CLIENTS {
        for target in targets.iter().filter(|target| target.suits(client)) {
            for mode in client.modes {
                let place = [client.name, target.name(), mode];
                let Some(log) = rows.log_of(&place) else { continue };
                let mut command = interpreter(tools, client);
                command.args(["--mode", mode]);
                match target {
                    ClientTarget::Http(url) | ClientTarget::Sse(url) | ClientTarget::WebSocket(url) => {
                        command.args(["--url", url])
                    }
                    ClientTarget::Stdio(line) => command.arg("--").args(line),
                };
                ran.push(ResultRow::new(&place, &script::run(&mut command, &log, skips)?));
            }
        }
    }
    Ok(ran)
}

/// Prepares a client that reads commands.
pub(super) fn controlled_client(
    tools: &InstalledTools,
    name: &str,
    mode: &str,
    url: &str,
) -> TaskResult<Command> {
    let client = CLIENTS.iter().find(|client| client.name == name).ok_or("there is no such client")?;
    let mut command = interpreter(tools, client);
    command.args(["--told", "--mode", mode, "--url", url]);
    Ok(command)
}

fn interpreter(tools: &InstalledTools, client: &ScriptClient) -> Command {
    let python = root().join("interop/python").join(client.script);
    let (program, script): (&Path, PathBuf) = match client.name {
        "python-v1" => (&tools.python_v1, python),
        "python-v2" => (&tools.python_v2, python),
        "pydantic-ai" => (&tools.python_agent, python),
        _ => (&tools.node, tools.node_folder.join(client.script)),
    };
    let mut command = run::command(program);
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_follows_from_the_url_and_old_ones_are_for_old_clients() {
        for (url, name) in [
            ("http://127.0.0.1:1/mcp", "http"),
            ("https://example.com/sse", "sse"),
            ("ws://127.0.0.1:1/ws", "websocket"),
        ] {
            let target = ClientTarget::at(url.to_owned());
            assert_eq!(target.name(), name, "{url}");
            let suited = CLIENTS.iter().filter(|client| target.suits(client)).count();
            assert_eq!(suited, if name == "http" { 5 } else { 2 }, "{url}");
        }
    }

    #[test]
    fn every_client_has_its_script() {
        for client in CLIENTS {
            let found = ["python", "node"]
                .iter()
                .any(|folder| root().join("interop").join(folder).join(client.script).exists());
            assert!(found, "{}", client.script);
        }
    }
}
