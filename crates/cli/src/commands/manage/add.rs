use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use serde_json::json;
use trunkline_client::transport::Target;
use trunkline_config::{
    ConfigText, EditError, LocalProgram, RemoteEndpoint, RemoteTransport, ServerConfig, ServerLocation,
    ServerName,
};

use super::file::save;
use super::{FileArgs, HubArgs};
use crate::connect::{TargetArgs, print_stdout, with_path, with_scheme};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::trust::trust_written;
use crate::values::{EnvOption, HeaderOption, SecretSource, parse_bearer, parse_duration};

/// Add a server to the configuration
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline add [OPTIONS] NAME URL\n       trunkline add [OPTIONS] NAME -- COMMAND [ARG]...",
    after_help = "A value env:NAME is written as ${NAME}; the variable is read on each connect.\n\
A hub running from the file applies the change.\n\n\
Examples:\n  \
trunkline add files -- npx -y @modelcontextprotocol/server-filesystem ~/shop\n  \
trunkline add wiki https://wiki.example.com/mcp --bearer env:WIKI_TOKEN"
)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Environment variable for the program; VALUE may be
    /// env:NAME, NAME alone passes on yours; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME=VALUE", help_heading = "Server")]
    env: Vec<EnvOption>,
    /// Working directory of the program
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Server")]
    cwd: Option<PathBuf>,
    /// Header to send; VALUE may be env:NAME; repeatable
    #[arg(long, value_name = "NAME:VALUE", help_heading = "Server")]
    header: Vec<HeaderOption>,
    /// Bearer token to send, from env:NAME
    #[arg(long, value_name = "SOURCE", value_parser = parse_bearer, help_heading = "Server")]
    bearer: Option<SecretSource>,
    /// http, sse or websocket [default: detected]
    #[arg(long, value_name = "KIND", value_parser = parse_transport, help_heading = "Server")]
    transport: Option<RemoteTransport>,
    /// Timeout of a call
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Server")]
    timeout: Option<Duration>,
    /// Report not ready (/readyz) without it
    #[arg(long, help_heading = "Server")]
    required: bool,
    /// Add it disabled
    #[arg(long, help_heading = "Server")]
    disabled: bool,
    /// Replace an existing server of the same name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Adds a server.
///
/// # Errors
/// It makes no sense, or the file cannot be changed.
pub(crate) fn run(args: &AddArgs) -> Result<(), CliFailure> {
    add(args).map_err(|failure| failure.with_json(args.file.json))
}

fn add(args: &AddArgs) -> Result<(), CliFailure> {
    let server = server(args)?;
    let name = server.name.as_str();
    let secrets = server.literal_secrets();
    let mut editor = args.file.edit_or_new()?;
    if !secrets.is_empty() {
        editor = editor.private();
    }
    let path = editor.file().path().to_owned();
    if !secrets.is_empty() && !editor.is_private() {
        return Err(readable_by_others(&secrets, &path.display().to_string()));
    }
    let replaces = editor.file().server_names().contains(&name);
    if replaces && args.replace {
        editor.remove(name)?;
    }
    editor.add(&server).map_err(|error| match error {
        EditError::Exists { .. } => CliFailure::from(error).hint("use `--replace` to replace it"),
        error => error.into(),
    })?;
    save(editor)?;
    trust_written(&path, &[name]);
    let heard = args.hub.apply_to_running(&path, name, |hub| hub.reload().map(drop))?;
    let done = if replaces { "replaced" } else { "added" };
    if args.file.json {
        return print_stdout(&format!(
            "{}\n",
            json!({ "server": name, "done": done, "file": path, "hub": heard.to_json() })
        ));
    }
    let place = if replaces { "in" } else { "to" };
    print_stderr(&format!("{done} `{name}` {place} {}; {}\n", path.display(), heard.to_text()));
    Ok(())
}

/// Refuses to write a secret where others can read it.
fn readable_by_others(secrets: &[String], file: &str) -> CliFailure {
    let what = format!("{} would be written to {file}, which other users can read", secrets.join(" and "));
    CliFailure::configuration(what)
        .hint(format!("use env:NAME to refer to an environment variable, or run `chmod 600 {file}`"))
}

