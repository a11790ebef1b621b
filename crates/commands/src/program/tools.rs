use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Command;
use serde_json::{Map, Value};
use trunkline_server::protocol::Raw;
use trunkline_server::protocol::model::{CallToolResult, ToolAnnotations};
use trunkline_server::{Context, Server, Tool, ToolError};
use trunkline_transport::process::{self, RunLimits};

use super::flags::Flags;
use super::{Program, ProgramError, Runner};
use crate::audit::Doorkeeper;
use crate::hints;
use crate::run::{Child, Function, Reading, Run, Shelf, ShelfProvider, run_function};
use crate::tree::{Exposure, Leaf, Tree};

impl Program {
    /// Makes a server of the program: its tools, made once, and its manifests.
    ///
    /// # Errors
    /// [`ProgramError`]: the program cannot be served.
    pub fn server(&self) -> Result<Server, ProgramError> {
        let tree = Arc::new(self.tree()?);
        let runner = Arc::new(self.runner()?);
        self.warn_of_idle_rules(&tree);
        let decide = |leaf: &Leaf| self.policy.decide(&self.words(leaf)).is_allowed();
        let shown = (0..tree.leaves().len()).filter(|at| tree.leaves().get(*at).is_some_and(decide));
        let tools: Vec<Tool> = shown.filter_map(|at| self.tool(&tree, at, &runner)).collect();
        let hidden = tree.leaves().iter().filter(|leaf| !decide(leaf));
        let doorkeeper = Doorkeeper {
            policy: Arc::new(self.policy.clone()),
            hidden: Arc::new(hidden.flat_map(|leaf| self.names(leaf)).collect()),
            unknown: self.unknown,
        };
        let server = Server::new(self.command.get_name()).offers_tools().with(tools).layer(doorkeeper);
        let server = server.resources_from(ShelfProvider(runner.shelf.clone()));
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

    /// Returns every command: the name of its tool, its words, and what the policy says of it.
    ///
    /// # Errors
    /// [`ProgramError`]: the program cannot be served.
    pub fn decisions(&self) -> Result<Vec<(String, String, String)>, ProgramError> {
        let tree = self.tree()?;
        self.warn_of_idle_rules(&tree);
        let each = tree.leaves().iter().map(|leaf| {
            let words = self.words(leaf);
            (leaf.name().to_owned(), words.join(" "), self.policy.decide(&words).to_string())
        });
        Ok(each.collect())
    }

    fn warn_of_idle_rules(&self, tree: &Tree) {
        let commands: Vec<Vec<String>> = tree.leaves().iter().map(|leaf| self.words(leaf)).collect();
        self.policy.warn_of_idle_rules(&commands);
    }

    fn tree(&self) -> Result<Tree, ProgramError> {
        // A child of ours has the flags by which it serves itself, and no value may be read as one of those either.
        let is_itself = matches!(self.runner, Runner::Itself);
        let as_run = is_itself.then(|| Flags::of(&self.flag).add_to_free(&self.command)).flatten();
        Ok(Tree::exposing(self.command.clone(), &Exposure { as_run, ..self.exposure.clone() })?)
    }

    /// Returns the words of a command that policies are matched against.
    fn words(&self, leaf: &Leaf) -> Vec<String> {
        match leaf.words().as_slice() {
            [] => vec![self.command.get_name().to_owned()],
            words => words.iter().map(ToString::to_string).collect(),
        }
    }

    fn names(&self, leaf: &Leaf) -> BTreeMap<String, Vec<String>> {
        let names = leaf.aliases().iter().map(String::as_str).chain([leaf.name()]);
        names.map(|name| (name.to_owned(), self.words(leaf))).collect()
    }

    fn tool(&self, tree: &Arc<Tree>, at: usize, runner: &Arc<Running>) -> Option<Tool> {
        let leaf = tree.leaves().get(at)?;
        let mut tool = Tool::new(leaf.name())
            .title(leaf.title())
            .description(leaf.description())
            .input_schema(leaf.schema().clone())
            .held_to(leaf.schema_of_each().clone());
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

    fn hints(&self, leaf: &Leaf) -> Option<ToolAnnotations> {
        let words = self.words(leaf);
        let said = self.hints.iter().find(|(pattern, _)| pattern.decide(&words).is_allowed());
        match said {
            Some((_, hints)) => Some(hints.clone()),
            None => hints::guess(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        }
    }

    fn runner(&self) -> Result<Running, ProgramError> {
        let way = match &self.runner {
            Runner::Itself => Way::Child(std::env::current_exe().map_err(ProgramError::Executable)?),
            Runner::Executable(path) => Way::Child(path.clone()),
            Runner::Function(function) => Way::Function(function.clone(), Box::new(self.command.clone())),
        };
        let mut base = process::Command::new(match &way {
            Way::Child(path) => path.clone().into_os_string(),
            Way::Function(..) => OsString::new(),
        });
        base = variables(&self.command).into_iter().fold(base, process::Command::inherit);
        base = self.inherited.iter().fold(base, process::Command::inherit);
        base = Child::plain(base);
        base = self.environment.iter().fold(base, |base, (name, value)| base.env(name, value));
        if let Some(directory) = &self.directory {
            base = base.current_dir(directory);
        }
        let name = self.command.get_name().to_owned();
        Ok(Running { way, base, limits: self.limits.clone(), name, shelf: Arc::default() })
    }
}

/// Returns the variables that a program reads arguments from.
fn variables(command: &Command) -> Vec<OsString> {
    let own = command.get_arguments().filter_map(|arg| arg.get_env()).map(ToOwned::to_owned);
    own.chain(command.get_subcommands().flat_map(variables)).collect()
}

/// How the commands of a program are run.
struct Running {
    way: Way,
    base: process::Command,
    limits: RunLimits,
    name: String,
    shelf: Arc<Shelf>,
}

enum Way {
    Child(PathBuf),
    Function(Function, Box<Command>),
}

impl Running {
    async fn call(
        &self,
        tree: &Tree,
        at: usize,
        context: &Context,
        arguments: &Raw,
    ) -> Result<CallToolResult, ToolError> {
        let leaf = tree.leaves().get(at).ok_or_else(|| ToolError::said("the command is gone"))?;
        let arguments: Map<String, Value> = arguments.decode()?;
        let line = tree.argv(leaf, &arguments)?;
        let title = match leaf.words().as_slice() {
            [] => self.name.clone(),
            words => format!("{} {}", self.name, words.join(" ")),
        };
        let reading = if leaf.writes_json() { Reading::Json } else { Reading::Text };
        match &self.way {
            Way::Child(_) => {
                let (command, limits) = (self.base.clone(), self.limits.clone());
                let shelf = Some(self.shelf.clone());
                Child { title, command, limits, reading, shelf }.with_words(line).run(context).await
            }
            Way::Function(function, command) => {
                let name = (!command.is_no_binary_name_set()).then(|| command.get_name().to_owned().into());
                let read = Command::clone(command).try_get_matches_from(name.into_iter().chain(line));
                let matches = match read {
                    // Clap shows the version itself.
                    Err(shown) if !shown.use_stderr() => return Ok(CallToolResult::text(shown.to_string())),
                    read => read?,
                };
                let (function, limits, shelf) = (function.clone(), &self.limits, Some(&self.shelf));
                run_function(Run { function, matches, title: &title, limits, reading, shelf }, context).await
            }
        }
    }
}
