//! `cargo xtask interop`: runs the clients of the official SDKs against a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::args::Args;
use crate::fixture::{self, Server};
use crate::table::Table;
use crate::tools::{self, Tools};
use crate::{Outcome, root, run};

/// Every client script with the interpreter that runs it and the modes that it has.
const CLIENTS: &[Client] = &[
    Client { name: "python-v1", script: "client_v1.py", modes: &["legacy"] },
    Client { name: "python-v2", script: "client_v2.py", modes: &["auto", "legacy", "2026-07-28"] },
    Client { name: "node-v1", script: "client-v1.mjs", modes: &["legacy"] },
    Client { name: "node-v2", script: "client-v2.mjs", modes: &["auto", "legacy", "2026-07-28"] },
];

/// Each check inside a script has its own limit, so this one only catches a script that will not end.
const SCRIPT_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug)]
struct Client {
    name: &'static str,
    script: &'static str,
    modes: &'static [&'static str],
}

/// How a script reaches the server.
#[derive(Debug)]
enum Target {
    Http(String),
    /// HTTP+SSE; a script knows it by the path.
    Sse(String),
    /// A script knows it by the scheme.
    WebSocket(String),
    Stdio(Vec<String>),
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
            Self::Stdio(_) => "stdio",
        }
    }

    /// Reports whether a client knows the transport: the second generation dropped two of them.
    fn suits(&self, client: &Client) -> bool {
        !matches!(self, Self::Sse(_) | Self::WebSocket(_)) || client.name.ends_with("-v1")
    }

    /// Tells by a URL which transport is meant.
    fn at(url: String) -> Self {
        if url.starts_with("ws") {
            Self::WebSocket(url)
        } else if url.ends_with("/sse") {
            Self::Sse(url)
        } else {
            Self::Http(url)
        }
    }
}

/// What one run of a script has printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    skipped: usize,
}

pub(crate) fn command(mut args: Args) -> Outcome {
    let only = args.value("--only")?;
    let url = args.value("--url")?;
    let command = args.after_dashes();
    args.finish()?;
    let tools = tools::install()?;
    copy_scripts(&tools)?;

    // The server over HTTP lives as long as this value.
    let mut server = None;
    let mut targets = Vec::new();
    if url.is_none() && command.is_empty() {
        let binary = fixture::build("everything-server")?;
        targets.push(Target::Stdio(vec![binary.display().to_string(), "--stdio".to_owned()]));
        let server = server.insert(Server::start(&binary)?);
        targets.extend(
            [server.url("http", "/mcp"), server.url("http", "/sse"), server.url("ws", "/ws")].map(Target::at),
        );
    }
    targets.extend(url.map(Target::at));
    if !command.is_empty() {
        targets.push(Target::Stdio(command));
    }
    run_all(&tools, &targets, only.as_deref().unwrap_or_default())
}

fn run_all(tools: &Tools, targets: &[Target], only: &str) -> Outcome {
    let results = fixture::results_folder("interop")?;
    let mut table = Table::new(&["client", "transport", "mode", "passed", "failed", "skipped"]);
    let mut bad = Vec::new();
    for client in CLIENTS {
        for target in targets.iter().filter(|target| target.suits(client)) {
            for mode in client.modes {
                let name = format!("{}-{}-{mode}", client.name, target.name());
                if !name.contains(only) {
                    continue;
                }
                let (summary, sound) =
                    run_one(tools, client, target, mode, &results.join(format!("{name}.log")))?;
                let counts = [summary.passed, summary.failed, summary.skipped].map(|count| count.to_string());
                let mut cells = vec![client.name.to_owned(), target.name().to_owned(), (*mode).to_owned()];
                cells.extend(counts);
                table.row(cells);
                if !sound {
                    bad.push(name);
                }
            }
        }
    }
    print!("\n{}", table.render());
    println!("Everything the clients printed is in {}.", results.display());
    if bad.is_empty() {
        Ok(())
    } else {
        Err(format!("these clients are not content: {}", bad.join(", ")).into())
    }
}

