use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::builder::OsStringValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::leaf::LeafCommand;

/// The program's own parser without its value types: it parses a command line as the program will, but converts no
/// value.
///
/// So a line can be verified without running the author's value parsers.
#[derive(Clone, Debug)]
pub(super) struct UntypedParser {
    command: Command,
}

/// The intended values of a command line, by level and id.
pub(super) type ExpectedValues = BTreeMap<(usize, String), Option<Vec<OsString>>>;

/// Why a command line does not parse as intended.
#[derive(Debug)]
pub(super) enum ParseMismatch {
    /// The program would reject it.
    Rejected(String),
    /// The program would parse this argument differently.
    Different { level: usize, id: String },
}

impl UntypedParser {
    /// Creates the parser from a program that clap has not built yet.
    pub(super) fn from_command(command: &Command) -> Self {
        Self { command: without_value_parsers(command.clone()) }
    }

    /// Parses a command line and compares it to the intended values.
    pub(super) fn check(
        &mut self,
        leaf: &LeafCommand,
        line: &[OsString],
        expected: &ExpectedValues,
    ) -> Result<(), ParseMismatch> {
        let matches = self.parse(line).map_err(|error| ParseMismatch::Rejected(error_text(&error)))?;
        let mut at = &matches;
        let mut command = &self.command;
        for level in 0..=leaf.path().len() {
            compare(command, at, level, leaf.path().len(), expected)?;
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

    /// Parses a command line.
    pub(super) fn parse(&mut self, line: &[OsString]) -> Result<ArgMatches, clap::Error> {
        let name = (!self.command.is_no_binary_name_set()).then(|| self.command.get_name().to_owned().into());
        self.command.try_get_matches_from_mut(name.into_iter().chain(line.iter().cloned()))
    }
}

/// Replaces every value parser by one that accepts anything.
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

/// Compares one level of the parsed command line to the intended values.
fn compare(
    command: &Command,
    parsed: &ArgMatches,
    level: usize,
    leaf: usize,
    expected: &ExpectedValues,
) -> Result<(), ParseMismatch> {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        // Clap repeats global arguments on every level; comparing those of the leaf suffices.
        if arg.is_global_set() && level != leaf {
            continue;
        }
        let expected_values = if arg.is_global_set() {
            expected.iter().find(|((_, expected_id), _)| expected_id == id).map(|(_, values)| values)
        } else {
            expected.get(&(level, id.to_owned()))
        };
        let given = parsed.try_contains_id(id).unwrap_or(false)
            && parsed.value_source(id) == Some(ValueSource::CommandLine);
        let same = match expected_values {
            None => !given,
            Some(None) => given,
            Some(Some(values)) => given && parsed.get_raw(id).into_iter().flatten().eq(values),
        };
        if !same {
            return Err(ParseMismatch::Different { level, id: id.to_owned() });
        }
    }
    Ok(())
}

/// Returns clap's error message, without the hint to use `--help`, which a caller cannot run.
pub(super) fn error_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let useful = text.lines().filter(|line| !line.starts_with("For more information, try"));
    useful.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
