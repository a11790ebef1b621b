use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::builder::OsStringValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::leaf::LeafCommand;

/// The program's own parser without its types: it reads a command line as the program will, and converts nothing.
///
/// So a line can be tried without running what the author has put into value parsers.
#[derive(Clone, Debug)]
pub(super) struct UntypedParser {
    command: Command,
}

/// What a command line is meant to say, by level and id.
pub(super) type ExpectedValues = BTreeMap<(usize, String), Option<Vec<OsString>>>;

/// Why a command line does not say what it is meant to say.
#[derive(Debug)]
pub(super) enum ParseMismatch {
    /// The program would not take it at all.
    Rejected(String),
    /// The program would read this argument as something else.
    Different { level: usize, id: String },
}

impl UntypedParser {
    /// Makes the twin of a program that clap has not built yet.
    pub(super) fn from_command(command: &Command) -> Self {
        Self { command: without_value_parsers(command.clone()) }
    }

    /// Reads a command line and compares it to what is meant.
    pub(super) fn check(
        &mut self,
        leaf: &LeafCommand,
        line: &[OsString],
        intent: &ExpectedValues,
    ) -> Result<(), ParseMismatch> {
        let matches = self.parse(line).map_err(|error| ParseMismatch::Rejected(error_text(&error)))?;
        let mut at = &matches;
        let mut command = &self.command;
        for level in 0..=leaf.path().len() {
            compare(command, at, level, leaf.path().len(), intent)?;
            let Some(word) = leaf.path().get(level) else { break };
            let below = at.subcommand().filter(|(name, _)| name == word);
            let (Some((_, below)), Some(sub)) = (below, command.find_subcommand(word)) else {
                return Err(ParseMismatch::Different { level, id: word.clone() });
            };
            (at, command) = (below, sub);
        }
        match at.subcommand() {
            Some((name, _)) => {
                Err(ParseMismatch::Different { level: leaf.path().len(), id: name.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Reads a command line.
    pub(super) fn parse(&mut self, line: &[OsString]) -> Result<ArgMatches, clap::Error> {
        let name = (!self.command.is_no_binary_name_set()).then(|| self.command.get_name().to_owned().into());
        self.command.try_get_matches_from_mut(name.into_iter().chain(line.iter().cloned()))
    }
}

/// Replaces every parser of values by one that takes anything.
fn without_value_parsers(command: Command) -> Command {
    let command = command.mut_args(|arg| if takes_values(&arg) { accept_any_value(arg) } else { arg });
    command.mut_subcommands(without_value_parsers)
}

fn accept_any_value(arg: Arg) -> Arg {
    arg.value_parser(OsStringValueParser::new())
}

fn takes_values(arg: &Arg) -> bool {
    let none = arg.get_num_args().is_some_and(|range| range.max_values() == 0);
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) && !none
}

/// Compares what one level of the command line says to what it is meant to say.
fn compare(
    command: &Command,
    read: &ArgMatches,
    level: usize,
    leaf: usize,
    intent: &ExpectedValues,
) -> Result<(), ParseMismatch> {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        // Clap repeats what is global on every level; the leaf's is as good as any.
        if arg.is_global_set() && level != leaf {
            continue;
        }
        let meant = if arg.is_global_set() {
            intent.iter().find(|((_, meant), _)| meant == id).map(|(_, values)| values)
        } else {
            intent.get(&(level, id.to_owned()))
        };
        let given = read.try_contains_id(id).unwrap_or(false)
            && read.value_source(id) == Some(ValueSource::CommandLine);
        let same = match meant {
            None => !given,
            Some(None) => given,
            Some(Some(values)) => given && read.get_raw(id).into_iter().flatten().eq(values),
        };
        if !same {
            return Err(ParseMismatch::Different { level, id: id.to_owned() });
        }
    }
    Ok(())
}

/// Returns what clap says, without the advice to look at help that a caller cannot ask for.
pub(super) fn error_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let useful = text.lines().filter(|line| !line.starts_with("For more information, try"));
    useful.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
