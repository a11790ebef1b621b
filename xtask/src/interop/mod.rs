//! `cargo xtask interop`: the clients of others against our server, our client and command against their servers, and both through a hub.

mod clients;
mod hub;
mod login;
mod protected_servers;
mod row;
mod script;
mod servers;
pub(crate) mod smoke;

use std::fs;

use parking_lot::{Mutex, MutexGuard};

use self::clients::ClientTarget;
use self::row::{RunSelection, print_table};
use self::script::SkipPolicy;
pub(crate) use self::smoke::client::{CallAnswer, ControlledClient};
use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, hostile, isolation, root};

/// The calls of a short isolation campaign, as one user and as strangers each.
const SHORT_CALLS: usize = 400;

/// How long a short campaign with hostile servers takes, in seconds, beside the time in which memory is given back.
const SHORT_SECONDS: usize = 10;

/// The columns of a row about a server, before its counts.
const SERVER_COLUMNS: &[&str] = &["server", "transport", "by", "mode"];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let only = args.value("--only")?;
    let url = args.value("--url")?;
    let command = args.after_dashes();
    args.finish()?;
    let tools = tools::install()?;
    copy_scripts(&tools)?;
    let rows = RunSelection { only: only.unwrap_or_default(), results: fixture::results_folder("interop")? };

    let given = url.is_some() || !command.is_empty();
    let ran = if given {
        clients::run_all(&tools, &at(url, command), &rows, SkipPolicy::Allowed)?
    } else {
        ours(&tools, &rows)?
    };
    let mut count = ran.len();
    let mut bad = print_table(&["client", "transport", "mode"], ran);
    if !given {
        let ran = servers::run_all(&tools, &rows)?;
        count += ran.len();
        bad.extend(print_table(SERVER_COLUMNS, ran));
        let ran = hub::run_all(&tools, &rows)?;
        count += ran.len();
        bad.extend(print_table(hub::COLUMNS, ran));
        let ran = login::run_all(&tools, &rows)?;
        count += ran.len();
        bad.extend(print_table(login::COLUMNS, ran));
        let ran = protected_servers::run_all(&tools, &rows)?;
        count += ran.len();
        bad.extend(print_table(protected_servers::COLUMNS, ran));
    }
    if !given && rows.only.is_empty() {
        bad.extend(campaigns(&tools)?);
    }
    conclude(&rows, count, &bad)
}

/// Runs `cargo xtask isolation` and `cargo xtask hostile` for a short time; returns those that failed.
fn campaigns(tools: &InstalledTools) -> TaskResult<Vec<String>> {
    let hub = fixture::build_of("trunkline-cli", "trunkline")?;
    let clients = fixture::build_of("trunkline-interop", "isolation")?;
    let ran = [
        ("isolation", isolation::run_calls(SHORT_CALLS, tools, hub.clone(), clients)),
        ("hostile", hostile::run_for(SHORT_SECONDS, tools, &hub)),
    ];
    let failed = ran.into_iter().filter_map(|(name, outcome)| Some(format!("{name} ({})", outcome.err()?)));
    Ok(failed.collect())
}

/// `cargo xtask servers`: the second half alone.
pub(crate) fn servers(mut args: Args) -> TaskResult {
    let only = args.value("--only")?.unwrap_or_default();
    args.finish()?;
    let tools = tools::install()?;
    copy_scripts(&tools)?;
    let rows = RunSelection { only, results: fixture::results_folder("interop")? };
    let ran = servers::run_all(&tools, &rows)?;
    conclude(&rows, ran.len(), &print_table(SERVER_COLUMNS, ran))
}

/// Prints the path of the results, and fails if a row is bad or there are none.
fn conclude(rows: &RunSelection, count: usize, bad: &[String]) -> TaskResult {
    if count == 0 {
        return Err(format!("nothing has `{}` in its name", rows.only).into());
    }
    println!("Everything that was printed is in {}.", rows.results.display());
    if bad.is_empty() { Ok(()) } else { Err(format!("these are not content: {}", bad.join(", ")).into()) }
}

/// Runs the clients against our own server, over every transport that it has.
fn ours(tools: &InstalledTools, rows: &RunSelection) -> TaskResult<Vec<row::ResultRow>> {
    let binary = fixture::build("everything-server")?;
    let server = FixtureServer::start(&binary)?;
    let mut targets = vec![ClientTarget::Stdio(vec![binary.display().to_string(), "--stdio".to_owned()])];
    targets.extend(
        [server.url("http", "/mcp"), server.url("http", "/sse"), server.url("ws", "/ws")]
            .map(ClientTarget::at),
    );
    clients::run_all(tools, &targets, rows, SkipPolicy::Refused)
}

/// Runs every client against a server; returns those that are not content.
pub(crate) fn run_clients(tools: &InstalledTools, url: String, results: &str) -> TaskResult<Vec<String>> {
    copy_scripts(tools)?;
    let rows = RunSelection { only: String::new(), results: fixture::results_folder(results)? };
    let ran = clients::run_all(tools, &[ClientTarget::at(url)], &rows, SkipPolicy::Refused)?;
    Ok(print_table(&["client", "transport", "mode"], ran))
}

/// Starts a client that reads commands, and waits until it is connected.
pub(crate) fn start_controlled_client(
    tools: &InstalledTools,
    name: &'static str,
    mode: &str,
    url: &str,
    log: fs::File,
) -> TaskResult<ControlledClient> {
    let mut command = clients::controlled_client(tools, name, mode, url)?;
    command.stderr(log);
    ControlledClient::start(name, &mut command)
}

/// Returns the targets that were named on the command line.
fn at(url: Option<String>, command: Vec<String>) -> Vec<ClientTarget> {
    let mut targets: Vec<ClientTarget> = url.map(ClientTarget::at).into_iter().collect();
    if !command.is_empty() {
        targets.push(ClientTarget::Stdio(command));
    }
    targets
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Copies the Node scripts, and what they show, to where Node finds their packages: it looks only in folders above a script.
pub(crate) fn copy_scripts(tools: &InstalledTools) -> TaskResult {
    for (folder, end) in
        [("interop/node", "mjs"), ("conformance/assets", "png"), ("conformance/assets", "wav")]
    {
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if let (Some(name), true) = (path.file_name(), path.extension().is_some_and(|found| found == end))
            {
                fs::copy(&path, tools.node_folder.join(name))?;
            }
        }
    }
    Ok(())
}
