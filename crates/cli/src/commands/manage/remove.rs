use clap::Args;
use serde_json::json;

use super::file::save;
use super::{FileArgs, HubArgs};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};

/// Remove a server from the configuration
#[derive(Debug, Args)]
#[command(after_help = "A hub running from the file closes its connections to the server.")]
pub(crate) struct RemoveArgs {
    /// Name of the server
    name: String,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Removes a server.
///
/// # Errors
/// There is none of the name, or the file cannot be changed.
pub(crate) fn run(args: &RemoveArgs) -> Result<(), CliFailure> {
    remove(args).map_err(|failure| failure.with_json(args.file.json))
}

fn remove(args: &RemoveArgs) -> Result<(), CliFailure> {
    let mut editor = args.file.edit()?;
    let path = editor.file().path().to_owned();
    editor.remove(&args.name)?;
    save(editor)?;
    let heard = args.hub.apply_to_running(&path, &args.name, |hub| hub.reload().map(drop))?;
    if args.file.json {
        let done = json!({ "server": args.name, "done": "removed", "file": path, "hub": heard.to_json() });
        return print_stdout(&format!("{done}\n"));
    }
    print_stderr(&format!("removed `{}` from {}; {}\n", args.name, path.display(), heard.to_text()));
    Ok(())
}