/// Makes a server of what was typed.
fn server(args: &AddArgs) -> Result<ServerConfig, CliFailure> {
    let usage = |what: String| CliFailure::new(ExitReason::Usage, what);
    let (name, target) = match (args.target.words.as_slice(), args.target.command.as_slice()) {
        ([], _) => {
            return Err(usage("missing argument: NAME".to_owned())
                .hint("use `trunkline add NAME URL` or `trunkline add NAME -- COMMAND`"));
        }
        ([name], []) => {
            return Err(usage(format!("missing URL or command for `{name}`"))
                .hint("use `trunkline add NAME URL` or `trunkline add NAME -- COMMAND`"));
        }
        ([name], _) => (name, None),
        ([name, target], []) => (name, Some(target)),
        ([_, _, more, ..], []) | ([_, more, ..], _) => {
            return Err(usage(format!("unexpected argument `{more}`")));
        }
    };
    let name = ServerName::parse(name).map_err(|error| usage(format!("`{name}`: {error}")))?;
    let location = match target {
        None => ServerLocation::Program(program(&args.target.command, args)?),
        Some(target) => match target.parse::<Target>() {
            Ok(Target::Url(_)) => ServerLocation::Endpoint(endpoint(target, args)?),
            Ok(_) => return Err(usage(format!("`{target}` is not a URL")).hint(url_hint(&name, target))),
            Err(error) => return Err(usage(format!("`{target}`: {error}"))),
        },
    };
    let mut server = ServerConfig::new(name, location);
    server.enabled = !args.disabled;
    server.required = args.required;
    server.timeout = args.timeout;
    Ok(server)
}

/// Returns what was probably meant by a word that is not a URL.
fn url_hint(name: &ServerName, word: &str) -> String {
    let host = word.split('/').next().unwrap_or_default();
    let is_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let is_name = host.contains('.') && !host.starts_with('.') && host.chars().all(is_host);
    let secure = || is_name.then(|| format!("https://{}", with_path(word)));
    let command = format!("`trunkline add {name} -- {word}`");
    match with_scheme(word).or_else(secure) {
        Some(url) => format!("did you mean `{url}`? A command goes after --: {command}"),
        None => format!("put a command after --: {command}"),
    }
}

fn program(command: &[OsString], args: &AddArgs) -> Result<LocalProgram, CliFailure> {
    if !args.header.is_empty() || args.bearer.is_some() || args.transport.is_some() {
        return Err(CliFailure::new(
            ExitReason::Usage,
            "headers and transports apply only to a server with a URL",
        )
        .hint("use `--env NAME=VALUE` to pass a variable to a program"));
    }
    let mut words = Vec::new();
    for word in command {
        let text = word.to_str().ok_or_else(|| {
            CliFailure::new(ExitReason::Usage, format!("{} is not valid UTF-8", word.display()))
        })?;
        words.push(ConfigText::new(text));
    }
    let mut words = words.into_iter();
    let mut program = LocalProgram::new(words.next().unwrap_or_else(|| ConfigText::new("")));
    program.args = words.collect();
    for variable in &args.env {
        program.env.insert(variable.name.clone(), config_text("--env", &variable.value)?);
    }
    program.cwd = args.cwd.as_ref().map(|folder| ConfigText::new(folder.display().to_string()));
    Ok(program)
}

fn endpoint(url: &str, args: &AddArgs) -> Result<RemoteEndpoint, CliFailure> {
    if !args.env.is_empty() || args.cwd.is_some() {
        return Err(CliFailure::new(ExitReason::Usage, "variables and folders apply only to a program")
            .hint("use `--header NAME:VALUE` to send a header to a URL"));
    }
    let mut headers = BTreeMap::new();
    for header in &args.header {
        headers.insert(header.name.to_ascii_lowercase(), config_text("--header", &header.value)?);
    }
    if let Some(source) = &args.bearer {
        let token = config_text("--bearer", source)?;
        headers.insert("authorization".to_owned(), ConfigText::new(format!("Bearer {}", token.as_written())));
    }
    Ok(RemoteEndpoint { headers, transport: args.transport.unwrap_or_default(), ..RemoteEndpoint::new(url) })
}

/// Returns a value in its written form: a variable by name.
fn config_text(option: &str, source: &SecretSource) -> Result<ConfigText, CliFailure> {
    match source {
        SecretSource::Literal(value) => Ok(ConfigText::new(value)),
        SecretSource::Variable(name) => Ok(ConfigText::new(format!("${{{name}}}"))),
        SecretSource::File(file) => Err(CliFailure::new(
            ExitReason::Usage,
            format!(
                "`{option}`: a configuration can refer to variables but not to files such as {}",
                file.display()
            ),
        )
        .hint("use env:NAME to refer to an environment variable")),
    }
}

fn parse_transport(text: &str) -> Result<RemoteTransport, String> {
    [RemoteTransport::Http, RemoteTransport::Sse, RemoteTransport::WebSocket]
        .into_iter()
        .find(|wire| wire.as_str() == text)
        .ok_or_else(|| "expected http, sse or websocket".to_owned())
}
