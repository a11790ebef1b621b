//! A clap program as tools: its leaf commands, their schemas, and the conversion of a call to a command line.
//!
//! # Invariants
//!
//! - Hostile values reach the program unchanged: `hostile_argument_values_reach_the_program_unchanged`. `cargo xtask argv` checks a
//!   million calls.

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

/// The visible commands of a clap program, converted once.
#[derive(Debug)]
pub struct CommandTree {
    leaves: Vec<LeafCommand>,
    prefix: ArgvPrefix,
    /// Parsing needs `&mut`, so that calls take turns; it takes microseconds and never blocks.
    parser: Mutex<UntypedParser>,
}

/// What callers may see in addition to the arguments of leaf commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolExposure {
    /// The ids of exposed arguments above the leaf commands.
    pub(crate) exposed_arguments: BTreeSet<String>,
    /// The option that makes a command write JSON, and its value.
    pub(crate) json_option: Option<(String, String)>,
    /// The operator's words before every command line.
    pub(crate) prefix: Vec<OsString>,
    /// The program as it is run, if it has flags that callers must not see.
    pub(crate) served_command: Option<Command>,
}

/// Why a program cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The executable's name selects the command, which a child process started by its path cannot do.
    #[error("`{0}` is a multicall program, which cannot be served")]
    Multicall(String),
    /// The prefix words are not valid there.
    #[error("invalid words before the commands: {0}")]
    Prefix(String),
}

impl CommandTree {
    /// Converts the commands of a program, without hidden ones and their children.
    ///
    /// # Errors
    /// [`TreeError`]: the program cannot be served.
    ///
    /// # Panics
    /// Clap panics if the definition of the program is inconsistent, as it would when it runs.
    pub fn from_command(command: Command) -> Result<Self, TreeError> {
        Self::with_exposure(command, &ToolExposure::default())
    }

    pub(crate) fn with_exposure(command: Command, exposure: &ToolExposure) -> Result<Self, TreeError> {
        if command.is_multicall_set() {
            return Err(TreeError::Multicall(command.get_name().to_owned()));
        }
        let mut parser = UntypedParser::from_command(exposure.served_command.as_ref().unwrap_or(&command));
        let prefix = parse_prefix(&command, &exposure.prefix)?;
        let mut built = without_help(command);
        built.build();
        let mut walk = TreeWalk { exposure, leaves: Vec::new() };
        walk.descend(&built, &[], &mut Vec::new());
        let mut leaves = walk.leaves;
        leaves.extend(version_leaf(&built, &leaves));
        assign_names(&built, &mut leaves);
        for leaf in &mut leaves {
            leaf.finish(&built, &mut parser);
        }
        Ok(Self { leaves, prefix, parser: Mutex::new(parser) })
    }

    /// Returns the leaf commands, in the order of the program's help.
    pub fn leaves(&self) -> &[LeafCommand] {
        &self.leaves
    }

    /// Builds the command line of a call, without the program's name, such that the program parses exactly the
    /// given arguments.
    ///
    /// # Errors
    /// [`ArgvError`] if no command line can express the call.
    pub fn argv(
        &self,
        leaf: &LeafCommand,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<OsString>, ArgvError> {
        let mut parser = self.parser.lock();
        leaf.build_argv(&mut parser, &self.prefix, arguments)
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
        let fixed_option =
            self.exposure.json_option.as_ref().and_then(|json| json_option(command, path.len(), json));
        if let Some(fixed_option) = &fixed_option {
            arguments.retain(|argument| argument.id != fixed_option.id);
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
            fixed_options: fixed_option.into_iter().collect(),
            fixed_words: Vec::new(),
        });
    }
}

/// Prevents clap from adding help commands, which are not commands of the program.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Returns the option that makes a command write JSON.
fn json_option(command: &Command, level: usize, (option, value): &(String, String)) -> Option<FixedOption> {
    let named = command.get_arguments().find_map(|arg| {
        let spelling = OptionSpelling::from_arg(arg).filter(|spelling| spelling.to_string() == *option)?;
        Some((arg, spelling))
    });
    let (arg, spelling) = named?;
    let possible_values = arg.get_possible_values();
    let is_accepted =
        possible_values.is_empty() || possible_values.iter().any(|possible| possible.get_name() == value);
    let fixed_option = FixedOption { level, id: arg.get_id().to_string(), spelling, value: value.clone() };
    is_accepted.then_some(fixed_option)
}

