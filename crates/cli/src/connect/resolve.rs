use trunkline_client::transport::{Command, Target};

use super::options::ConnectArgs;
use crate::exit::Failure;

/// Finds what a target stands for: a name is looked up, and a program gets its folder and its variables.
///
/// # Errors
/// The name is configured nowhere, or a variable is not where it should be.
pub(crate) fn resolve(args: &ConnectArgs, target: Target) -> Result<Target, Failure> {
    match target {
        Target::Command(command) => surround(args, command).map(Target::Command),
        Target::Name { name, .. } => {
            Err(Failure::configuration(format!("no server is configured by the name `{name}`"))
                .hint(format!("to start the program of that name, write `-- {name}`")))
        }
        other => Ok(other),
    }
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
