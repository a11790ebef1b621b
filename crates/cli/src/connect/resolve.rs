use std::time::Duration;

use trunkline_client::transport::{Command, Target};
use trunkline_config::{Endpoint, Program, Reach};

use super::lookup::look_up;
use super::options::ConnectArgs;
use super::words::target_failure;
use crate::exit::Failure;

/// What a target stands for, with what its configuration says beside.
pub(crate) struct Resolved {
    pub(crate) target: Target,
    /// What the target is called where people read it: with variables by name and not by value.
    pub(crate) label: String,
    /// Headers of the configuration; those of the command line come on top.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Option<Duration>,
    /// What is about to be started, if it was not typed but read from a file; it holds no secrets.
    pub(crate) announcement: Option<String>,
}

/// Finds what a target stands for: a name is looked up, and a program gets its folder and its variables.
///
/// # Errors
/// The name is configured nowhere, or a variable is not where it should be.
pub(crate) fn resolve(args: &ConnectArgs, target: Target) -> Result<Resolved, Failure> {
    let plain = |target: Target| {
        let label = target.to_string();
        Resolved { target, label, headers: Vec::new(), timeout: None, announcement: None }
    };
    match target {
        Target::Command(command) => Ok(plain(surround(args, command)?.into())),
        Target::Name { name, .. } => by_name(args, &name),
        other => Ok(plain(other)),
    }
}

fn by_name(args: &ConnectArgs, name: &str) -> Result<Resolved, Failure> {
    let found = look_up(name, args.config.as_deref())?;
    let timeout = found.server.timeout;
    match &found.server.reach {
        Reach::Program(program) => {
            let label = program.command_line();
            let announcement = Some(format!("starting {label} ({})", found.file));
            let target = surround(args, command(program))?.into();
            Ok(Resolved { target, label, headers: Vec::new(), timeout, announcement })
        }
        Reach::Endpoint(endpoint) => {
            let label = endpoint.address();
            let target = endpoint.url.expose().parse::<Target>();
            let target = target.map_err(|error| target_failure(&label, &error))?;
            Ok(Resolved { target, label, headers: headers(endpoint), timeout, announcement: None })
        }
    }
}

fn command(program: &Program) -> Command {
    let arguments = program.args.iter().map(|argument| argument.expose().to_owned());
    let mut command = Command::new(program.command.expose()).args(arguments);
    if let Some(folder) = program.folder() {
        command = command.current_dir(folder);
    }
    program.env.iter().fold(command, |command, (name, value)| command.env(name, value.expose()))
}

fn headers(endpoint: &Endpoint) -> Vec<(String, String)> {
    endpoint.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

/// Gives a program the folder and the variables of the command line.
fn surround(args: &ConnectArgs, mut command: Command) -> Result<Command, Failure> {
    if let Some(folder) = &args.cwd {
        command = command.current_dir(folder);
    }
    for variable in &args.env {
        let value = variable.value.fetch().map_err(|problem| {
            Failure::configuration(format!("`--env {}`: {problem}", variable.name))
                .hint("write NAME=VALUE, NAME=env:OTHER, NAME=@FILE, or NAME alone to pass on yours")
        })?;
        command = command.env(&variable.name, value);
    }
    Ok(command)
}
