use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use trunkline_client::transport::Url;
use trunkline_config::find::Client;
use trunkline_config::{
    Backup, ConfigFile, Editor, Endpoint, Problem, Program, Reach, Saved, ServerConfig, ServerName, Text,
    Variables,
};

use super::ourselves::is_ourselves;
use super::{parse_client, places};
use crate::commands::manage::FileArgs;
use crate::connect::print;
use crate::exit::{Exit, Failure, say};

/// Put the hub into Claude Code, Claude Desktop, Cursor …
#[derive(Debug, Args)]
#[command(after_help = "CLIENT is claude-code, claude-desktop, cursor, vscode or windsurf. Everything\n\
else in its file stays as it is, and a copy of the file is left beside it.\n\n\
Examples:\n  trunkline install claude-code\n  trunkline install cursor --http http://127.0.0.1:7411/mcp\n  \
trunkline install claude-desktop --uninstall")]
pub(crate) struct InstallArgs {
    /// The client
    #[arg(value_parser = parse_client)]
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
    let saved = if args.dry_run { Saved::Unchanged } else { editor.save(Backup::Make)? };
    let backup = match saved {
        Saved::Written(backup) => backup,
        Saved::Unchanged => None,
    };
    tell(args, &path, wanted.as_ref(), done, backup.as_deref())
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

/// Describes the hub as a server of a client.
fn hub(args: &InstallArgs, name: &ServerName, client_file: &Path) -> Result<ServerConfig, Failure> {
    let reach = match &args.http {
        Some(url) if takes_addresses(args.client) && !url.scheme().is_websocket() => {
            Reach::Endpoint(Endpoint::new(&*url.whole()))
        }
        // What a client cannot speak itself, it speaks through the bridge.
        Some(url) => program(&["bridge", &url.whole()])?,
        None => {
            let config = args.file.path()?;
            let config = std::path::absolute(&config).unwrap_or(config);
            if std::fs::canonicalize(&config).ok() == std::fs::canonicalize(client_file).ok() {
                return Err(Failure::configuration(format!(
                    "{} is the client's own file, and the hub would serve itself",
                    config.display()
                ))
                .hint("`trunkline import --all` makes a trunkline.toml of it"));
            }
            let config = config.to_str().ok_or_else(|| {
                Failure::configuration(format!("the path {} is not text in UTF-8", config.display()))
            })?;
            program(&["serve", "--stdio", "--config", config])?
        }
    };
    Ok(ServerConfig::new(name.clone(), reach))
}

/// Reports whether the file of a client can have addresses: others take only programs, and fail over anything else.
fn takes_addresses(client: Client) -> bool {
    matches!(client, Client::ClaudeCode | Client::Cursor | Client::VsCode)
}

/// Describes this program with some arguments. Clients have another PATH than a shell, and so it is named in full.
fn program(args: &[&str]) -> Result<Reach, Failure> {
    let unknown = |what: String| Failure::new(Exit::Failed, what);
    let here = std::env::current_exe()
        .map_err(|error| unknown(format!("it is not known where this program is: {error}")))?;
    let named = in_path(&here).unwrap_or(here);
    let command = named
        .to_str()
        .ok_or_else(|| unknown(format!("the path {} is not text in UTF-8", named.display())))?;
    let mut program = Program::new(command);
    program.args = args.iter().map(|word| Text::new(*word)).collect();
    Ok(Reach::Program(program))
}

/// Finds the way to this program through the PATH, which stays the same when another version is installed.
fn in_path(here: &Path) -> Option<PathBuf> {
    let here = std::fs::canonicalize(here).ok()?;
    let name = here.file_name()?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|known| std::fs::canonicalize(known).is_ok_and(|known| known == here))
}

fn tell(
    args: &InstallArgs,
    path: &Path,
    wanted: Option<&ServerConfig>,
    done: Done,
    backup: Option<&Path>,
) -> Result<(), Failure> {
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
    if let Some(missing) = args.http.is_none().then(|| missing_variables(args)).transpose()?.flatten() {
        say(&format!("{missing}\n"));
    }
    Ok(())
}

/// Says which variables the configuration needs, since a program with windows does not have those of a shell.
fn missing_variables(args: &InstallArgs) -> Result<Option<String>, Failure> {
    if args.client == Client::ClaudeCode {
        return Ok(None);
    }
    let file = args.file.read()?;
    let bare = ConfigFile::parse(file.path(), file.text(), Variables::given(known_everywhere()));
    let problems = bare.map(|bare| bare.each_server().1).unwrap_or_default();
    let servers: Vec<&str> = problems.iter().filter_map(Problem::server_name).collect();
    Ok((!servers.is_empty()).then(|| {
        format!(
            "{} uses variables for {}; {} must have them too, or the hub does not start",
            file.path().display(),
            servers.join(", "),
            args.client
        )
    }))
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
