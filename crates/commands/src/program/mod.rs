//! A clap program as a server: its commands as tools, and its serve flags.
//!
//! # Invariants
//!
//! - Arguments of parent commands are not in any schema, unless the author exposes them:
//!   `tool_schemas_have_no_arguments_of_parent_commands`.

mod flags;
mod parse;
mod serve;
mod tools;

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use trunkline_server::protocol::model::ToolAnnotations;
use trunkline_transport::process::RunLimits;

pub use self::parse::{matches, parse};
use crate::audit::UnknownToolReply;
use crate::manifests::Manifests;
use crate::policy::{Policy, PolicyError};
use crate::run::{CommandFunction, CommandOutputs};
use crate::tree::{ToolExposure, TreeError};

/// A clap program that serves its leaf commands as tools.
///
/// A call runs the program's own executable as a child process, without a shell, in a minimal environment and with
/// empty standard input. See [`parse`] for the one line that makes a server of a program.
#[must_use = "a program does nothing until it is parsed or served"]
#[derive(Clone)]
pub struct Program {
    command: clap::Command,
    policy: Policy,
    exposure: ToolExposure,
    runner: CommandRunner,
    limits: RunLimits,
    directory: Option<PathBuf>,
    inherited_variables: BTreeSet<OsString>,
    environment: Vec<(OsString, OsString)>,
    hints: Vec<(Policy, ToolAnnotations)>,
    unknown_tool_reply: UnknownToolReply,
    manifests: Option<Manifests>,
    flag: String,
}

/// How a command is run.
#[derive(Clone)]
enum CommandRunner {
    /// The executable of this process.
    CurrentExecutable,
    /// Another executable.
    Executable(PathBuf),
    /// A function of this process.
    Function(CommandFunction),
}

/// Why a program cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Its commands cannot be tools.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Its policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The path of its executable is unknown.
    #[error("cannot find the path of the executable: {0}")]
    Executable(std::io::Error),
}

impl Program {
    /// Creates a program from its commands.
    pub fn new(command: clap::Command) -> Self {
        Self {
            command,
            policy: Policy::new(),
            exposure: ToolExposure::default(),
            runner: CommandRunner::CurrentExecutable,
            limits: RunLimits::default(),
            directory: None,
            inherited_variables: BTreeSet::new(),
            environment: Vec::new(),
            hints: Vec::new(),
            unknown_tool_reply: UnknownToolReply::ProtocolError,
            manifests: None,
            flag: "serve".to_owned(),
        }
    }

    /// Sets the policy for which commands callers may see and run. Default: all.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Exposes an argument of the commands above the leaves, by its id, such as a global `--format`.
    ///
    /// Otherwise only required arguments of these commands are exposed.
    pub fn expose(mut self, argument: impl Into<String>) -> Self {
        self.exposure.exposed_arguments.insert(argument.into());
        self
    }

    /// Makes every command that has the option write JSON, such as `--format` with `json`, which becomes structured
    /// content.
    pub fn json_output(mut self, option: impl Into<String>, value: impl Into<String>) -> Self {
        self.exposure.json_option = Some((option.into(), value.into()));
        self
    }

    /// Sets the limits of one run of a command.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the timeout of a command. Default 60 s.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.timeout = Some(limit);
        self
    }

    /// Runs another executable than that of this process.
    pub fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.runner = CommandRunner::Executable(path.into());
        self
    }

    /// Runs commands by a function of this process, which receives the parsed arguments and the outputs to write
    /// to.
    ///
    /// It runs on a blocking thread, and cannot be cancelled.
    pub fn in_process<F, E>(mut self, function: F) -> Self
    where
        F: Fn(ArgMatches, &mut CommandOutputs) -> Result<(), E> + Send + Sync + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.runner = CommandRunner::Function(Arc::new(move |matches, outputs| {
            function(matches, outputs).map_err(Into::into)
        }));
        self
    }

    /// Sets the working folder of commands. Default: that of this process.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Passes an environment variable of this process on to commands. Those that clap reads arguments from are
    /// passed on anyway.
    pub fn inherit(mut self, name: impl Into<OsString>) -> Self {
        self.inherited_variables.insert(name.into());
        self
    }

    /// Sets an environment variable of commands.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the annotations of commands that match a pattern, instead of guessing them from the last word.
    ///
    /// # Errors
    /// The pattern is invalid.
    pub fn hint(mut self, pattern: &str, hints: ToolAnnotations) -> Result<Self, PolicyError> {
        self.hints.push((Policy::from_rules([format!("allow {pattern}")])?, hints));
        Ok(self)
    }

    /// Answers calls of unknown tools like golem's server: with a result that is marked as an error.
    pub fn golem_errors(mut self) -> Self {
        self.unknown_tool_reply = UnknownToolReply::ErrorResult;
        self
    }

    /// Serves manifest files as resources.
    pub fn manifests(mut self, manifests: Manifests) -> Self {
        self.manifests = Some(manifests);
        self
    }

    /// Sets the name of the serve flags. Default `serve`, for `--serve` and those that begin with it.
    pub fn flag(mut self, name: impl Into<String>) -> Self {
        self.flag = name.into();
        self
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.command.get_name())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
