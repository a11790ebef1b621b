//! A clap program seen as tools: its leaf commands, their schemas, and the way from a call to a command line.

mod argument;
mod argv;
mod leaf;
mod name;
mod probe;
mod relations;
mod schema;
mod spelling;
mod untyped_parser;
mod value;

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, Command};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use self::argument::{ArgumentArity, ClapArgument};
pub use self::argv::ArgvError;
use self::argv::{ArgvLayout, ArgvPrefix};
pub(crate) use self::argv::{MAX_LINE_BYTES, MAX_WORD_BYTES};
use self::leaf::FixedOption;
pub use self::leaf::LeafCommand;
pub(crate) use self::name::sanitize;
use self::relations::ArgumentRelations;
use self::schema::schemas;
use self::spelling::OptionSpelling;
use self::untyped_parser::UntypedParser;

/// The commands of a clap program that callers may see, made once and kept.
#[derive(Debug)]
pub struct CommandTree {
    leaves: Vec<LeafCommand>,
    prefix: ArgvPrefix,
    /// Reading changes what clap remembers, so that one reads at a time; it takes microseconds and never waits.
    parser: Mutex<UntypedParser>,
}

/// What of a program callers may see beside the arguments of its leaf commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolExposure {
    /// The ids of arguments that lie above the leaf commands and may be given all the same.
    pub(crate) exposed_arguments: BTreeSet<String>,
    /// The option by which a command is made to write JSON, and its value.
    pub(crate) json_option: Option<(String, String)>,
    /// What the operator has put before every command line.
    pub(crate) prefix: Vec<OsString>,
    /// The program as it reads its words, if it has more flags than those that callers may know of.
    pub(crate) served_command: Option<Command>,
}

/// Why a program cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The name by which it is called chooses the command, which a child started by its path cannot do.
    #[error("`{0}` is a multicall program, which cannot be served")]
    Multicall(String),
    /// The words before the commands do not stand there.
    #[error("invalid words before the commands: {0}")]
    Prefix(String),
}

impl CommandTree {
    /// Takes over the commands of a program, the hidden ones and their children left out.
    ///
    /// # Errors
    /// [`TreeError`]: the program cannot be served.
    ///
    /// # Panics
    /// Clap panics where a program contradicts itself, as it would when that runs.
    pub fn from_command(command: Command) -> Result<Self, TreeError> {
        Self::with_exposure(command, &ToolExposure::default())
    }

    pub(crate) fn with_exposure(command: Command, exposure: &ToolExposure) -> Result<Self, TreeError> {
        if command.is_multicall_set() {
            return Err(TreeError::Multicall(command.get_name().to_owned()));
        }
        let mut twin = UntypedParser::from_command(exposure.served_command.as_ref().unwrap_or(&command));
        let prefix = parse_prefix(&command, &exposure.prefix)?;
        let mut built = without_help(command);
        built.build();
        let mut walk = TreeWalk { exposure, leaves: Vec::new() };
        walk.descend(&built, &[], &mut Vec::new());
        let mut leaves = walk.leaves;
        leaves.extend(version_leaf(&built, &leaves));
        assign_names(&built, &mut leaves);
        for leaf in &mut leaves {
            leaf.finish(&built, &mut twin);
        }
        Ok(Self { leaves, prefix, parser: Mutex::new(twin) })
    }

    /// Returns the leaf commands, in the order of the program's help.
    pub fn leaves(&self) -> &[LeafCommand] {
        &self.leaves
    }

    /// Writes the command line of a call, without the program's name, such that the program reads back exactly what it says.
    ///
    /// # Errors
    /// [`ArgvError`] if no command line says it.
    pub fn argv(
        &self,
        leaf: &LeafCommand,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<OsString>, ArgvError> {
        let mut twin = self.parser.lock();
        leaf.build_argv(&mut twin, &self.prefix, arguments)
    }
}

struct TreeWalk<'e> {
    exposure: &'e ToolExposure,
    leaves: Vec<LeafCommand>,
}

