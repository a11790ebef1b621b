use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;
use trunkline_config::{ConfigFile, ConfigVariables};

use super::{FileArgs, HubArgs};
use crate::config_failure::config_failure;
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};
use crate::trust::{TrustStore, items_of, list_items, trust_items};

/// Trust a config file, so that `serve` may start its commands
#[derive(Debug, Args)]
#[command(after_help = "\
`trunkline serve` starts the commands of a file, and uses its files, addresses
and variables, only if you trust them. It asks once at a terminal; this command
does the same without starting anything. It covers the commands and settings as
they are now: new and changed ones must be trusted again. A hub running from the
file applies the change.

Examples:
  trunkline trust
  trunkline trust ~/shop/mcp.json")]
pub(crate) struct TrustArgs {
    /// Config file [default: the one in this folder]
    #[arg(value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Trust nothing of the file any more
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    hub: HubArgs,
    /// Print the result as JSON on one line
    #[arg(long)]
    json: bool,
}

/// Trusts a file.
///
/// # Errors
/// The file cannot be used, or the state folder cannot be written.
pub(crate) fn run(args: &TrustArgs) -> Result<(), CliFailure> {
    trust(args).map_err(|failure| failure.with_json(args.json))
}

fn trust(args: &TrustArgs) -> Result<(), CliFailure> {
    let path = FileArgs { config: args.file.clone(), json: args.json }.path()?;
    if args.revoke {
        return revoke(args, &path);
    }
    let file = ConfigFile::open(&path, ConfigVariables::from_environment())
        .map_err(|error| config_failure(error.problems()))?;
    let items = items_of(&file);
    trust_items(&path, &items)?;
    let hub = args.hub.find(&path)?;
    let is_running = hub.is_some();
    hub.map(|hub| hub.reload()).transpose()?;
    if args.json {
        let names: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
        let done = json!({ "file": path, "trusted": names, "hub": is_running });
        return print_stdout(&format!("{done}\n"));
    }
    let path = path.display();
    if items.is_empty() {
        print_stderr(&format!("{path} has nothing that needs trust\n"));
        return Ok(());
    }
    let reloaded = if is_running { "; the running hub has reloaded it" } else { "" };
    print_stderr(&format!("{}trusted {path}{reloaded}\n", list_items(&items)));
    Ok(())
}

fn revoke(args: &TrustArgs, path: &std::path::Path) -> Result<(), CliFailure> {
    let was_trusted = TrustStore::of_user(path).revoke().map_err(|error| {
        CliFailure::configuration(format!("cannot revoke the trust in {}: {error}", path.display()))
            .hint("the state folder must be writable")
    })?;
    if args.json {
        return print_stdout(&format!("{}\n", json!({ "file": path, "revoked": was_trusted })));
    }
    let done = if was_trusted { "is not trusted any more" } else { "was not trusted" };
    print_stderr(&format!("{} {done}; a running hub keeps what it has\n", path.display()));
    Ok(())
}
