use clap::{Parser, Subcommand};

use crate::commands::access::AccessArgs;
use crate::commands::bridge::BridgeArgs;
use crate::commands::call::CallArgs;
use crate::commands::clients::import::ImportArgs;
use crate::commands::clients::install::InstallArgs;
use crate::commands::complete::CompleteArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::console::ConsoleArgs;
use crate::commands::diff::DiffArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::help::HelpArgs;
use crate::commands::info::InfoArgs;
use crate::commands::login::LoginArgs;
use crate::commands::logins::LoginsArgs;
use crate::commands::logout::LogoutArgs;
use crate::commands::manage::add::AddArgs;
use crate::commands::manage::list::ServersArgs;
use crate::commands::manage::reconnect::ReconnectArgs;
use crate::commands::manage::remove::RemoveArgs;
use crate::commands::manage::sessions::SessionsArgs;
use crate::commands::manage::switch::{DisableArgs, EnableArgs};
use crate::commands::manage::trust::TrustArgs;
use crate::commands::prompt::PromptArgs;
use crate::commands::prompts::PromptsArgs;
use crate::commands::read::ReadArgs;
use crate::commands::record::RecordArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::resources::ResourcesArgs;
use crate::commands::run::RunArgs;
use crate::commands::serve::ServeArgs;
use crate::commands::tools::ToolsArgs;
use crate::commands::top::TopArgs;
use crate::commands::watch::WatchArgs;
use crate::exit;

/// A hub, bridge and client for Model Context Protocol (MCP) servers.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, arg_required_else_help = true, disable_help_subcommand = true, after_help = exit::EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    Serve(Box<ServeArgs>),
    Bridge(Box<BridgeArgs>),
    Servers(ServersArgs),
    Add(Box<AddArgs>),
    Remove(RemoveArgs),
    Enable(EnableArgs),
    Disable(DisableArgs),
    Reconnect(ReconnectArgs),
    Sessions(SessionsArgs),
    Top(TopArgs),
    Console(ConsoleArgs),
    Trust(TrustArgs),
    Import(ImportArgs),
    Install(Box<InstallArgs>),
    Tools(Box<ToolsArgs>),
    Prompts(Box<PromptsArgs>),
    Resources(Box<ResourcesArgs>),
    Call(Box<CallArgs>),
    Read(Box<ReadArgs>),
    Prompt(Box<PromptArgs>),
    Complete(Box<CompleteArgs>),
    Info(Box<InfoArgs>),
    Watch(Box<WatchArgs>),
    Doctor(Box<DoctorArgs>),
    Login(Box<LoginArgs>),
    Logout(LogoutArgs),
    Logins(LoginsArgs),
    Record(RecordArgs),
    Replay(Box<ReplayArgs>),
    Diff(DiffArgs),
    Run(Box<RunArgs>),
    Explain(ExplainArgs),
    Access(Box<AccessArgs>),
    Completions(CompletionsArgs),
    Help(HelpArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn clap_command_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        let mut cli = Cli::command();
        cli.build();
        for command in std::iter::once(&cli).chain(cli.get_subcommands()) {
            for line in command.clone().render_help().to_string().lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
        }
    }
}
