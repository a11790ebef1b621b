use clap::Args;
use serde_json::json;

use super::hub::{not_found, standing};
use super::{FileArgs, HubArgs};
use crate::connect::print;
use crate::exit::{Exit, Failure, say};
use crate::schema::did_you_mean;

/// Have the running hub connect to a server anew
#[derive(Debug, Args)]
#[command(
    after_help = "Calls that run may finish within a few seconds. It exits with 4 if no hub runs,\nor if it cannot connect to the server."
)]
pub(crate) struct ReconnectArgs {
    /// The name of the server
    name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Has the hub connect anew.
///
/// # Errors
/// No hub runs, it has no such server, or it cannot connect to it.
pub(crate) fn run(args: &ReconnectArgs) -> Result<(), Failure> {
    reconnect(args).map_err(|failure| failure.in_form(args.file.json))
}

fn reconnect(args: &ReconnectArgs) -> Result<(), Failure> {
    let path = args.file.path()?;
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        let (what, hint) = not_found(&path);
        Failure::new(Exit::Unreachable, what).hint(hint)
    })?;
    let names: Vec<String> = hub.status()?.into_iter().map(|server| server.name).collect();
    if !names.contains(&args.name) {
        let failure = Failure::configuration(format!("the running hub has no server `{}`", args.name));
        let near = did_you_mean(&args.name, names.iter().map(String::as_str));
        return Err(failure.hint(near.unwrap_or_else(|| format!("it has {}", names.join(", ")))));
    }
    hub.reconnect(&args.name)?;
    let server = hub.status()?.into_iter().find(|server| server.name == args.name);
    if args.file.json {
        return print(&format!("{}\n", json!({ "server": args.name, "done": "reconnected", "hub": server })));
    }
    let how = server.as_ref().map(standing).unwrap_or_default();
    say(&format!("reconnected `{}`: {how}\n", args.name));
    Ok(())
}
