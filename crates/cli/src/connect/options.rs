use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use trunkline_protocol::{Level, Revision};

use crate::ask::GivenAnswer;
use crate::values::{
    EnvOption, HeaderOption, SecretSource, parse_bearer, parse_duration, parse_level, parse_revision,
};

/// How a server is reached, and how what it says is printed: the same for every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectArgs {
    /// A header to send; the value may be env:NAME or @FILE; repeatable
    #[arg(long, value_name = "NAME:VALUE", help_heading = "Target")]
    pub(crate) header: Vec<HeaderOption>,
    /// A bearer token to send, from env:NAME or @FILE
    #[arg(long, value_name = "SOURCE", value_parser = parse_bearer, help_heading = "Target")]
    pub(crate) bearer: Option<SecretSource>,
    /// A variable for a program that is started, NAME alone passes on
    /// yours; the value may be env:NAME or @FILE; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME=VALUE", help_heading = "Target")]
    pub(crate) env: Vec<EnvOption>,
    /// The folder that a program is started in
    #[arg(long, value_name = "DIR", help_heading = "Target")]
    pub(crate) cwd: Option<PathBuf>,
    /// A folder that the server may ask for; repeatable
    #[arg(long, value_name = "DIR", help_heading = "Target")]
    pub(crate) roots: Vec<PathBuf>,
    /// Speak this revision, such as 2025-06-18, and no other
    #[arg(long, value_name = "DATE", value_parser = parse_revision, help_heading = "Target")]
    pub(crate) revision: Option<Revision>,
    /// Speak the newest revision of an era: legacy or modern
    #[arg(long, value_name = "ERA", value_parser = parse_era, conflicts_with = "revision", help_heading = "Target")]
    pub(crate) era: Option<Revision>,
    /// How long the server may be silent
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Target")]
    pub(crate) timeout: Option<Duration>,
    /// The file that names are looked up in
    #[arg(long, value_name = "FILE", help_heading = "Target")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, on one line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print nothing but the result and what went wrong
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print progress without a terminal too, and how the server was reached
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Print the server's log messages from this level on
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, help_heading = "Output")]
    pub(crate) log_level: Option<Level>,
}

impl ConnectArgs {
    /// Returns the revision that was asked for, by its date or by its era.
    pub(crate) fn pin(&self) -> Option<Revision> {
        self.revision.or(self.era)
    }
}

/// Who answers what the server asks.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Questions")]
pub(crate) struct AskArgs {
    /// Answer a question in advance: NAME=VALUE, NAME:=JSON, accept,
    /// decline or cancel; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "ANSWER")]
    pub(crate) answer: Vec<GivenAnswer>,
    /// Let the server ask for a model's answer, which you write
    #[arg(long)]
    pub(crate) sample: bool,
}

/// Reads an era; a revision has an option of its own.
fn parse_era(text: &str) -> Result<Revision, String> {
    match text {
        "legacy" | "modern" => parse_revision(text),
        _ => Err("write legacy or modern".to_owned()),
    }
}