/// Runs one script; the second value tells whether everything in it passed.
fn run_one(
    tools: &Tools,
    client: &Client,
    target: &Target,
    mode: &str,
    log: &Path,
) -> Outcome<(Summary, bool)> {
    println!("{} over {} in mode {mode}", client.name, target.name());
    let mut command = interpreter(tools, client);
    command.args(["--mode", mode]);
    match target {
        Target::Http(url) | Target::Sse(url) | Target::WebSocket(url) => command.args(["--url", url]),
        Target::Stdio(line) => command.arg("--").args(line),
    };
    run_driver(&mut command, log, SCRIPT_LIMIT)
}

/// Runs a program that prints a line for each check; the second value tells whether everything in it passed.
pub(crate) fn run_driver(command: &mut Command, log: &Path, limit: Duration) -> Outcome<(Summary, bool)> {
    let ended = run::run_logged(command, log, limit);
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    for line in text.lines().filter(|line| line.starts_with("not ok ") || line.starts_with("skip ")) {
        println!("  {line}");
    }
    let summary = match ended {
        Err(error) => {
            println!("  {error}");
            None
        }
        Ok(status) => {
            let summary = summary_of(&text);
            if summary.is_none() {
                println!("  the script broke down ({status}); see {}", log.display());
            }
            summary.map(|summary| (status.success(), summary))
        }
    };
    let Some((success, summary)) = summary else {
        return Ok((Summary::default(), false));
    };
    let sound = success && summary.failed == 0 && summary.passed > 0;
    Ok((summary, sound))
}

/// Reads the closing line `N passed, N failed`; a script that broke down has none.
fn summary_of(text: &str) -> Option<Summary> {
    let closing = text.lines().rev().find(|line| line.ends_with(" failed"))?;
    let (passed, failed) = closing.split_once(" passed, ")?;
    Some(Summary {
        passed: passed.parse().ok()?,
        failed: failed.strip_suffix(" failed")?.parse().ok()?,
        skipped: text.lines().filter(|line| line.starts_with("skip ")).count(),
    })
}

fn interpreter(tools: &Tools, client: &Client) -> Command {
    let python = root().join("interop/python").join(client.script);
    let (program, script): (&Path, PathBuf) = match client.name {
        "python-v1" => (&tools.python_v1, python),
        "python-v2" => (&tools.python_v2, python),
        _ => (&tools.node, tools.node_folder.join(client.script)),
    };
    let mut command = run::command(program);
    command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Copies the Node scripts to where Node finds their packages: it looks only in folders above a script.
pub(crate) fn copy_scripts(tools: &Tools) -> Outcome {
    for entry in fs::read_dir(root().join("interop/node"))? {
        let path = entry?.path();
        if let (Some(name), Some("mjs")) = (path.file_name(), path.extension().and_then(|end| end.to_str())) {
            fs::copy(&path, tools.node_folder.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_a_script_is_what_counts() {
        let table = [
            (
                "ok a\nok b\nskip c: why\n2 passed, 0 failed\n",
                Some(Summary { passed: 2, failed: 0, skipped: 1 }),
            ),
            (
                "not ok a: 1 failed\n0 passed, 1 failed\nstderr after it\n",
                Some(Summary { failed: 1, ..Summary::default() }),
            ),
            ("ok a\nTraceback\n", None),
            ("the build failed\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(summary_of(text), expected, "{text}");
        }
    }

    #[test]
    fn the_transport_is_told_by_the_url_and_old_ones_are_for_old_clients() {
        for (url, name) in [
            ("http://127.0.0.1:1/mcp", "http"),
            ("https://example.com/sse", "sse"),
            ("ws://127.0.0.1:1/ws", "websocket"),
        ] {
            let target = Target::at(url.to_owned());
            assert_eq!(target.name(), name, "{url}");
            let suited = CLIENTS.iter().filter(|client| target.suits(client)).count();
            assert_eq!(suited, if name == "http" { 4 } else { 2 }, "{url}");
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
