use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trunkline_config::find::{ClientApp, ClientImport, imports};
use trunkline_config::{BackupMode, ConfigEditor, SaveOutcome};

use super::import_outcome::{ImportOutcome, ServerImport, import_servers};
use super::{client_parser, user_directories};
use crate::commands::manage::{FileArgs, HubArgs};
use crate::config_failure::config_failure;
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};
use crate::terminal::{escape_line, pad};
use crate::trust::trust_written;

/// Import servers from Claude Code, Claude Desktop, Cursor …
#[derive(Debug, Args)]
#[command(after_help = "CLIENT is amazon-q, amp, claude-code, claude-desktop, cline, codex, continue,\n\
copilot, cursor, gemini, goose, junie, kiro, lm-studio, opencode, qwen, roo,\n\
vscode, windsurf or zed. Their files are only read. Without CLIENT or --all,\n\
only lists what was found. A literal secret is written only to a file that no\n\
other user can read.\n\n\
Examples:\n  trunkline import\n  trunkline import --all\n  trunkline import cursor --dry-run")]
pub(crate) struct ImportArgs {
    /// Import the servers of this client
    #[arg(value_parser = client_parser(), hide_possible_values = true, conflicts_with = "all")]
    client: Option<ClientApp>,
    /// Import the servers of all clients
    #[arg(long)]
    all: bool,
    /// Show what would be imported without writing it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Takes over servers.
///
/// # Errors
/// The client that was named has none, or the file cannot be changed.
pub(crate) fn run(args: &ImportArgs) -> Result<(), CliFailure> {
    import(args).map_err(|failure| failure.with_json(args.file.json))
}

fn import(args: &ImportArgs) -> Result<(), CliFailure> {
    let path = args.file.config.clone().unwrap_or_else(|| PathBuf::from("trunkline.toml"));
    let folder = std::env::current_dir().ok();
    let found = imports(&user_directories()?, folder.as_deref());
    let wanted = |import: &&ClientImport| args.client.is_none_or(|client| client == import.client);
    // A client's own file is not imported into itself.
    let found: Vec<&ClientImport> =
        found.iter().filter(wanted).filter(|import| !is_same_file(&import.path, &path)).collect();
    let unusable: Vec<&&ClientImport> = found.iter().filter(|import| import.file.is_err()).collect();
    if let (Some(client), true) = (args.client, found.len() == unusable.len()) {
        return Err(no_servers_failure(client, &unusable)?);
    }
    let mut editor = ConfigEditor::open_or_new(&path)?;
    if found.iter().any(|import| has_secrets(import)) {
        editor = editor.private();
    }
    let hub = args.hub.find(&path)?;
    let own = hub.as_ref().and_then(|hub| hub.report().ok()?.url);
    let servers = import_servers(&mut editor, &found, own.as_deref());
    let only_looks = args.dry_run || (args.client.is_none() && !args.all);
    let imported_count = servers.iter().filter(|server| server.outcome == ImportOutcome::Imported).count();
    let mut is_reloaded = false;
    // An empty trunkline.toml would hide the mcp.json beside it.
    let is_written = !only_looks && imported_count > 0;
    let hidden = hidden_file(args, &path).filter(|_| is_written && editor.is_new());
    if is_written && editor.save(BackupMode::Skip)? != SaveOutcome::Unchanged {
        let imported = servers.iter().filter(|server| server.outcome == ImportOutcome::Imported);
        trust_written(&path, &imported.map(|server| server.name.as_str()).collect::<Vec<_>>());
        is_reloaded = hub.is_some();
        hub.map(|hub| hub.reload()).transpose()?;
    }
    let problems = unusable.iter().filter_map(|import| Some((import, import.file.as_ref().err()?)));
    if args.file.json {
        let servers: Vec<_> = servers.iter().map(|server| server.to_json(&path, !only_looks)).collect();
        let problems = problems.map(|(import, error)| {
            json!({ "client": import.client.as_str(), "path": import.path, "reason": error.to_string() })
        });
        let problems: Vec<_> = problems.collect();
        let report = json!({
            "file": path, "imported": if only_looks { 0 } else { imported_count }, "written": is_written, "servers": servers,
            "problems": problems,
        });
        return print_stdout(&format!("{report}\n"));
    }
    print_stdout(&as_lines(&servers, &path, !only_looks))?;
    for (import, error) in problems {
        print_stderr(&format!("cannot import from {}: {}\n", import.client, escape_line(&error.to_string())));
    }
    print_stderr(&format!(
        "{}\n",
        summary(imported_count, servers.len(), only_looks, args.dry_run, is_reloaded, &path)
    ));
    if let Some(hidden) = hidden {
        print_stderr(&format!("{} is used instead of {} from now on\n", path.display(), hidden.display()));
    }
    Ok(())
}

/// Reports whether a file of a client has a secret in it.
fn has_secrets(import: &ClientImport) -> bool {
    import.file.as_ref().is_ok_and(|file| {
        file.valid_and_invalid_servers().0.iter().any(|server| !server.literal_secrets().is_empty())
    })
}

/// Returns the `mcp.json` that a new file of this folder hides.
fn hidden_file(args: &ImportArgs, path: &Path) -> Option<PathBuf> {
    let hidden = path.with_file_name("mcp.json");
    (args.file.config.is_none() && hidden.exists()).then_some(hidden)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    whole(one).is_some() && whole(one) == whole(other)
}

/// Returns the failure for a client without servers, or with an invalid file.
fn no_servers_failure(client: ClientApp, unusable: &[&&ClientImport]) -> Result<CliFailure, CliFailure> {
    if let Some(error) = unusable.iter().find_map(|import| import.file.as_ref().err()) {
        return Ok(config_failure(error.problems()));
    }
    let places = user_directories()?;
    let user = client.user_file(&places).display().to_string();
    let project = client.project_file().map(|file| format!(" and {file}")).unwrap_or_default();
    Ok(CliFailure::configuration(format!("no servers found in {client}"))
        .hint(format!("searched {user}{project}")))
}

/// Writes a line for each server, and one for each thing that is to be known about it.
fn as_lines(servers: &[ServerImport], path: &Path, is_written: bool) -> String {
    let width = servers.iter().map(|server| server.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for server in servers {
        let name = pad(&escape_line(&server.name), width);
        let why = server.outcome.reason(path).unwrap_or_else(|| server.target.clone());
        let word = pad(server.outcome.label(is_written), 6);
        text.push_str(&format!("{word}  {name}  ({}) {}\n", server.origin, escape_line(&why)));
        for note in &server.notes {
            text.push_str(&format!("{}{}\n", " ".repeat(width + 10), escape_line(note)));
        }
    }
    text
}

fn summary(
    imported_count: usize,
    all: usize,
    only_looks: bool,
    dry_run: bool,
    is_reloaded: bool,
    path: &Path,
) -> String {
    let path = path.display();
    let (servers, were) = match imported_count {
        1 => ("1 server".to_owned(), "was"),
        several => (format!("{several} servers"), "were"),
    };
    match (imported_count, only_looks) {
        (0, _) if all == 0 => "no servers found in any client".to_owned(),
        (0, _) => format!("nothing to add to {path}"),
        (_, true) if dry_run => format!("{servers} would be added to {path}; nothing was written"),
        (_, true) => format!("nothing was written; `trunkline import --all` adds {servers} to {path}"),
        (_, false) if is_reloaded => {
            format!("{servers} {were} added to {path}; the running hub has reloaded it")
        }
        (_, false) => format!("{servers} {were} added to {path}; start the hub with `trunkline serve`"),
    }
}
