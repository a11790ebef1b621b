use std::path::PathBuf;
use std::time::Duration;

use trunkline_client::config;
use trunkline_client::transport::{Command, Target};
use trunkline_config::{RemoteEndpoint, ServerConfig, ServerLocation};

use super::command_words::target_failure;
use super::lookup::look_up;
use super::options::TargetOptionArgs;
use crate::exit::CliFailure;

/// A resolved target, with its configuration.
pub(crate) struct ResolvedTarget {
    pub(crate) target: Target,
    /// The displayed name of the target: with variables by name and not by value.
    pub(crate) label: String,
    /// Headers of the configuration; those of the command line come on top.
    pub(crate) headers: Vec<(String, String)>,
    /// The configuration of the server, if it was found by name.
    pub(crate) configured: Option<ServerConfig>,
    /// What is about to be started, if it was not typed but read from a file, and other servers of the same name; they hold
    /// no secrets.
    pub(crate) announcements: Vec<String>,
    /// The file in which the name was found.
    pub(crate) config_file: Option<PathBuf>,
}

impl ResolvedTarget {
    /// Returns the configured timeout of the server.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.configured.as_ref().and_then(|server| server.timeout)
    }
}

/// Resolves a target: a name is looked up, and a program gets its folder and its variables.
///
/// # Errors
/// The name is configured nowhere, or a variable is not where it should be.
pub(crate) fn resolve(args: &TargetOptionArgs, target: Target) -> Result<ResolvedTarget, CliFailure> {
    let plain = |target: Target| {
        let label = target.to_string();
        ResolvedTarget {
            target,
            label,
            headers: Vec::new(),
            configured: None,
            announcements: Vec::new(),
            config_file: None,
        }
    };
    match target {
        Target::Command(command) => Ok(plain(with_environment(args, command)?.into())),
        Target::Name { name, .. } => resolve_name(args, &name),
        other => Ok(plain(other)),
    }
}

fn resolve_name(args: &TargetOptionArgs, name: &str) -> Result<ResolvedTarget, CliFailure> {
    let found = look_up(name, args.config.as_deref())?;
    let location = &found.server.location;
    let (label, headers) = match location {
        ServerLocation::Program(program) => (program.command_line(), Vec::new()),
        ServerLocation::Endpoint(endpoint) => (endpoint.address(), headers(endpoint)),
    };
    let mut announcements: Vec<String> = Vec::new();
    if !found.other_files.is_empty() {
        let others: Vec<_> = found.other_files.iter().map(|file| file.display().to_string()).collect();
        announcements.push(format!(
            "using `{name}` of {}; another server of this name is in {} (choose a file with --config)",
            found.file.display(),
            others.join(" and ")
        ));
    }
    let target = match config::target(location) {
        Ok(Target::Command(command)) => {
            announcements.push(format!("starting {label} ({})", found.file.display()));
            with_environment(args, command)?.into()
        }
        Ok(other) => other,
        Err(error) => return Err(target_failure(&label, &error)),
    };
    let (configured, config_file) = (Some(found.server), Some(found.file));
    Ok(ResolvedTarget { target, label, headers, configured, announcements, config_file })
}

fn headers(endpoint: &RemoteEndpoint) -> Vec<(String, String)> {
    endpoint.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

/// Gives a program the folder and the variables of the command line.
fn with_environment(args: &TargetOptionArgs, mut command: Command) -> Result<Command, CliFailure> {
    if let Some(folder) = &args.cwd {
        command = command.current_dir(folder);
    }
    for variable in &args.env {
        let value = variable.value.fetch().map_err(|problem| {
            CliFailure::configuration(format!("`--env {}`: {problem}", variable.name))
                .hint("use NAME=VALUE, NAME=env:OTHER, NAME=@FILE, or NAME alone to pass on yours")
        })?;
        command = command.env(&variable.name, value);
    }
    Ok(command)
}
