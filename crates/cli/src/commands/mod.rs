//! The commands, one file or folder each.

pub(crate) mod bridge;
pub(crate) mod call;
mod changed;
pub(crate) mod clients;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod info;
mod listed;
pub(crate) mod manage;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod watch;

use crate::args::Command;
use crate::exit::Failure;

/// Runs a command to its end.
///
/// # Errors
/// What the person at the terminal is told, and the exit code.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Bridge(args) => bridge::run(&args),
        Command::Servers(args) => manage::list::run(&args),
        Command::Add(args) => manage::add::run(&args),
        Command::Remove(args) => manage::remove::run(&args),
        Command::Enable(args) => manage::switch::enable(&args),
        Command::Disable(args) => manage::switch::disable(&args),
        Command::Reconnect(args) => manage::reconnect::run(&args),
        Command::Import(args) => clients::import::run(&args),
        Command::Install(args) => clients::install::run(&args),
        Command::Tools(args) => tools::run(&args),
        Command::Prompts(args) => prompts::run(&args),
        Command::Resources(args) => resources::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Prompt(args) => prompt::run(&args),
        Command::Complete(args) => complete::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Help(args) => help::run(&args),
    }
}
