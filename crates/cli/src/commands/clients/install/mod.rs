//! `trunkline install CLIENT`: the hub in the file of a client, and out of it again.

mod entry;
mod messages;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args;
use trunkline_client::transport::Url;
use trunkline_config::find::ClientApp;
use trunkline_config::{BackupMode, ConfigEditor, SaveOutcome, ServerConfig, ServerName};

use self::entry::hub_entry;
use self::messages::print_change;
use super::own_hub::is_own_hub;
use super::{client_parser, user_directories};
use crate::commands::manage::FileArgs;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::trust;

/// Add the hub to Claude Code, Claude Desktop, Cursor …
#[derive(Debug, Args)]
#[command(after_help = "CLIENT is amazon-q, amp, claude-code, claude-desktop, cline, codex, continue,\n\
copilot, cursor, gemini, goose, junie, kiro, lm-studio, opencode, qwen, roo,\n\
vscode, windsurf or zed. The rest of its file stays unchanged, and a backup is\n\
saved next to it.\n\n\
Examples:\n  trunkline install claude-code\n  trunkline install cursor --http http://127.0.0.1:7411/mcp\n  \
trunkline install claude-desktop --uninstall")]
pub(crate) struct InstallArgs {
    /// Client to add it to
    #[arg(value_parser = client_parser(), hide_possible_values = true)]
    client: ClientApp,
    /// Name of the hub in the client
    #[arg(long, value_name = "NAME", default_value = "trunkline")]
    name: String,
    /// Use the hub running at this URL, instead of one
    /// that the client starts
    #[arg(verbatim_doc_comment, long, value_name = "URL")]
    http: Option<Url>,
    /// Use the client's project file in this folder
    #[arg(long)]
    project: bool,
    /// Remove the hub from the client
    #[arg(long, conflicts_with = "http")]
    uninstall: bool,
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    file: FileArgs,
}

/// What was done to the file of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallChange {
    Added,
    Replaced,
    Removed,
    /// It was so already.
    Unchanged,
}

/// Puts the hub into a client, or takes it out.
///
/// # Errors
/// The client's file cannot be changed, or the hub has no configuration.
pub(crate) fn run(args: &InstallArgs) -> Result<(), CliFailure> {
    install(args).map_err(|failure| failure.with_json(args.file.json))
}

fn install(args: &InstallArgs) -> Result<(), CliFailure> {
    let path = client_file(args)?;
    let name = ServerName::parse(&args.name)
        .map_err(|error| CliFailure::new(ExitReason::Usage, format!("`{}`: {error}", args.name)))?;
    let mut editor = ConfigEditor::open_or_new(&path)?.container(args.client.container()).private();
    let wanted = if args.uninstall { None } else { Some(hub_entry(args, &name, &path)?) };
    let there = editor.file().server_names().contains(&name.as_str());
    check_own_entry(&editor, args, there)?;
    let done = match &wanted {
        None if !there => InstallChange::Unchanged,
        None => {
            editor.remove_added(name.as_str())?;
            InstallChange::Removed
        }
        Some(hub) if there => {
            if editor.file().server(name.as_str()).is_ok_and(|known| known.same_definition(hub)) {
                InstallChange::Unchanged
            } else {
                editor.remove(name.as_str())?;
                editor.add(hub)?;
                InstallChange::Replaced
            }
        }
        Some(hub) => {
            editor.add(hub)?;
            InstallChange::Added
        }
    };
    if let (Some(hub), InstallChange::Added | InstallChange::Replaced) = (&wanted, done) {
        check_private(&editor, hub)?;
    }
    if wanted.is_some() && args.http.is_none() && !args.dry_run {
        trust_hub_file(args)?;
    }
    let editor_file = editor.file().clone();
    let saved = if args.dry_run { SaveOutcome::Unchanged } else { editor.save(BackupMode::Make)? };
    print_change(args, &editor_file, wanted.as_ref(), done, &saved)
}

/// Trusts the file of the hub, which the client starts without a terminal. At a terminal the user is prompted.
fn trust_hub_file(args: &InstallArgs) -> Result<(), CliFailure> {
    let file = args.file.read_expanded()?;
    let untrusted = trust::untrusted_items(&file);
    if untrusted.is_empty() {
        return Ok(());
    }
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        trust::ask(file.path(), &untrusted)?;
    } else if !args.file.json {
        let (path, items) = (file.path().display(), trust::list_items(&untrusted));
        print_stderr(&format!("trusted {path}, which the client may start now:\n{items}"));
    }
    trust::trust_items(file.path(), &untrusted)
}

/// Returns the file of the client that is changed.
fn client_file(args: &InstallArgs) -> Result<PathBuf, CliFailure> {
    if !args.project {
        return Ok(args.client.user_file(&user_directories()?));
    }
    args.client.project_file().map(PathBuf::from).ok_or_else(|| {
        CliFailure::new(ExitReason::Usage, format!("{} has no project file", args.client))
            .hint("omit `--project` to change its user file")
    })
}

/// Refuses to write a secret where others can read it.
fn check_private(editor: &ConfigEditor, hub: &ServerConfig) -> Result<(), CliFailure> {
    let secrets = hub.literal_secrets();
    if secrets.is_empty() || editor.is_private() {
        return Ok(());
    }
    let file = editor.file().path().display();
    Err(CliFailure::configuration(format!(
        "{} would be written to {file}, which other users can read",
        secrets.join(" and ")
    ))
    .hint(format!("use a URL without a secret, or run `chmod 600 {file}`")))
}

/// Refuses to touch a server that only has the name.
fn check_own_entry(editor: &ConfigEditor, args: &InstallArgs, there: bool) -> Result<(), CliFailure> {
    let url = args.http.as_ref().map(Url::to_full_string);
    let known = editor.file().server(&args.name);
    if !there || known.is_ok_and(|known| is_own_hub(&known, url.as_deref())) {
        return Ok(());
    }
    let path = editor.file().path().display().to_string();
    Err(CliFailure::configuration(format!("{path}: `{}` is already another server", args.name))
        .hint("choose another name for the hub with `--name NAME`"))
}
