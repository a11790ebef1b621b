//! `trunkline install CLIENT`: the hub in the file of a client, and out of it again.

mod entry;
mod words;

use std::path::PathBuf;

use clap::Args;
use trunkline_client::transport::Url;
use trunkline_config::find::Client;
use trunkline_config::{Backup, Editor, Saved, ServerName};

use self::entry::hub;
use self::words::tell;
use super::ourselves::is_ourselves;
use super::{client_parser, places};
use crate::commands::manage::FileArgs;
use crate::exit::{Exit, Failure};

/// Put the hub into Claude Code, Claude Desktop, Cursor …
#[derive(Debug, Args)]
#[command(after_help = "CLIENT is claude-code, claude-desktop, cursor, vscode or windsurf. Everything\n\
else in its file stays as it is, and a copy of the file is left beside it.\n\n\
Examples:\n  trunkline install claude-code\n  trunkline install cursor --http http://127.0.0.1:7411/mcp\n  \
trunkline install claude-desktop --uninstall")]
pub(crate) struct InstallArgs {
    /// The client
    #[arg(value_parser = client_parser(), hide_possible_values = true)]
    client: Client,
    /// What the hub is called there
    #[arg(long, value_name = "NAME", default_value = "trunkline")]
    name: String,
    /// The hub that runs at this address, instead of one
    /// that the client starts
    #[arg(verbatim_doc_comment, long, value_name = "URL")]
    http: Option<Url>,
    /// Put it into the client's file of this folder
    #[arg(long)]
    project: bool,
    /// Take it out again
    #[arg(long, conflicts_with = "http")]
    uninstall: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    file: FileArgs,
}

/// What was done to the file of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Added,
    Replaced,
    Removed,
    /// It was so already.
    Nothing,
}

/// Puts the hub into a client, or takes it out.
///
/// # Errors
/// The client's file cannot be changed, or there is no configuration that the hub could have.
pub(crate) fn run(args: &InstallArgs) -> Result<(), Failure> {
    install(args).map_err(|failure| failure.in_form(args.file.json))
}

fn install(args: &InstallArgs) -> Result<(), Failure> {
    let path = client_file(args)?;
    let name = ServerName::parse(&args.name)
        .map_err(|error| Failure::new(Exit::Usage, format!("`{}`: {error}", args.name)))?;
    let mut editor = Editor::open_or_new(&path)?.container(args.client.container()).private();
    let wanted = if args.uninstall { None } else { Some(hub(args, &name, &path)?) };
    let there = editor.file().names().contains(&name.as_str());
    check_ours(&editor, args, there)?;
    let done = match &wanted {
        None if !there => Done::Nothing,
        None => {
            editor.remove(name.as_str())?;
            Done::Removed
        }
        Some(hub) if there => {
            if editor.file().server(name.as_str()).is_ok_and(|known| known.is_written_like(hub)) {
                Done::Nothing
            } else {
                editor.remove(name.as_str())?;
                editor.add(hub)?;
                Done::Replaced
            }
        }
        Some(hub) => {
            editor.add(hub)?;
            Done::Added
        }
    };
    let editor_file = editor.file().clone();
    let saved = if args.dry_run { Saved::Unchanged } else { editor.save(Backup::Make)? };
    let backup = match saved {
        Saved::Written(backup) => backup,
        Saved::Unchanged => None,
    };
    tell(args, &editor_file, wanted.as_ref(), done, backup.as_deref())
}

/// Returns the file of the client that is changed.
fn client_file(args: &InstallArgs) -> Result<PathBuf, Failure> {
    if !args.project {
        return Ok(args.client.user_file(&places()?));
    }
    args.client.project_file().map(PathBuf::from).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} has no file of a project", args.client))
            .hint("without `--project` its own file is changed")
    })
}

/// Refuses to touch a server that only has the name.
fn check_ours(editor: &Editor, args: &InstallArgs, there: bool) -> Result<(), Failure> {
    let url = args.http.as_ref().map(Url::whole);
    let known = editor.file().server(&args.name);
    if !there || known.is_ok_and(|known| is_ourselves(&known, url.as_deref())) {
        return Ok(());
    }
    let path = editor.file().path().display().to_string();
    Err(Failure::configuration(format!("{path}: `{}` is another server", args.name))
        .hint("`--name NAME` gives the hub another name"))
}
