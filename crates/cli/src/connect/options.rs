use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use trunkline_protocol::{Era, LoggingLevel, Revision};

use crate::user_input::PresetAnswer;
use crate::values::{
    EnvOption, HeaderOption, SecretSource, parse_bearer, parse_duration, parse_level, parse_revision,
    parse_size,
};

/// How a server is reached: the same for every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TargetOptionArgs {
    /// Header to send; VALUE may be env:NAME or @FILE;
    /// repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME:VALUE", help_heading = "Target")]
    pub(crate) header: Vec<HeaderOption>,
    /// Bearer token to send, from env:NAME or @FILE
    #[arg(long, value_name = "SOURCE", value_parser = parse_bearer, help_heading = "Target")]
    pub(crate) bearer: Option<SecretSource>,
    /// Environment variable for the program; VALUE may be
    /// env:NAME or @FILE, NAME alone passes on yours;
    /// repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME=VALUE", help_heading = "Target")]
    pub(crate) env: Vec<EnvOption>,
    /// Working directory of the program
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub(crate) cwd: Option<PathBuf>,
    /// Use only this protocol version, such as 2025-06-18
    #[arg(long, value_name = "DATE", value_parser = parse_revision, help_heading = "Target")]
    pub(crate) revision: Option<Revision>,
    /// Use only one protocol era: legacy or modern
    #[arg(long, value_name = "ERA", value_parser = parse_era, conflicts_with = "revision", help_heading = "Target")]
    pub(crate) era: Option<Era>,
    /// Timeout without a response or progress
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Target")]
    pub(crate) timeout: Option<Duration>,
    /// Config file to look up names in
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Target")]
    pub(crate) config: Option<PathBuf>,
}

/// Options of every client command: target and output.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    pub(crate) target_options: TargetOptionArgs,
    /// Use the hub running from the config file as TARGET
    #[arg(long, help_heading = "Target")]
    pub(crate) hub: bool,
    /// Folder to offer to the server as a root; repeatable
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub(crate) roots: Vec<PathBuf>,
    /// Maximum size of a message [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Target")]
    pub(crate) max_message: Option<usize>,
    /// Print JSON on one line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print only results and errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print connection steps, a program's output outside
    /// the protocol, and progress even without a terminal
    #[arg(verbatim_doc_comment, short, long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Print the server's log messages at this level and up
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Output")]
    pub(crate) log_level: Option<LoggingLevel>,
}

/// Prepends the help on targets to the help of a command.
pub(crate) fn target_help(rest: &str) -> String {
    format!(
        "TARGET is a URL, a configured name, a command line in quotes, or a command after\n--. See `trunkline help targets`.\n\n{rest}"
    )
}

/// Prepends the help on targets to the help of a command that uses the running hub without one.
pub(crate) fn target_or_hub_help(rest: &str) -> String {
    target_help(&format!("Without TARGET: the hub running from the config file in this folder.\n\n{rest}"))
}

/// Options for input requests.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Input requests")]
pub(crate) struct AnswerArgs {
    /// Answer in advance: NAME=VALUE, NAME:=JSON, accept,
    /// decline or cancel; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "ANSWER")]
    pub(crate) answer: Vec<PresetAnswer>,
    /// Allow sampling requests; you, TEXT or @FILE supply the
    /// reply
    #[arg(verbatim_doc_comment, long, value_name = "TEXT", num_args = 0..=1, require_equals = true)]
    pub(crate) sample: Option<Option<String>>,
}

/// Reads an era.
fn parse_era(text: &str) -> Result<Era, String> {
    match text {
        "legacy" => Ok(Era::Legacy),
        "modern" => Ok(Era::Modern),
        _ => Err("expected legacy or modern".to_owned()),
    }
}
