//! Our command logs in to servers on the SDKs of others, through a real authorization server.

use std::path::PathBuf;

use super::row::{ResultRow, RunSelection};
use super::script::{self, ScriptRun, SkipPolicy};
use super::servers::node;
use crate::tools::InstalledTools;
use crate::{TaskResult, fixture, root, run};

/// The columns of a row, before its counts.
pub(super) const COLUMNS: &[&str] = &["server", "by", "tokens"];

/// A server that requires a login, and the tokens that it accepts.
struct ProtectedServer {
    name: &'static str,
    tokens: &'static str,
    options: &'static [&'static str],
    start: fn(&InstalledTools) -> Vec<PathBuf>,
}

const SERVERS: &[ProtectedServer] = &[
    ProtectedServer { name: "npm-server-v2", tokens: "opaque", options: &["--opaque"], start: node_server },
    ProtectedServer {
        name: "npm-server-v2",
        tokens: "dpop",
        options: &["--opaque", "--dpop"],
        start: node_server,
    },
    ProtectedServer {
        name: "npm-server-v2",
        tokens: "cimd",
        options: &["--opaque", "--client-document"],
        start: node_server,
    },
    ProtectedServer { name: "pypi-mcp-v2", tokens: "jwt", options: &[], start: python_server },
];

fn node_server(tools: &InstalledTools) -> Vec<PathBuf> {
    node(tools, "protected-server.mjs")
}

fn python_server(tools: &InstalledTools) -> Vec<PathBuf> {
    // Nothing is to be written beside the scripts.
    vec![tools.python_v2.clone(), "-B".into(), root().join("interop/python/protected_server.py")]
}

/// Logs in to every server, all at once: most of the time is spent waiting for tokens to expire.
pub(super) fn run_all(tools: &InstalledTools, rows: &RunSelection) -> TaskResult<Vec<ResultRow>> {
    let place = |server: &ProtectedServer| [server.name, "login", server.tokens];
    let wanted: Vec<_> =
        SERVERS.iter().filter_map(|server| Some((server, rows.log_of(&place(server))?))).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let binary = fixture::build_of("trunkline-cli", "trunkline")?;
    let ran: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = wanted
            .iter()
            .map(|(server, log)| {
                let binary = &binary;
                scope.spawn(move || {
                    let home = rows.results.join("scratch").join(place(server).join("-"));
                    let mut command = run::command(&tools.node);
                    command.arg(tools.node_folder.join("login-checks.mjs"));
                    command.arg("--binary").arg(binary).arg("--home").arg(home).args(server.options);
                    command.arg("--").args((server.start)(tools));
                    let ran = script::run(&mut command, log, SkipPolicy::Refused);
                    ran.unwrap_or_else(|error| ScriptRun::not_run(error.to_string()))
                })
            })
            .collect();
        running.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let outcome = |ran: std::thread::Result<ScriptRun>| {
        ran.unwrap_or_else(|_| ScriptRun::not_run("the row could not be run".to_owned()))
    };
    Ok(wanted
        .iter()
        .zip(ran)
        .map(|((server, _), ran)| ResultRow::new(&place(server), &outcome(ran)))
        .collect())
}
