use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::{Map, Value};

use super::argument::{ArgumentArity, ArgumentPlacement, ClapArgument};
use super::leaf::LeafCommand;
use super::untyped_parser::{ExpectedValues, ParseMismatch, UntypedParser};

/// The most bytes that one word of a command line may have; Linux takes no longer one.
pub(crate) const MAX_WORD_BYTES: usize = (128 << 10) - 1;

/// The most bytes that a command line may have; Linux takes two MiB with the environment.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 20;

/// Why a call cannot become a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgvError {
    /// There is no such argument.
    #[error("`{0}` is not one of its arguments")]
    Unknown(String),
    /// The value is not of the argument's type.
    #[error("the value of `{0}` is not of its type")]
    WrongType(String),
    /// No command line can carry the value.
    #[error("`{0}` has a NUL character, which no command line can carry")]
    Nul(String),
    /// One value is too long.
    #[error("`{argument}` has {bytes} bytes; a command line takes at most {MAX_WORD_BYTES}")]
    TooLong {
        /// The argument.
        argument: String,
        /// How long it is.
        bytes: usize,
    },
    /// All values together are too long.
    #[error("the arguments have {0} bytes together; at most {MAX_LINE_BYTES} are taken")]
    LineTooLong(usize),
    /// However it is written, the program would read the value as something else.
    #[error("the value of `{0}` cannot be passed on: the program would read it as something else")]
    Unpassable(String),
    /// The program does not take these arguments together.
    #[error("{0}")]
    Refused(String),
}

/// The words of one command line before they are put in order.
#[derive(Debug, Default)]
struct ArgvWords {
    /// By level: flags, and options with their value in one word.
    joined: Vec<Vec<OsString>>,
    /// By level: options with their values in words of their own, and how far they would take more words for values.
    separate: Vec<Vec<(ValueConsumption, Vec<OsString>)>>,
    /// By level: values by their place.
    positions: Vec<Vec<(usize, bool, Vec<OsString>)>>,
    expected: ExpectedValues,
}

/// How far an option takes the words behind it for its values, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueConsumption {
    /// A number of words that is certain.
    Fixed,
    /// At least the words that it has.
    OpenEnded,
    /// Perhaps the next word, where none is meant.
    OptionalValue,
}

/// In which order the words of the leaf are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgvLayout {
    /// Options, `--`, values by place.
    Escaped,
    /// Options, values by place, `--`, the last of those.
    LastEscaped,
    /// Values by place, options, `--`, the last of those values.
    OptionsBetween,
    /// Options, values by place.
    Plain,
    /// Values by place, options.
    OptionsLast,
}

impl LeafCommand {
    /// Writes the command line of a call, and makes sure that the program reads it as it is meant.
    pub(super) fn build_argv(
        &self,
        twin: &mut UntypedParser,
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
            match twin.check(self, &line, &words.expected) {
                Ok(()) => return Ok(line),
                // The first layout is the usual one, so that what is said of it is what a person would be told.
                Err(misread) => drop(failed.get_or_insert(misread)),
            }
        }
        Err(self.argv_error(failed))
    }

    /// Reads the command line of a call as the program would, without making sure of anything.
    pub(super) fn parse_call(
        &self,
        twin: &mut UntypedParser,
        layout: ArgvLayout,
        call: &Map<String, Value>,
    ) -> Option<clap::error::Result<ArgMatches>> {
        let words = self.words_of(&ArgvPrefix::default(), call).ok()?;
        Some(twin.parse(&words.assemble(&self.path, &[], layout)))
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
        for always in &self.fixed_options {
            let joined = words.joined.get_mut(always.level);
            joined.into_iter().for_each(|joined| joined.push(always.spelling.with_value(&always.value)));
            let meant = Some(vec![always.value.clone().into()]);
            words.expected.insert((always.level, always.id.clone()), meant);
        }
        for (property, value) in arguments {
            let argument = self.arguments.iter().find(|argument| argument.property == *property);
            let argument = argument.ok_or_else(|| ArgvError::Unknown(property.clone()))?;
            words.add(argument, value)?;
        }
        Ok(words)
    }

    /// Says what is wrong in the caller's words.
    fn argv_error(&self, misread: Option<ParseMismatch>) -> ArgvError {
        match misread {
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
        let meant = match (&argument.arity, value) {
            (ArgumentArity::Flag { value_if_present: there }, Value::Bool(given)) if given != there => {
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
                let meant = values.iter().map(OsString::from).collect();
                self.add_values(argument, values);
                Some(meant)
            }
            (ArgumentArity::Flag { .. } | ArgumentArity::Sequences { .. }, _) => return Err(wrong()),
        };
        self.expected.insert((argument.level, argument.id.clone()), meant);
        Ok(())
    }

    /// Adds an option without a value, so often.
    fn add_occurrences(&mut self, argument: &ClapArgument, times: usize) {
        if let (ArgumentPlacement::Named(spelling), Some(joined)) =
            (&argument.placement, self.joined.get_mut(argument.level))
        {
            joined.extend(std::iter::repeat_n(OsString::from(spelling.to_string()), times));
        }
    }

    /// Adds values in the way that their argument takes them.
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
                let reach = if least == most { ValueConsumption::Fixed } else { ValueConsumption::OpenEnded };
                self.add_separate(argument, reach, values);
            }
            _ => {
                let joined = self.joined.get_mut(level);
                joined
                    .into_iter()
                    .for_each(|all| all.extend(values.iter().map(|value| spelling.with_value(value))));
            }
        }
    }

    /// Adds an option with its values in words of their own.
    fn add_separate(&mut self, argument: &ClapArgument, reach: ValueConsumption, values: Vec<String>) {
        if let (ArgumentPlacement::Named(spelling), Some(spread)) =
            (&argument.placement, self.separate.get_mut(argument.level))
        {
            let words = std::iter::once(spelling.to_string()).chain(values).map(OsString::from).collect();
            spread.push((reach, words));
        }
    }

    fn bytes(&self) -> usize {
        let joined = self.joined.iter().flatten();
        let spread = self.separate.iter().flatten().flat_map(|(_, words)| words);
        let positions = self.positions.iter().flatten().flat_map(|(_, _, words)| words);
        joined.chain(spread).chain(positions).map(|word| word.len() + 1).sum()
    }

    fn assemble(&self, path: &[String], prefix: &[OsString], layout: ArgvLayout) -> Vec<OsString> {
        let mut line = prefix.to_vec();
        for level in 0..=path.len() {
            let mut options = self.joined.get(level).cloned().unwrap_or_default();
            let mut spread = self.separate.get(level).cloned().unwrap_or_default();
            spread.sort_by_key(|(reach, _)| *reach);
            options.extend(spread.into_iter().flat_map(|(_, words)| words));
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

/// Words that the operator has put before every command line, and what they say.
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
