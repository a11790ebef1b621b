use std::path::Path;

use serde_json::json;
use trunkline_config::find::Client;
use trunkline_config::{ConfigFile, Editor, ServerConfig, Variables};

use super::{Done, InstallArgs};
use crate::connect::print;
use crate::exit::{Failure, say};

/// Tells what was done to the file of a client.
///
/// # Errors
/// Standard output cannot be written to.
pub(super) fn tell(
    args: &InstallArgs,
    client_file: &ConfigFile,
    wanted: Option<&ServerConfig>,
    done: Done,
    backup: Option<&Path>,
) -> Result<(), Failure> {
    let path = client_file.path();
    if args.file.json {
        let word = match done {
            Done::Added => "added",
            Done::Replaced => "replaced",
            Done::Removed => "removed",
            Done::Nothing => "nothing",
        };
        let told = json!({
            "client": args.client.as_str(), "file": path, "name": args.name, "done": word, "backup": backup,
            "written": !args.dry_run && done != Done::Nothing,
        });
        return print(&format!("{told}\n"));
    }
    let (name, file, client) = (&args.name, path.display(), args.client);
    if done == Done::Nothing {
        let as_wanted = if args.uninstall { "is not in" } else { "is already in" };
        say(&format!("`{name}` {as_wanted} {file}; nothing is to be done\n"));
        return Ok(());
    }
    print(&change(args, path, wanted, done)?)?;
    if args.dry_run {
        say("nothing was written\n");
        return Ok(());
    }
    let copy =
        backup.map(|copy| format!("; a copy of what it was is {}", copy.display())).unwrap_or_default();
    if done == Done::Removed {
        say(&format!(
            "`{name}` was taken out of {file}{copy}\n{client} is without it when it is started again\n"
        ));
        return Ok(());
    }
    say(&format!("`{name}` was put into {file}{copy}\n{}\n", restart(client)));
    if args.http.is_none() {
        tell_of_config(args, client_file)?;
    }
    Ok(())
}

/// Tells what of the hub's own configuration is to be known now.
fn tell_of_config(args: &InstallArgs, client_file: &ConfigFile) -> Result<(), Failure> {
    let (file, client) = (args.file.read()?, args.client);
    let servers = file.each_server().0;
    // A program with windows does not have the variables of a shell.
    let bare = ConfigFile::parse(file.path(), file.text(), Variables::given(known_everywhere()));
    let lacks =
        |server: &&ServerConfig| bare.as_ref().is_ok_and(|bare| bare.server(server.name.as_str()).is_err());
    let lacking: Vec<&str> = servers.iter().filter(lacks).map(|server| server.name.as_str()).collect();
    if !lacking.is_empty() && client != Client::ClaudeCode {
        let (config, lacking) = (file.path().display(), lacking.join(", "));
        say(&format!(
            "{config} uses variables for {lacking}; {client} must have them too, or the hub does not start\n"
        ));
    }
    let is_there = |server: &&ServerConfig| {
        client_file.server(server.name.as_str()).is_ok_and(|known| known.is_written_like(server))
    };
    let twice: Vec<&str> = servers.iter().filter(is_there).map(|server| server.name.as_str()).collect();
    if !twice.is_empty() {
        say(&format!("{client} still has {} itself, and has what they offer twice now\n", twice.join(", ")));
    }
    Ok(())
}

/// The variables that every program has.
fn known_everywhere() -> Vec<(String, String)> {
    let names = ["HOME", "PATH", "USER", "USERPROFILE", "APPDATA"];
    names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}

/// Writes what changes, a line for each: what goes with `-`, and what comes with `+`.
fn change(
    args: &InstallArgs,
    path: &Path,
    wanted: Option<&ServerConfig>,
    done: Done,
) -> Result<String, Failure> {
    let mut text = format!("{}\n  \"{}\"\n", path.display(), args.client.container());
    if done != Done::Added {
        text.push_str(&format!("-   {:?}\n", args.name));
    }
    if let Some(hub) = wanted {
        // It is written as into a file of its own, since what stands around it is nobody's business here.
        let mut alone = Editor::parse(path, "{}")?.container(args.client.container());
        alone.add(hub)?;
        let lines: Vec<&str> = alone.file().text().lines().collect();
        let inside = lines.get(2..lines.len().saturating_sub(2)).unwrap_or_default();
        inside.iter().for_each(|line| text.push_str(&format!("+{}\n", line.get(1..).unwrap_or_default())));
    }
    Ok(text)
}

/// Says what makes a client read its file again.
fn restart(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => "start `claude` anew to use it; `/mcp` shows it",
        Client::ClaudeDesktop => "quit Claude Desktop and start it again to use it",
        Client::Cursor => "Cursor asks whether to use it; its settings show it under MCP",
        Client::VsCode => "`MCP: List Servers` in VS Code starts it",
        _ => "start the client again to use it",
    }
}
