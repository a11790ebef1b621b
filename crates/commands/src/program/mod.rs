//! A clap program as a server: its commands as tools, and the flags by which it serves itself.

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

/// A clap program whose leaf commands become tools.
///
/// A call runs the program's own executable as a child, without a shell, in a minimal environment and with nothing to read
/// from. See [`parse`] for the one line that makes a server of a program.
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

/// What runs a command.
#[derive(Clone)]
enum CommandRunner {
    /// The executable of this process.
    CurrentExecutable,
    /// Another executable.
    Executable(PathBuf),
    /// A function of this process.
    Function(CommandFunction),
}

/// Why a program cannot be made a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Its commands cannot be tools.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Its policy has no meaning.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Where its executable is cannot be found out.
    #[error("cannot find the path of the executable: {0}")]
    Executable(std::io::Error),
}

impl Program {
    /// Takes over the commands of a program.
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

    /// Sets which commands callers may see and run; everything unless set.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Lets callers give an argument of the commands above the leaves, named by its id, such as a global `--format`.
    ///
    /// Otherwise only those that are required there may be given.
    pub fn expose(mut self, argument: impl Into<String>) -> Self {
        self.exposure.exposed_arguments.insert(argument.into());
        self
    }

    /// Has every command that knows the option write JSON, such as by `--format` and `json`, which becomes structured content.
    pub fn json_output(mut self, option: impl Into<String>, value: impl Into<String>) -> Self {
        self.exposure.json_option = Some((option.into(), value.into()));
        self
    }

    /// Sets what one run of a command may cost.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long a command may run; 60 s unless set.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.timeout = Some(limit);
        self
    }

    /// Runs another executable than that of this process.
    pub fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.runner = CommandRunner::Executable(path.into());
        self
    }

    /// Runs commands by a function of this process, which is given what clap read and where to write.
    ///
    /// It runs on a thread for work that blocks, and cannot be ended before it ends by itself.
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

    /// Sets the folder that commands run in; that of this process unless set.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Passes on a variable of our environment to commands. Those that clap reads arguments from are passed on anyway.
    pub fn inherit(mut self, name: impl Into<OsString>) -> Self {
        self.inherited_variables.insert(name.into());
        self
    }

    /// Sets a variable of the commands' environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Says of the commands that fit a pattern what they do, instead of guessing it from their last word.
    ///
    /// # Errors
    /// The pattern has no meaning.
    pub fn hint(mut self, pattern: &str, hints: ToolAnnotations) -> Result<Self, PolicyError> {
        self.hints.push((Policy::from_rules([format!("allow {pattern}")])?, hints));
        Ok(self)
    }

    /// Answers calls of unknown tools in the way of golem's server: by a result that is marked as an error.
    pub fn golem_errors(mut self) -> Self {
        self.unknown_tool_reply = UnknownToolReply::ErrorResult;
        self
    }

    /// Offers manifest files as resources.
    pub fn manifests(mut self, manifests: Manifests) -> Self {
        self.manifests = Some(manifests);
        self
    }

    /// Names the flags by which the program serves itself; `serve` unless set, for `--serve` and those that begin with it.
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
