use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::{Map, Value};

use super::argument::{ArgumentArity, ArgumentPlacement, ClapArgument};
use super::leaf::LeafCommand;
use super::untyped_parser::{ExpectedValues, ParseMismatch, UntypedParser};

/// The longest word of a command line in bytes; Linux accepts no longer one (`MAX_ARG_STRLEN`).
pub(crate) const MAX_WORD_BYTES: usize = (128 << 10) - 1;

/// The longest command line in bytes; Linux accepts two MiB with the environment.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// Why a call cannot be converted to a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgvError {
    /// There is no such argument.
    #[error("`{0}` is not one of its arguments")]
    Unknown(String),
    /// The value is not of the argument's type.
    #[error("the value of `{0}` is not of its type")]
    WrongType(String),
    /// The value has a NUL character.
    #[error("`{0}` has a NUL character, which no command line can carry")]
    Nul(String),
    /// One value is too long.
    #[error("`{argument}` has {bytes} bytes; a command line takes at most {MAX_WORD_BYTES}")]
    TooLong {
        /// The argument.
        argument: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// All values together are too long.
    #[error("the arguments have {0} bytes together; at most {MAX_LINE_BYTES} are taken")]
    LineTooLong(usize),
    /// In every layout, the program would parse the value as something else.
    #[error("the value of `{0}` cannot be passed on: the program would read it as something else")]
    Unpassable(String),
    /// The program does not accept these arguments together.
    #[error("{0}")]
    Refused(String),
}

/// The words of one command line, before they are ordered.
#[derive(Debug, Default)]
struct ArgvWords {
    /// By level: flags, and options with their value in one word.
    joined: Vec<Vec<OsString>>,
    /// By level: options with their values in separate words, and whether they would consume further words.
    separate: Vec<Vec<(ValueConsumption, Vec<OsString>)>>,
    /// By level: positional values.
    positions: Vec<Vec<(usize, bool, Vec<OsString>)>>,
    expected: ExpectedValues,
}

/// How many of the following words an option consumes, from the fewest to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueConsumption {
    /// A fixed number of words.
    Fixed,
    /// Possibly more words than its own.
    OpenEnded,
    /// Possibly the next word, although it has no value.
    OptionalValue,
}

/// The order of the leaf command's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgvLayout {
    /// Options, `--`, positionals.
    Escaped,
    /// Options, positionals, `--`, the last positional.
    LastEscaped,
    /// Positionals, options, `--`, the last positional.
    OptionsBetween,
    /// Options, positionals.
    Plain,
    /// Positionals, options.
    OptionsLast,
}

impl LeafCommand {
    /// Builds the command line of a call, and verifies that the program parses it as intended.
    pub(super) fn build_argv(
        &self,
        parser: &mut UntypedParser,
        prefix: &ArgvPrefix,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<OsString>, ArgvError> {
        let words = self.words_of(prefix, arguments)?;
        let bytes = words.bytes();
        if bytes > MAX_LINE_BYTES {
            return Err(ArgvError::LineTooLong(bytes));
        }
        if !self.fixed_words.is_empty() {
            return Ok(prefix
                .words
                .iter()
                .cloned()
                .chain(self.fixed_words.iter().map(OsString::from))
                .collect());
        }
        let mut failed = None;
        for &layout in self.layouts() {
            let line = words.assemble(&self.path, &prefix.words, layout);
            match parser.check(self, &line, &words.expected) {
                Ok(()) => return Ok(line),
                // The first layout is the usual one, so its error is the one that a user would see.
                Err(mismatch) => drop(failed.get_or_insert(mismatch)),
            }
        }
        Err(self.argv_error(failed))
    }

    /// Parses the command line of a call as the program would, without verification.
    pub(super) fn parse_call(
        &self,
        parser: &mut UntypedParser,
        layout: ArgvLayout,
        call: &Map<String, Value>,
    ) -> Option<clap::error::Result<ArgMatches>> {
        let words = self.words_of(&ArgvPrefix::default(), call).ok()?;
        Some(parser.parse(&words.assemble(&self.path, &[], layout)))
    }

    pub(super) fn layouts(&self) -> &'static [ArgvLayout] {
        let positions = || {
            self.arguments.iter().filter_map(|argument| match argument.placement {
                ArgumentPlacement::Positional { last, .. } if argument.level == self.path.len() => Some(last),
                _ => None,
            })
        };
        if positions().any(|last| last) {
            &[ArgvLayout::LastEscaped, ArgvLayout::OptionsBetween, ArgvLayout::Escaped]
        } else if positions().next().is_some() {
            &[ArgvLayout::Escaped, ArgvLayout::Plain, ArgvLayout::OptionsLast]
        } else {
            &[ArgvLayout::Plain]
        }
    }

