use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Command;
use serde_json::{Map, Value};
use trunkline_server::protocol::RawJson;
use trunkline_server::protocol::model::{CallToolResult, ToolAnnotations};
use trunkline_server::{Context, Server, Tool, ToolError};
use trunkline_transport::process::{self, RunLimits};

use super::flags::ServeFlags;
use super::{CommandRunner, Program, ProgramError};
use crate::audit::HiddenToolInterceptor;
use crate::hints;
use crate::run::{
    CommandFunction, CommandProcess, FunctionRun, OutputStore, OutputStoreProvider, ResultFormat,
    run_function,
};
use crate::tree::{CommandTree, LeafCommand, ToolExposure};

impl Program {
    /// Creates the server of the program, with its tools and its manifests.
    ///
    /// # Errors
    /// [`ProgramError`]: the program cannot be served.
    pub fn server(&self) -> Result<Server, ProgramError> {
        let tree = Arc::new(self.tree()?);
        let runner = Arc::new(self.runner()?);
        self.warn_unused_rules(&tree);
        let decide = |leaf: &LeafCommand| self.policy.decide(&self.policy_words(leaf)).is_allowed();
        let shown = (0..tree.leaves().len()).filter(|at| tree.leaves().get(*at).is_some_and(decide));
        let tools: Vec<Tool> = shown.filter_map(|at| self.tool(&tree, at, &runner)).collect();
        let hidden = tree.leaves().iter().filter(|leaf| !decide(leaf));
        let interceptor = HiddenToolInterceptor {
            policy: Arc::new(self.policy.clone()),
            hidden: Arc::new(hidden.flat_map(|leaf| self.hidden_names(leaf)).collect()),
            unknown: self.unknown_tool_reply,
        };
        let server = Server::new(self.command.get_name()).advertise_tools().with(tools).layer(interceptor);
        let server = server.resources_from(OutputStoreProvider(runner.output_store.clone()));
        let server = match self.command.get_version() {
            Some(version) => server.version(version),
            None => server,
        };
        let server = match self.command.get_about() {
            Some(about) => server.description(about.to_string()),
            None => server,
        };
        Ok(match &self.manifests {
            Some(manifests) => manifests.add_to(server),
            None => server,
        })
    }

    /// Returns every command: the name of its tool, its words, and the decision of the policy.
    ///
    /// # Errors
    /// [`ProgramError`]: the program cannot be served.
    pub fn decisions(&self) -> Result<Vec<(String, String, String)>, ProgramError> {
        let tree = self.tree()?;
        self.warn_unused_rules(&tree);
        let each = tree.leaves().iter().map(|leaf| {
            let words = self.policy_words(leaf);
            (leaf.name().to_owned(), words.join(" "), self.policy.decide(&words).to_string())
        });
        Ok(each.collect())
    }

    fn warn_unused_rules(&self, tree: &CommandTree) {
        let commands: Vec<Vec<String>> = tree.leaves().iter().map(|leaf| self.policy_words(leaf)).collect();
        self.policy.warn_unused_rules(&commands);
    }

    fn tree(&self) -> Result<CommandTree, ProgramError> {
        // The child process has the serve flags too, and no value may be parsed as one of those.
        let is_itself = matches!(self.runner, CommandRunner::CurrentExecutable);
        let as_run = is_itself.then(|| ServeFlags::new(&self.flag).add_if_unused(&self.command)).flatten();
        Ok(CommandTree::with_exposure(
            self.command.clone(),
            &ToolExposure { served_command: as_run, ..self.exposure.clone() },
        )?)
    }

    /// Returns the words of a command for policies.
    fn policy_words(&self, leaf: &LeafCommand) -> Vec<String> {
        match leaf.words().as_slice() {
            [] => vec![self.command.get_name().to_owned()],
            words => words.iter().map(ToString::to_string).collect(),
        }
    }

    fn hidden_names(&self, leaf: &LeafCommand) -> BTreeMap<String, Vec<String>> {
        let names = leaf.aliases().iter().map(String::as_str).chain([leaf.name()]);
        names.map(|name| (name.to_owned(), self.policy_words(leaf))).collect()
    }

