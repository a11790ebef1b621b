use clap::Args;
use serde_json::json;

use super::hub::{hub_not_found, state_text};
use super::{FileArgs, HubArgs};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::schema::did_you_mean;

/// Reconnect a server of the running hub
#[derive(Debug, Args)]
#[command(
    after_help = "Running calls get a few seconds to finish. Exits with 4 if no hub is running, or\nif it cannot connect to the server."
)]
pub(crate) struct ReconnectArgs {
    /// Name of the server
    name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Reconnects a server of the running hub.
///
/// # Errors
/// No hub runs, it has no such server, or it cannot connect to it.
pub(crate) fn run(args: &ReconnectArgs) -> Result<(), CliFailure> {
    reconnect(args).map_err(|failure| failure.with_json(args.file.json))
}

fn reconnect(args: &ReconnectArgs) -> Result<(), CliFailure> {
    let path = args.file.path()?;
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        let (what, hint) = hub_not_found(&path);
        CliFailure::new(ExitReason::Unreachable, what).hint(hint)
    })?;
    let names: Vec<String> = hub.status()?.into_iter().map(|server| server.name).collect();
    if !names.contains(&args.name) {
        let failure = CliFailure::configuration(format!("the running hub has no server `{}`", args.name));
        let near = did_you_mean(&args.name, names.iter().map(String::as_str));
        return Err(failure.hint(near.unwrap_or_else(|| format!("it has {}", names.join(", ")))));
    }
    hub.reconnect(&args.name)?;
    let server = hub.status()?.into_iter().find(|server| server.name == args.name);
    if args.file.json {
        return print_stdout(&format!(
            "{}\n",
            json!({ "server": args.name, "done": "reconnected", "hub": server })
        ));
    }
    let how = server.as_ref().map(state_text).unwrap_or_default();
    print_stderr(&format!("reconnected `{}`: {how}\n", args.name));
    Ok(())
}