    fn words_of(&self, prefix: &ArgvPrefix, arguments: &Map<String, Value>) -> Result<ArgvWords, ArgvError> {
        let mut words = ArgvWords::new(self.path.len() + 1);
        words.expected.extend(prefix.expected.clone());
        for fixed in &self.fixed_options {
            let joined = words.joined.get_mut(fixed.level);
            joined.into_iter().for_each(|joined| joined.push(fixed.spelling.with_value(&fixed.value)));
            let expected = Some(vec![fixed.value.clone().into()]);
            words.expected.insert((fixed.level, fixed.id.clone()), expected);
        }
        for (property, value) in arguments {
            let argument = self.arguments.iter().find(|argument| argument.property == *property);
            let argument = argument.ok_or_else(|| ArgvError::Unknown(property.clone()))?;
            words.add(argument, value)?;
        }
        Ok(words)
    }

    /// Converts a mismatch to an error with the caller's property names.
    fn argv_error(&self, mismatch: Option<ParseMismatch>) -> ArgvError {
        match mismatch {
            Some(ParseMismatch::Rejected(words)) => ArgvError::Refused(words),
            Some(ParseMismatch::Different { level, id }) => {
                let argument =
                    self.arguments.iter().find(|argument| argument.level == level && argument.id == id);
                ArgvError::Unpassable(argument.map_or(id, |argument| argument.property.clone()))
            }
            None => ArgvError::Refused("the program does not take these arguments".to_owned()),
        }
    }
}

impl ArgvWords {
    fn new(levels: usize) -> Self {
        Self {
            joined: vec![Vec::new(); levels],
            separate: vec![Vec::new(); levels],
            positions: vec![Vec::new(); levels],
            expected: ExpectedValues::new(),
        }
    }

    fn add(&mut self, argument: &ClapArgument, value: &Value) -> Result<(), ArgvError> {
        let wrong = || ArgvError::WrongType(argument.property.clone());
        let expected = match (&argument.arity, value) {
            (ArgumentArity::Flag { value_if_present }, Value::Bool(given)) if given != value_if_present => {
                return Ok(());
            }
            (ArgumentArity::Flag { .. }, Value::Bool(_)) => {
                self.add_occurrences(argument, 1);
                None
            }
            (ArgumentArity::Count, value) => {
                let times = value.as_u64().and_then(|times| u8::try_from(times).ok()).ok_or_else(wrong)?;
                if times == 0 {
                    return Ok(());
                }
                self.add_occurrences(argument, times.into());
                Some(vec![times.to_string().into()])
            }
            (ArgumentArity::One | ArgumentArity::OptionalValue, Value::String(text))
                if text.is_empty() && argument.empty_is_absent() =>
            {
                return Ok(());
            }
            (ArgumentArity::OptionalValue, Value::Bool(true)) => {
                let missing = argument.default_missing_value.clone().ok_or_else(wrong)?;
                self.add_separate(argument, ValueConsumption::OptionalValue, Vec::new());
                Some(missing)
            }
            (ArgumentArity::One | ArgumentArity::OptionalValue, value) => {
                let text = value_text(argument, value)?;
                self.add_values(argument, vec![text.clone()]);
                Some(vec![text.into()])
            }
            (ArgumentArity::Sequences { .. }, Value::Array(lists)) => {
                let mut all = Vec::new();
                for list in lists {
                    let values = value_texts(argument, list)?;
                    all.extend(values.iter().map(OsString::from));
                    self.add_values(argument, values);
                }
                if all.is_empty() {
                    return Ok(());
                }
                Some(all)
            }
            (ArgumentArity::Repeated | ArgumentArity::Delimited | ArgumentArity::Sequence { .. }, list) => {
                let values = value_texts(argument, list)?;
                if values.is_empty() {
                    return Ok(());
                }
                let expected = values.iter().map(OsString::from).collect();
                self.add_values(argument, values);
                Some(expected)
            }
            (ArgumentArity::Flag { .. } | ArgumentArity::Sequences { .. }, _) => return Err(wrong()),
        };
        self.expected.insert((argument.level, argument.id.clone()), expected);
        Ok(())
    }

    /// Adds an option without a value, `times` times.
    fn add_occurrences(&mut self, argument: &ClapArgument, times: usize) {
        if let (ArgumentPlacement::Named(spelling), Some(joined)) =
            (&argument.placement, self.joined.get_mut(argument.level))
        {
            joined.extend(std::iter::repeat_n(OsString::from(spelling.to_string()), times));
        }
    }