    fn tool(&self, tree: &Arc<CommandTree>, at: usize, runner: &Arc<ProgramRunner>) -> Option<Tool> {
        let leaf = tree.leaves().get(at)?;
        let mut tool = Tool::new(leaf.name())
            .title(leaf.title())
            .description(leaf.description())
            .input_schema(leaf.schema().clone())
            .validation_schema(leaf.independent_schema().clone());
        if let Some(hints) = self.hints(leaf) {
            tool = tool.annotations(hints);
        }
        tool = leaf.aliases().iter().fold(tool, Tool::alias);
        let (tree, runner) = (tree.clone(), runner.clone());
        Some(tool.run_raw(move |context, arguments| {
            let (tree, runner) = (tree.clone(), runner.clone());
            async move { runner.call(&tree, at, &context, &arguments).await }
        }))
    }

    fn hints(&self, leaf: &LeafCommand) -> Option<ToolAnnotations> {
        let words = self.policy_words(leaf);
        let hint = self.hints.iter().find(|(pattern, _)| pattern.decide(&words).is_allowed());
        match hint {
            Some((_, hints)) => Some(hints.clone()),
            None => hints::guess_annotations(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }

    fn runner(&self) -> Result<ProgramRunner, ProgramError> {
        let method = match &self.runner {
            CommandRunner::CurrentExecutable => {
                RunMethod::Child(std::env::current_exe().map_err(ProgramError::Executable)?)
            }
            CommandRunner::Executable(path) => RunMethod::Child(path.clone()),
            CommandRunner::Function(function) => {
                RunMethod::Function(function.clone(), Box::new(self.command.clone()))
            }
        };
        let mut base = process::Command::new(match &method {
            RunMethod::Child(path) => path.clone().into_os_string(),
            RunMethod::Function(..) => OsString::new(),
        });
        base = env_variables(&self.command).into_iter().fold(base, process::Command::inherit);
        base = self.inherited_variables.iter().fold(base, process::Command::inherit);
        base = CommandProcess::without_terminal(base);
        base = self.environment.iter().fold(base, |base, (name, value)| base.env(name, value));
        if let Some(directory) = &self.directory {
            base = base.current_dir(directory);
        }
        let name = self.command.get_name().to_owned();
        Ok(ProgramRunner {
            method,
            base_command: base,
            limits: self.limits.clone(),
            name,
            output_store: Arc::default(),
        })
    }
}

/// Returns the environment variables that clap reads arguments from.
fn env_variables(command: &Command) -> Vec<OsString> {
    let own = command.get_arguments().filter_map(|arg| arg.get_env()).map(ToOwned::to_owned);
    own.chain(command.get_subcommands().flat_map(env_variables)).collect()
}

/// How the commands of a program are run.
struct ProgramRunner {
    method: RunMethod,
    base_command: process::Command,
    limits: RunLimits,
    name: String,
    output_store: Arc<OutputStore>,
}

enum RunMethod {
    Child(PathBuf),
    Function(CommandFunction, Box<Command>),
}

impl ProgramRunner {
    async fn call(
        &self,
        tree: &CommandTree,
        at: usize,
        context: &Context,
        arguments: &RawJson,
    ) -> Result<CallToolResult, ToolError> {
        let leaf = tree.leaves().get(at).ok_or_else(|| ToolError::new("the command is gone"))?;
        let arguments: Map<String, Value> = arguments.decode()?;
        let line = tree.argv(leaf, &arguments)?;
        let title = match leaf.words().as_slice() {
            [] => self.name.clone(),
            words => format!("{} {}", self.name, words.join(" ")),
        };
        let result_format = if leaf.writes_json() { ResultFormat::Json } else { ResultFormat::Text };
        match &self.method {
            RunMethod::Child(_) => {
                let (command, limits) = (self.base_command.clone(), self.limits.clone());
                let output_store = Some(self.output_store.clone());
                CommandProcess { title, command, limits, result_format, output_store }
                    .with_words(line)
                    .run(context)
                    .await
            }
            RunMethod::Function(function, command) => {
                let name = (!command.is_no_binary_name_set()).then(|| command.get_name().to_owned().into());
                let parsed = Command::clone(command).try_get_matches_from(name.into_iter().chain(line));
                let matches = match parsed {
                    // Clap prints the version itself.
                    Err(shown) if !shown.use_stderr() => return Ok(CallToolResult::text(shown.to_string())),
                    parsed => parsed?,
                };
                let (function, limits, output_store) =
                    (function.clone(), &self.limits, Some(&self.output_store));
                run_function(
                    FunctionRun { function, matches, title: &title, limits, result_format, output_store },
                    context,
                )
                .await
            }
        }
    }
}
