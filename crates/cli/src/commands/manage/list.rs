use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use trunkline_config::ConfigFile;

use super::hub::hub_not_found;
use super::{FileArgs, HubArgs};
use crate::admin::ServerState;
use crate::config_failure::config_failure;
use crate::configured_commands::ConfiguredCommands;
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};
use crate::terminal::{OutputLayout, escape_line, table};

/// List configured servers and their status
#[derive(Debug, Args)]
#[command(
    after_help = "Shows the status from the hub running from the file, if any; otherwise only\nreads the file. Starts nothing."
)]
pub(crate) struct ServersArgs {
    /// Also print protocol versions, server names,
    /// connections and running calls, and for each server
    /// its capabilities, errors and last output
    #[arg(verbatim_doc_comment, short, long, conflicts_with = "json")]
    verbose: bool,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Lists servers.
///
/// # Errors
/// The configuration is missing or invalid.
pub(crate) fn run(args: &ServersArgs) -> Result<(), CliFailure> {
    list(args).map_err(|failure| failure.with_json(args.file.json))
}

fn list(args: &ServersArgs) -> Result<(), CliFailure> {
    let path = args.file.path()?;
    let report = args.hub.find(&path)?.map(|hub| hub.report()).transpose()?;
    let servers = match &report {
        Some(report) => report.servers.clone(),
        None => {
            let file = args.file.read_expanded()?;
            if let Some(problem) = file.missing_servers() {
                return Err(config_failure(&[problem]));
            }
            states_from_file(&file)
        }
    };
    if args.file.json {
        let hub = report.as_ref().map(|hub| {
            json!({ "pid": hub.pid, "version": hub.version, "url": hub.url, "collisions": hub.collisions })
        });
        let servers: Vec<_> = servers.iter().map(|server| as_json(server, report.is_some())).collect();
        return print_stdout(&format!("{}\n", json!({ "file": path, "hub": hub, "servers": servers })));
    }
    match &report {
        Some(hub) => {
            let place = hub.url.as_deref().unwrap_or("stdio");
            print_stderr(&format!(
                "hub (pid {}) running from {} serves {}\n",
                hub.pid,
                path.display(),
                escape_line(place)
            ));
            hub.collisions
                .iter()
                .for_each(|collision| print_stderr(&format!("{}\n", escape_line(collision))));
            servers.iter().for_each(|server| print_problems(server, args.verbose));
        }
        None => {
            let (what, hint) = hub_not_found(&path);
            print_stderr(&format!("{what}; {hint}\n"));
        }
    }
    print_command_count(&path);
    if servers.is_empty() {
        print_stderr("no servers; add one with `trunkline add`\n");
        return Ok(());
    }
    let details: String = if args.verbose { servers.iter().map(as_details).collect() } else { String::new() };
    print_stdout(&format!("{}{details}", as_table(&servers, args.verbose, report.is_some())))
}

/// Prints how many commands the file describes, and how to list them.
fn print_command_count(path: &Path) {
    // A mistake in a command is reported where commands are used.
    let Ok(described) = ConfiguredCommands::read_unexpanded(Some(path)) else { return };
    match described.commands.commands().len() {
        0 => {}
        1 => print_stderr("1 command; `trunkline explain` shows it\n"),
        count => print_stderr(&format!("{count} commands; `trunkline explain` lists them\n")),
    }
}

/// Writes what does not fit into the table: capabilities, the whole reason, and the output of the program.
fn as_details(server: &ServerState) -> String {
    let parts =
        [("capabilities", &server.capabilities), ("reason", &server.reason), ("output", &server.output)];
    let mut text = String::new();
    for (what, value) in parts {
        for (at, line) in value.iter().flat_map(|value| value.lines()).enumerate() {
            let what = if at == 0 { what } else { "" };
            text.push_str(&format!("  {what:<12}  {}\n", escape_line(line)));
        }
    }
    if text.is_empty() { text } else { format!("\n{}\n{text}", escape_line(&server.name)) }
}

/// The number of problems of one server that are printed without `--verbose`.
const MAX_PROBLEMS: usize = 3;

/// Prints which items of a server's lists are left out or repaired.
fn print_problems(server: &ServerState, verbose: bool) {
    let name = escape_line(&server.name);
    let left_out = server.left_out.iter().map(|line| ("skipped", line));
    let repaired = server.repaired.iter().map(|line| ("repaired", line));
    let problems: Vec<_> = left_out.chain(repaired).collect();
    let shown = if verbose { problems.len() } else { MAX_PROBLEMS };
    for (what, line) in problems.iter().take(shown) {
        print_stderr(&format!("{name}: {what}: {}\n", escape_line(line)));
    }
    if problems.len() > shown {
        print_stderr(&format!("{name}: and {} more; --verbose lists them\n", problems.len() - shown));
    }
}

/// Returns the states of the servers of a file, without a hub. Variables are those of this process, as they would be for
/// a hub that is started here.
fn states_from_file(file: &ConfigFile) -> Vec<ServerState> {
    let (valid, invalid) = file.valid_and_invalid_servers();
    let valid = valid.into_iter().map(|server| ServerState {
        name: server.name.to_string(),
        state: if server.enabled { "enabled" } else { "disabled" }.to_owned(),
        required: server.required,
        reach: server.location.to_string(),
        reason: server.unset_variable.map(|name| format!("environment variable `{name}` is not set")),
        ..ServerState::default()
    });
    let invalid = invalid.into_iter().map(|server| ServerState {
        name: server.name,
        state: "invalid".to_owned(),
        required: server.required,
        reach: server.location.map(|location| location.to_string()).unwrap_or_default(),
        reason: Some(server.problem.to_string()),
        ..ServerState::default()
    });
    let mut states: Vec<ServerState> = valid.chain(invalid).collect();
    let order = file.server_names();
    states.sort_by_key(|state| order.iter().position(|name| *name == state.name));
    states
}

/// Writes a server as JSON; without a hub only what is in the file.
fn as_json(server: &ServerState, is_running: bool) -> Value {
    if is_running {
        return json!(server);
    }
    let ServerState { name, state, reach, required, reason, .. } = server;
    json!({ "name": name, "state": state, "reach": reach, "required": required, "reason": reason })
}

fn as_table(servers: &[ServerState], verbose: bool, is_running: bool) -> String {
    let mut head = vec!["NAME", "STATE"];
    if is_running {
        head.push("TOOLS");
    }
    if verbose && is_running {
        head.extend(["REVISION", "SERVER", "CONNECTIONS", "CALLS"]);
    }
    head.push("TARGET");
    let has_reasons = servers.iter().any(|server| server.reason.is_some());
    if has_reasons {
        head.push("REASON");
    }
    let rows = servers.iter().map(|server| {
        let mut row = vec![escape_line(&server.name).into_owned(), server.state.clone()];
        if is_running {
            // Nothing is known of what a server has that was never connected to.
            row.push(if server.starts == 0 { "-".to_owned() } else { server.tools.to_string() });
        }
        if verbose && is_running {
            let text = |text: &Option<String>| escape_line(text.as_deref().unwrap_or("-")).into_owned();
            let (connections, calls) = (server.connections.to_string(), server.calls.to_string());
            row.extend([text(&server.revision), text(&server.identity), connections, calls]);
        }
        row.push(escape_line(&server.reach).into_owned());
        if has_reasons {
            // Its further lines are the output of a program, which `--verbose` prints.
            let headline = server.reason.as_deref().and_then(|reason| reason.lines().next());
            row.push(headline.map(|line| escape_line(line).into_owned()).unwrap_or_default());
        }
        row
    });
    let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    table(&head, &rows.collect::<Vec<_>>(), OutputLayout::stdout().columns)
}
