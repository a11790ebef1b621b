//! The commands, one file or folder each.

pub(crate) mod access;
pub(crate) mod bridge;
pub(crate) mod call;
pub(crate) mod clients;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod info;
mod list_snapshots;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod logout;
pub(crate) mod manage;
mod optional_list;
pub(crate) mod prompt;
pub(crate) mod prompts;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod top;
pub(crate) mod watch;

use crate::args::CliCommand;
use crate::exit::CliFailure;

/// Runs a command to its end.
///
/// # Errors
/// A message for the user, and the exit code.
pub(crate) fn run(command: CliCommand) -> Result<(), CliFailure> {
    match command {
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Bridge(args) => bridge::run(&args),
        CliCommand::Servers(args) => manage::list::run(&args),
        CliCommand::Add(args) => manage::add::run(&args),
        CliCommand::Remove(args) => manage::remove::run(&args),
        CliCommand::Enable(args) => manage::switch::enable(&args),
        CliCommand::Disable(args) => manage::switch::disable(&args),
        CliCommand::Reconnect(args) => manage::reconnect::run(&args),
        CliCommand::Sessions(args) => manage::sessions::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Console(args) => console::run(&args),
        CliCommand::Trust(args) => manage::trust::run(&args),
        CliCommand::Import(args) => clients::import::run(&args),
        CliCommand::Install(args) => clients::install::run(&args),
        CliCommand::Tools(args) => tools::run(&args),
        CliCommand::Prompts(args) => prompts::run(&args),
        CliCommand::Resources(args) => resources::run(&args),
        CliCommand::Call(args) => call::run(&args),
        CliCommand::Read(args) => read::run(&args),
        CliCommand::Prompt(args) => prompt::run(&args),
        CliCommand::Complete(args) => complete::run(&args),
        CliCommand::Info(args) => info::run(&args),
        CliCommand::Watch(args) => watch::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::Login(args) => login::run(&args),
        CliCommand::Logout(args) => logout::run(&args),
        CliCommand::Logins(args) => logins::run(&args),
        CliCommand::Record(args) => record::run(&args),
        CliCommand::Replay(args) => replay::run(&args),
        CliCommand::Diff(args) => diff::run(&args),
        CliCommand::Run(args) => run::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Access(args) => access::run(&args),
        CliCommand::Completions(args) => completions::run(&args),
        CliCommand::Help(args) => help::run(&args),
    }
}