/// Assigns a unique property name to every argument, valid for model APIs.
fn assign_property_names(arguments: &mut [ClapArgument]) {
    let paths: Vec<Vec<String>> = arguments.iter().map(|argument| vec![argument.id.clone()]).collect();
    let names = name::unique_names(paths.iter().map(Vec::as_slice));
    for (argument, name) in arguments.iter_mut().zip(names) {
        argument.property = name;
    }
}

/// Creates a tool for `--version`, unless there is a `version` command.
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
    /// Probes the relations of the arguments, and generates the schemas.
    fn finish(&mut self, root: &Command, parser: &mut UntypedParser) {
        let command = self.path.iter().try_fold(root, |command, word| command.find_subcommand(word));
        let mut relations = ArgumentRelations::default();
        if let Some(command) = command.filter(|_| self.fixed_words.is_empty()) {
            relations = ArgumentRelations::from_command(command, &self.arguments);
            let layout = self.layouts().first().copied().unwrap_or(ArgvLayout::Plain);
            relations.probe_requirements(command, &self.arguments, |call| {
                self.parse_call(parser, layout, call)?.err()
            });
            self.probe_missing_values(&relations, parser);
        }
        (self.schema, self.independent_schema) = schemas(&self.arguments, &relations);
    }
}

impl LeafCommand {
    /// Probes the default missing values of options, since clap does not expose them.
    fn probe_missing_values(&mut self, relations: &ArgumentRelations, parser: &mut UntypedParser) {
        let least = relations.minimal_call(&self.arguments);
        let alone = |argument: &ClapArgument| {
            argument.arity == ArgumentArity::OptionalValue && argument.level == self.path.len()
        };
        let indices: Vec<usize> = self
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| alone(argument))
            .map(|(at, _)| at)
            .collect();
        for at in indices {
            let Some(argument) = self.arguments.get_mut(at) else { continue };
            let (id, mut call) = (argument.id.clone(), least.clone());
            argument.default_missing_value = Some(Vec::new());
            call.insert(argument.property.clone(), true.into());
            // As the last word, the option cannot consume another word as its value.
            let parsed = self.parse_call(parser, ArgvLayout::OptionsLast, &call).and_then(Result::ok);
            let values = parsed.as_ref().and_then(|parsed| {
                let leaf =
                    self.path.iter().try_fold(parsed, |parsed, word| parsed.subcommand_matches(word))?;
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

/// Parses the operator's words before every command line.
fn parse_prefix(command: &Command, words: &[OsString]) -> Result<ArgvPrefix, TreeError> {
    if words.is_empty() {
        return Ok(ArgvPrefix::default());
    }
    let mut lenient = lenient(command.clone());
    let name = (!command.is_no_binary_name_set()).then(|| command.get_name().to_owned().into());
    let line = name.into_iter().chain(words.iter().cloned());
    let parsed = lenient.try_get_matches_from_mut(line);
    let parsed = parsed.map_err(|error| TreeError::Prefix(untyped_parser::error_text(&error)))?;
    if let Some((sub, _)) = parsed.subcommand() {
        return Err(TreeError::Prefix(format!("`{sub}` is a command")));
    }
    let given = lenient.get_arguments().filter_map(|arg| {
        let id = arg.get_id().as_str();
        let is_given = parsed.try_contains_id(id).unwrap_or(false)
            && parsed.value_source(id) == Some(ValueSource::CommandLine);
        let values = parsed.try_get_raw(id).ok().flatten();
        is_given.then(|| ((0, id.to_owned()), values.map(|values| values.map(ToOwned::to_owned).collect())))
    });
    Ok(ArgvPrefix { words: words.to_vec(), expected: given.collect() })
}

/// Removes all requirements of a program, so that words before a command can be parsed without one.
pub(crate) fn lenient(command: Command) -> Command {
    let groups: Vec<String> = command.get_groups().map(|group| group.get_id().to_string()).collect();
    let command =
        groups.iter().fold(command, |command, id| command.mut_group(id, |group| group.required(false)));
    command.subcommand_required(false).arg_required_else_help(false).mut_args(|arg| arg.required(false))
}
