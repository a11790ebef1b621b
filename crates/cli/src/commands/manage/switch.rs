use clap::Args;
use serde_json::json;

use super::file::save;
use super::{FileArgs, HubArgs};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};

/// Enable a server (expose its tools)
#[derive(Debug, Args)]
#[command(after_help = "A hub running from the file exposes it at once.")]
pub(crate) struct EnableArgs {
    /// Name of the server
    name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Disable a server (hide its tools; the connection stays open)
#[derive(Debug, Args)]
#[command(after_help = "A hub running from the file stays connected to the server; running calls\ncontinue.")]
pub(crate) struct DisableArgs {
    /// Name of the server
    name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Switches a server on.
///
/// # Errors
/// There is none of the name, or the file cannot be changed.
pub(crate) fn enable(args: &EnableArgs) -> Result<(), CliFailure> {
    set_enabled(&args.name, &args.file, &args.hub, true).map_err(|failure| failure.with_json(args.file.json))
}

/// Switches a server off.
///
/// # Errors
/// There is none of the name, or the file cannot be changed.
pub(crate) fn disable(args: &DisableArgs) -> Result<(), CliFailure> {
    set_enabled(&args.name, &args.file, &args.hub, false).map_err(|failure| failure.with_json(args.file.json))
}

fn set_enabled(name: &str, file: &FileArgs, hub: &HubArgs, on: bool) -> Result<(), CliFailure> {
    let mut editor = file.edit()?;
    let path = editor.file().path().to_owned();
    if on {
        editor.enable(name)?;
    } else {
        editor.disable(name)?;
    }
    let changed = save(editor)?;
    // The hub may have reloaded the file already, or was changed over the socket: its own state decides.
    let heard = hub.apply_to_running(&path, name, |hub| {
        hub.reload().and_then(|_| hub.set_enabled(name, on)).map(drop)
    })?;
    let done = match (on, changed) {
        (true, true) => "enabled",
        (true, false) => "already enabled",
        (false, true) => "disabled",
        (false, false) => "already disabled",
    };
    if file.json {
        let report = json!({ "server": name, "done": done, "file": path, "hub": heard.to_json() });
        return print_stdout(&format!("{report}\n"));
    }
    print_stderr(&format!("`{name}` is {done} in {}; {}\n", path.display(), heard.to_text()));
    Ok(())
}