impl TreeWalk<'_> {
    fn descend(&mut self, command: &Command, path: &[String], above: &mut Vec<ClapArgument>) {
        let level = path.len();
        let inherited: BTreeSet<String> = above.iter().map(|argument| argument.id.clone()).collect();
        let own = command.get_arguments().filter(|arg| !inherited.contains(arg.get_id().as_str()));
        let own: Vec<(&Arg, ClapArgument)> =
            own.filter_map(|arg| Some((arg, ClapArgument::from_arg(arg, level)?))).collect();
        let mut below = command.get_subcommands().peekable();
        if below.peek().is_none() {
            self.leaf(command, path, above, own);
            return;
        }
        let before = above.len();
        above.extend(own.into_iter().map(|(_, argument)| argument));
        for sub in below.filter(|sub| !sub.is_hide_set()) {
            let path: Vec<String> = path.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            self.descend(sub, &path, above);
        }
        above.truncate(before);
    }

    fn leaf(
        &mut self,
        command: &Command,
        path: &[String],
        above: &[ClapArgument],
        own: Vec<(&Arg, ClapArgument)>,
    ) {
        let exposed = above
            .iter()
            .filter(|argument| argument.required || self.exposure.exposed_arguments.contains(&argument.id));
        let shown = own.into_iter().filter(|(arg, argument)| !arg.is_hide_set() || argument.required);
        let mut arguments: Vec<ClapArgument> = exposed.cloned().collect();
        arguments.extend(shown.map(|(_, argument)| argument));
        let always =
            self.exposure.json_option.as_ref().and_then(|json| json_option(command, path.len(), json));
        if let Some(always) = &always {
            arguments.retain(|argument| argument.id != always.id);
        }
        assign_property_names(&mut arguments);
        let words = || if path.is_empty() { command.get_name().to_owned() } else { path.join(" ") };
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        self.leaves.push(LeafCommand {
            path: path.to_vec(),
            name: String::new(),
            title: words(),
            aliases: Vec::new(),
            description: about.unwrap_or_else(|| format!("Runs `{}`.", words())),
            arguments,
            schema: Value::Null,
            independent_schema: Value::Null,
            fixed_options: always.into_iter().collect(),
            fixed_words: Vec::new(),
        });
    }
}

/// Keeps clap from adding commands that show help, which are no commands of the program.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Finds the option by which a command is made to write JSON.
fn json_option(command: &Command, level: usize, (option, value): &(String, String)) -> Option<FixedOption> {
    let named = command.get_arguments().find_map(|arg| {
        let spelling = OptionSpelling::from_arg(arg).filter(|spelling| spelling.to_string() == *option)?;
        Some((arg, spelling))
    });
    let (arg, spelling) = named?;
    let takes = arg.get_possible_values();
    let takes = takes.is_empty() || takes.iter().any(|possible| possible.get_name() == value);
    let always = FixedOption { level, id: arg.get_id().to_string(), spelling, value: value.clone() };
    takes.then_some(always)
}

/// Gives every argument a name that models' interfaces take, all of them different.
fn assign_property_names(arguments: &mut [ClapArgument]) {
    let paths: Vec<Vec<String>> = arguments.iter().map(|argument| vec![argument.id.clone()]).collect();
    let names = name::unique_names(paths.iter().map(Vec::as_slice));
    for (argument, name) in arguments.iter_mut().zip(names) {
        argument.property = name;
    }
}

/// Makes a tool of `--version`, unless a command does the same.
fn version_leaf(command: &Command, leaves: &[LeafCommand]) -> Option<LeafCommand> {
    let shown = command.get_version().or(command.get_long_version()).is_some();
    let taken = leaves.iter().any(|leaf| leaf.path == ["version"] || leaf.path.is_empty());
    (shown && !taken && !command.is_disable_version_flag_set()).then(|| LeafCommand {
        path: Vec::new(),
        name: String::new(),
        title: "--version".to_owned(),
        aliases: Vec::new(),
        description: format!("Shows the version of {}.", command.get_name()),
        arguments: Vec::new(),
        schema: Value::Null,
        independent_schema: Value::Null,
        fixed_options: Vec::new(),
        fixed_words: vec!["--version".to_owned()],
    })
}