    /// Adds the values of an argument, by its placement and arity.
    fn add_values(&mut self, argument: &ClapArgument, values: Vec<String>) {
        let level = argument.level;
        let spelling = match &argument.placement {
            ArgumentPlacement::Positional { index, last } => {
                let values = values.into_iter().map(OsString::from).collect();
                let positions = self.positions.get_mut(level);
                positions.into_iter().for_each(|all| all.push((*index, *last, Vec::clone(&values))));
                return;
            }
            ArgumentPlacement::Named(spelling) => spelling,
        };
        match (&argument.arity, argument.delimiter) {
            (ArgumentArity::Delimited, Some(delimiter)) => {
                let joined = spelling.with_value(&values.join(delimiter.encode_utf8(&mut [0; 4])));
                self.joined.get_mut(level).into_iter().for_each(|all| all.push(joined.clone()));
            }
            (ArgumentArity::Sequence { least, most } | ArgumentArity::Sequences { least, most }, _) => {
                let consumption =
                    if least == most { ValueConsumption::Fixed } else { ValueConsumption::OpenEnded };
                self.add_separate(argument, consumption, values);
            }
            _ => {
                let joined = self.joined.get_mut(level);
                joined
                    .into_iter()
                    .for_each(|all| all.extend(values.iter().map(|value| spelling.with_value(value))));
            }
        }
    }

    /// Adds an option with its values in separate words.
    fn add_separate(&mut self, argument: &ClapArgument, consumption: ValueConsumption, values: Vec<String>) {
        if let (ArgumentPlacement::Named(spelling), Some(separate)) =
            (&argument.placement, self.separate.get_mut(argument.level))
        {
            let words = std::iter::once(spelling.to_string()).chain(values).map(OsString::from).collect();
            separate.push((consumption, words));
        }
    }

    fn bytes(&self) -> usize {
        let joined = self.joined.iter().flatten();
        let separate = self.separate.iter().flatten().flat_map(|(_, words)| words);
        let positions = self.positions.iter().flatten().flat_map(|(_, _, words)| words);
        joined.chain(separate).chain(positions).map(|word| word.len() + 1).sum()
    }

    fn assemble(&self, path: &[String], prefix: &[OsString], layout: ArgvLayout) -> Vec<OsString> {
        let mut line = prefix.to_vec();
        for level in 0..=path.len() {
            let mut options = self.joined.get(level).cloned().unwrap_or_default();
            let mut separate = self.separate.get(level).cloned().unwrap_or_default();
            separate.sort_by_key(|(consumption, _)| *consumption);
            options.extend(separate.into_iter().flat_map(|(_, words)| words));
            let mut positions = self.positions.get(level).cloned().unwrap_or_default();
            positions.sort_by_key(|(index, ..)| *index);
            let Some(word) = path.get(level) else {
                push_leaf_words(&mut line, options, positions, layout);
                break;
            };
            line.extend(options);
            line.extend(positions.into_iter().flat_map(|(.., words)| words));
            line.push(word.into());
        }
        line
    }
}

fn push_leaf_words(
    line: &mut Vec<OsString>,
    options: Vec<OsString>,
    positions: Vec<(usize, bool, Vec<OsString>)>,
    layout: ArgvLayout,
) {
    let escape = || OsString::from("--");
    let (lasts, others): (Vec<_>, Vec<_>) = positions.into_iter().partition(|(_, last, _)| *last);
    let words = |positions: Vec<(usize, bool, Vec<OsString>)>| -> Vec<OsString> {
        positions.into_iter().flat_map(|(.., words)| words).collect()
    };
    let (others, lasts) = (words(others), words(lasts));
    match layout {
        ArgvLayout::Plain => line.extend(options.into_iter().chain(others).chain(lasts)),
        ArgvLayout::OptionsLast => line.extend(others.into_iter().chain(lasts).chain(options)),
        ArgvLayout::Escaped => {
            line.extend(options);
            line.extend((!others.is_empty() || !lasts.is_empty()).then(escape));
            line.extend(others.into_iter().chain(lasts));
        }
        ArgvLayout::LastEscaped | ArgvLayout::OptionsBetween => {
            let first = if layout == ArgvLayout::LastEscaped { [options, others] } else { [others, options] };
            line.extend(first.into_iter().flatten());
            line.extend((!lasts.is_empty()).then(escape));
            line.extend(lasts);
        }
    }
}

/// The operator's words before every command line, and the values that they set.
#[derive(Clone, Debug, Default)]
pub(super) struct ArgvPrefix {
    pub(super) words: Vec<OsString>,
    pub(super) expected: ExpectedValues,
}

fn value_text(argument: &ClapArgument, value: &Value) -> Result<String, ArgvError> {
    let text = argument.kind.text(value).ok_or_else(|| ArgvError::WrongType(argument.property.clone()))?;
    if text.contains('\0') {
        return Err(ArgvError::Nul(argument.property.clone()));
    }
    let bytes = match &argument.placement {
        ArgumentPlacement::Named(spelling) => text.len() + spelling.to_string().len() + 1,
        ArgumentPlacement::Positional { .. } => text.len(),
    };
    if bytes > MAX_WORD_BYTES {
        return Err(ArgvError::TooLong { argument: argument.property.clone(), bytes });
    }
    Ok(text)
}

fn value_texts(argument: &ClapArgument, list: &Value) -> Result<Vec<String>, ArgvError> {
    let list = list.as_array().ok_or_else(|| ArgvError::WrongType(argument.property.clone()))?;
    list.iter().map(|value| value_text(argument, value)).collect()
}
