use clap::Args;
use serde_json::json;

use super::file::save;
use super::{FileArgs, HubArgs};
use crate::connect::print;
use crate::exit::{Failure, say};

/// Remove a server from the configuration
#[derive(Debug, Args)]
#[command(after_help = "A hub that runs from the file ends its connections to the server.")]
pub(crate) struct RemoveArgs {
    /// The name of the server
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
pub(crate) fn run(args: &RemoveArgs) -> Result<(), Failure> {
    remove(args).map_err(|failure| failure.in_form(args.file.json))
}

fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let mut editor = args.file.edit()?;
    let path = editor.file().path().to_owned();
    editor.remove(&args.name)?;
    save(editor)?;
    let heard = args.hub.tell(&path, &args.name, |hub| hub.reload().map(drop))?;
    if args.file.json {
        let done = json!({ "server": args.name, "done": "removed", "file": path, "hub": heard.to_json() });
        return print(&format!("{done}\n"));
    }
    say(&format!("removed `{}` from {}; {}\n", args.name, path.display(), heard.words()));
    Ok(())
}