fn assign_names(command: &Command, leaves: &mut [LeafCommand]) {
    let paths: Vec<Vec<String>> = leaves
        .iter()
        .map(|leaf| match leaf.words().as_slice() {
            [] => vec![command.get_name().to_owned()],
            words => words.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let names = name::unique_names(paths.iter().map(Vec::as_slice));
    for ((leaf, name), path) in leaves.iter_mut().zip(names).zip(paths) {
        let spelled = path.join(" ");
        leaf.aliases.extend((spelled != name).then_some(spelled));
        leaf.aliases.extend((path == ["version"]).then(|| "--version".to_owned()));
        leaf.name = name;
    }
}

impl LeafCommand {
    /// Finds out how the arguments go together, and makes the schema.
    fn finish(&mut self, root: &Command, twin: &mut UntypedParser) {
        let command = self.path.iter().try_fold(root, |command, word| command.find_subcommand(word));
        let mut relations = ArgumentRelations::default();
        if let Some(command) = command.filter(|_| self.fixed_words.is_empty()) {
            relations = ArgumentRelations::from_command(command, &self.arguments);
            let layout = self.layouts().first().copied().unwrap_or(ArgvLayout::Plain);
            relations.probe_requirements(command, &self.arguments, |call| {
                self.parse_call(twin, layout, call)?.err()
            });
            self.probe_missing_values(&relations, twin);
        }
        (self.schema, self.independent_schema) = schemas(&self.arguments, &relations);
    }
}

impl LeafCommand {
    /// Finds out what the program takes for options that are there without a value, by trying each: clap does not tell.
    fn probe_missing_values(&mut self, relations: &ArgumentRelations, twin: &mut UntypedParser) {
        let least = relations.minimal_call(&self.arguments);
        let alone = |argument: &ClapArgument| {
            argument.arity == ArgumentArity::OptionalValue && argument.level == self.path.len()
        };
        let asked: Vec<usize> = self
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| alone(argument))
            .map(|(at, _)| at)
            .collect();
        for at in asked {
            let Some(argument) = self.arguments.get_mut(at) else { continue };
            let (id, mut call) = (argument.id.clone(), least.clone());
            argument.default_missing_value = Some(Vec::new());
            call.insert(argument.property.clone(), true.into());
            // Where it is the last word, there is none that could be taken for its value.
            let read = self.parse_call(twin, ArgvLayout::OptionsLast, &call).and_then(Result::ok);
            let values = read.as_ref().and_then(|read| {
                let leaf = self.path.iter().try_fold(read, |read, word| read.subcommand_matches(word))?;
                leaf.try_get_raw(&id).ok().flatten()
            });
            let values = values.map(|values| values.map(ToOwned::to_owned).collect());
            self.arguments
                .get_mut(at)
                .into_iter()
                .for_each(|argument| argument.default_missing_value.clone_from(&values));
        }
    }
}

/// Reads the words that the operator has put before every command line.
fn parse_prefix(command: &Command, words: &[OsString]) -> Result<ArgvPrefix, TreeError> {
    if words.is_empty() {
        return Ok(ArgvPrefix::default());
    }
    let mut lenient = lenient(command.clone());
    let name = (!command.is_no_binary_name_set()).then(|| command.get_name().to_owned().into());
    let line = name.into_iter().chain(words.iter().cloned());
    let read = lenient.try_get_matches_from_mut(line);
    let read = read.map_err(|error| TreeError::Prefix(untyped_parser::error_text(&error)))?;
    if let Some((sub, _)) = read.subcommand() {
        return Err(TreeError::Prefix(format!("`{sub}` is a command")));
    }
    let given = lenient.get_arguments().filter_map(|arg| {
        let id = arg.get_id().as_str();
        let said = read.try_contains_id(id).unwrap_or(false)
            && read.value_source(id) == Some(ValueSource::CommandLine);
        let values = read.try_get_raw(id).ok().flatten();
        said.then(|| ((0, id.to_owned()), values.map(|values| values.map(ToOwned::to_owned).collect())))
    });
    Ok(ArgvPrefix { words: words.to_vec(), expected: given.collect() })
}

/// Takes away what a program demands, so that words which stand before a command can be read without one.
pub(crate) fn lenient(command: Command) -> Command {
    let groups: Vec<String> = command.get_groups().map(|group| group.get_id().to_string()).collect();
    let command =
        groups.iter().fold(command, |command, id| command.mut_group(id, |group| group.required(false)));
    command.subcommand_required(false).arg_required_else_help(false).mut_args(|arg| arg.required(false))
}
