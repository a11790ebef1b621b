use std::path::Path;

use serde_json::json;
use trunkline_config::find::ClientApp;
use trunkline_config::{ConfigEditor, ConfigFile, ConfigFormat, ConfigVariables, SaveOutcome, ServerConfig};

use super::{InstallArgs, InstallChange};
use crate::connect::print_stdout;
use crate::exit::{CliFailure, print_stderr};

/// Prints the change to the file of a client.
///
/// # Errors
/// Standard output cannot be written to.
pub(super) fn print_change(
    args: &InstallArgs,
    client_file: &ConfigFile,
    wanted: Option<&ServerConfig>,
    done: InstallChange,
    saved: &SaveOutcome,
) -> Result<(), CliFailure> {
    let path = client_file.path();
    let backup = match saved {
        SaveOutcome::Written(backup) => backup.as_deref(),
        SaveOutcome::Unchanged | SaveOutcome::Deleted => None,
    };
    if args.file.json {
        return print_json(args, path, done, backup);
    }
    let (name, file, client) = (&args.name, path.display(), args.client);
    if done == InstallChange::Unchanged {
        let as_wanted = if args.uninstall { "is not in" } else { "is already in" };
        print_stderr(&format!("`{name}` {as_wanted} {file}; nothing to do\n"));
        return Ok(());
    }
    print_stdout(&diff_lines(args, path, wanted, done)?)?;
    if args.dry_run {
        print_stderr("nothing was written\n");
        return Ok(());
    }
    let copy = backup
        .map(|copy| format!("; the previous version was saved as {}", copy.display()))
        .unwrap_or_default();
    if *saved == SaveOutcome::Deleted {
        print_stderr(&format!("removed {file}, which had only `{name}`\nrestart {client} to apply\n"));
        return Ok(());
    }
    if done == InstallChange::Removed {
        print_stderr(&format!("removed `{name}` from {file}{copy}\nrestart {client} to apply\n"));
        return Ok(());
    }
    print_stderr(&format!("added `{name}` to {file}{copy}\n{}\n", restart_hint(client)));
    if args.http.is_none() {
        print_config_notes(args, client_file)?;
    }
    Ok(())
}

/// Prints the change as JSON.
fn print_json(
    args: &InstallArgs,
    path: &Path,
    done: InstallChange,
    backup: Option<&Path>,
) -> Result<(), CliFailure> {
    let word = match done {
        InstallChange::Added => "added",
        InstallChange::Replaced => "replaced",
        InstallChange::Removed => "removed",
        InstallChange::Unchanged => "unchanged",
    };
    let report = json!({
        "client": args.client.as_str(), "file": path, "name": args.name, "done": word, "backup": backup,
        "written": !args.dry_run && done != InstallChange::Unchanged,
    });
    print_stdout(&format!("{report}\n"))
}

/// Prints notes on the hub's own configuration.
fn print_config_notes(args: &InstallArgs, client_file: &ConfigFile) -> Result<(), CliFailure> {
    let (file, client) = (args.file.read()?, args.client);
    let servers = file.valid_and_invalid_servers().0;
    // A program with windows does not have the variables of a shell.
    let bare = ConfigFile::parse(file.path(), file.text(), ConfigVariables::fixed(standard_variables()));
    let lacks =
        |server: &&ServerConfig| bare.as_ref().is_ok_and(|bare| bare.server(server.name.as_str()).is_err());
    let lacking: Vec<&str> = servers.iter().filter(lacks).map(|server| server.name.as_str()).collect();
    if !lacking.is_empty() && client != ClientApp::ClaudeCode {
        let (config, lacking) = (file.path().display(), lacking.join(", "));
        print_stderr(&format!(
            "{config} uses environment variables for {lacking}; {client} must set them too, or these servers are unavailable\n"
        ));
    }
    let is_there = |server: &&ServerConfig| {
        client_file.server(server.name.as_str()).is_ok_and(|known| known.same_definition(server))
    };
    let twice: Vec<_> = servers.iter().filter(is_there).map(|server| format!("`{}`", server.name)).collect();
    if !twice.is_empty() {
        let whose_tools = if twice.len() == 1 { "its tools" } else { "their tools" };
        let twice = twice.join(", ");
        print_stderr(&format!("{client} still lists {twice} directly, so {whose_tools} now appear twice\n"));
    }
    Ok(())
}

/// The variables that every program has.
fn standard_variables() -> Vec<(String, String)> {
    let names = ["HOME", "PATH", "USER", "USERPROFILE", "APPDATA"];
    names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}

/// Writes what changes, a line for each: what goes with `-`, and what comes with `+`.
fn diff_lines(
    args: &InstallArgs,
    path: &Path,
    wanted: Option<&ServerConfig>,
    done: InstallChange,
) -> Result<String, CliFailure> {
    let client_format = ConfigFormat::of(path);
    let mut text = format!("{}\n  \"{}\"\n", path.display(), args.client.container());
    if done != InstallChange::Added {
        text.push_str(&format!("-   {:?}\n", args.name));
    }
    if let Some(hub) = wanted {
        // The entry is rendered into an empty file, so that nothing else in the client's file is printed.
        let is_json = client_format == ConfigFormat::Json;
        let mut alone = ConfigEditor::parse(path, if is_json { "{}" } else { "" })?;
        alone = alone.container(args.client.container());
        alone.add(hub)?;
        let lines: Vec<&str> = alone.file().text().lines().collect();
        let inside = if is_json { lines.get(2..lines.len().saturating_sub(2)) } else { Some(&lines[..]) };
        let skipped = usize::from(is_json);
        inside.unwrap_or_default().iter().for_each(|line| {
            text.push_str(&format!("+{}\n", line.get(skipped..).unwrap_or_default()));
        });
    }
    // The query of an address may well be a secret.
    Ok(match &args.http {
        Some(url) => text.replace(&*url.to_full_string(), &url.to_string()),
        None => text,
    })
}

/// Returns how to make a client reload its file.
fn restart_hint(client: ClientApp) -> String {
    match client {
        ClientApp::ClaudeCode => "restart `claude` to use it; `/mcp` shows it".to_owned(),
        ClientApp::ClaudeDesktop => "quit and restart Claude Desktop to use it".to_owned(),
        ClientApp::Cursor => "Cursor asks whether to enable it; see MCP in its settings".to_owned(),
        ClientApp::VsCode => "start it with `MCP: List Servers` in VS Code".to_owned(),
        _ => format!("restart {client} to use it"),
    }
}
