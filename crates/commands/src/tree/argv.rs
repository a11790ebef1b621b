use std::ffi::OsString;

use clap::ArgMatches;
use serde_json::{Map, Value};

use super::argument::{Argument, Place, Shape};
use super::leaf::Leaf;
use super::twin::{Intent, Misread, Twin};

/// The most bytes that one word of a command line may have; Linux takes no longer one.
pub(crate) const MOST_WORD_BYTES: usize = (128 << 10) - 1;

/// The most bytes that a command line may have; Linux takes two MiB with the environment.
pub(crate) const MOST_LINE_BYTES: usize = 1 << 20;

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
    #[error("`{argument}` has {bytes} bytes; a command line takes at most {MOST_WORD_BYTES}")]
    TooLong {
        /// The argument.
        argument: String,
        /// How long it is.
        bytes: usize,
    },
    /// All values together are too long.
    #[error("the arguments have {0} bytes together; at most {MOST_LINE_BYTES} are taken")]
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
struct Words {
    /// By level: flags, and options with their value in one word.
    joined: Vec<Vec<OsString>>,
    /// By level: options with their values in words of their own, and how far they would take more words for values.
    spread: Vec<Vec<(Reach, Vec<OsString>)>>,
    /// By level: values by their place.
    positions: Vec<Vec<(usize, bool, Vec<OsString>)>>,
    intent: Intent,
}

/// How far an option takes the words behind it for its values, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// A number of words that is certain.
    Certain,
    /// At least the words that it has.
    Open,
    /// Perhaps the next word, where none is meant.
    Bare,
}

/// In which order the words of the leaf are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
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

impl Leaf {
    /// Writes the command line of a call, and makes sure that the program reads it as it is meant.
    pub(super) fn line(
        &self,
        twin: &mut Twin,
        prefix: &Prefix,
        arguments: &Map<String, Value>,
    ) -> Result<Vec<OsString>, ArgvError> {
        let words = self.words_of(prefix, arguments)?;
        let bytes = words.bytes();
        if bytes > MOST_LINE_BYTES {
            return Err(ArgvError::LineTooLong(bytes));
        }
        if !self.fixed.is_empty() {
            return Ok(prefix.words.iter().cloned().chain(self.fixed.iter().map(OsString::from)).collect());
        }
        let mut failed = None;
        for &layout in self.layouts() {
            let line = words.in_order(&self.path, &prefix.words, layout);
            match twin.check(self, &line, &words.intent) {
                Ok(()) => return Ok(line),
                // The first layout is the usual one, so that what is said of it is what a person would be told.
                Err(misread) => drop(failed.get_or_insert(misread)),
            }
        }
        Err(self.blame(failed))
    }

    /// Reads the command line of a call as the program would, without making sure of anything.
    pub(super) fn read(
        &self,
        twin: &mut Twin,
        layout: Layout,
        call: &Map<String, Value>,
    ) -> Option<clap::error::Result<ArgMatches>> {
        let words = self.words_of(&Prefix::default(), call).ok()?;
        Some(twin.read(&words.in_order(&self.path, &[], layout)))
    }

    pub(super) fn layouts(&self) -> &'static [Layout] {
        let positions = || {
            self.arguments.iter().filter_map(|argument| match argument.place {
                Place::Position { last, .. } if argument.level == self.path.len() => Some(last),
                _ => None,
            })
        };
        if positions().any(|last| last) {
            &[Layout::LastEscaped, Layout::OptionsBetween, Layout::Escaped]
        } else if positions().next().is_some() {
            &[Layout::Escaped, Layout::Plain, Layout::OptionsLast]
        } else {
            &[Layout::Plain]
        }
    }

    fn words_of(&self, prefix: &Prefix, arguments: &Map<String, Value>) -> Result<Words, ArgvError> {
        let mut words = Words::new(self.path.len() + 1);
        words.intent.extend(prefix.intent.clone());
        for always in &self.always {
            let joined = words.joined.get_mut(always.level);
            joined.into_iter().for_each(|joined| joined.push(always.spelling.with(&always.value)));
            let meant = Some(vec![always.value.clone().into()]);
            words.intent.insert((always.level, always.id.clone()), meant);
        }
        for (property, value) in arguments {
            let argument = self.arguments.iter().find(|argument| argument.property == *property);
            let argument = argument.ok_or_else(|| ArgvError::Unknown(property.clone()))?;
            words.add(argument, value)?;
        }
        Ok(words)
    }

    /// Says what is wrong in the caller's words.
    fn blame(&self, misread: Option<Misread>) -> ArgvError {
        match misread {
            Some(Misread::Refused(words)) => ArgvError::Refused(words),
            Some(Misread::Otherwise { level, id }) => {
                let argument =
                    self.arguments.iter().find(|argument| argument.level == level && argument.id == id);
                ArgvError::Unpassable(argument.map_or(id, |argument| argument.property.clone()))
            }
            None => ArgvError::Refused("the program does not take these arguments".to_owned()),
        }
    }
}

impl Words {
    fn new(levels: usize) -> Self {
        Self {
            joined: vec![Vec::new(); levels],
            spread: vec![Vec::new(); levels],
            positions: vec![Vec::new(); levels],
            intent: Intent::new(),
        }
    }

    fn add(&mut self, argument: &Argument, value: &Value) -> Result<(), ArgvError> {
        let wrong = || ArgvError::WrongType(argument.property.clone());
        let meant = match (&argument.shape, value) {
            (Shape::Flag { there }, Value::Bool(given)) if given != there => return Ok(()),
            (Shape::Flag { .. }, Value::Bool(_)) => {
                self.occur(argument, 1);
                None
            }
            (Shape::Count, value) => {
                let times = value.as_u64().and_then(|times| u8::try_from(times).ok()).ok_or_else(wrong)?;
                if times == 0 {
                    return Ok(());
                }
                self.occur(argument, times.into());
                Some(vec![times.to_string().into()])
            }
            (Shape::One | Shape::Maybe, Value::String(text))
                if text.is_empty() && argument.empty_is_absent() =>
            {
                return Ok(());
            }
            (Shape::Maybe, Value::Bool(true)) => {
                let missing = argument.missing.clone().ok_or_else(wrong)?;
                self.spread(argument, Reach::Bare, Vec::new());
                Some(missing)
            }
            (Shape::One | Shape::Maybe, value) => {
                let text = one(argument, value)?;
                self.values(argument, vec![text.clone()]);
                Some(vec![text.into()])
            }
            (Shape::Sequences { .. }, Value::Array(lists)) => {
                let mut all = Vec::new();
                for list in lists {
                    let values = many(argument, list)?;
                    all.extend(values.iter().map(OsString::from));
                    self.values(argument, values);
                }
                if all.is_empty() {
                    return Ok(());
                }
                Some(all)
            }
            (Shape::Repeated | Shape::Joined | Shape::Sequence { .. }, list) => {
                let values = many(argument, list)?;
                if values.is_empty() {
                    return Ok(());
                }
                let meant = values.iter().map(OsString::from).collect();
                self.values(argument, values);
                Some(meant)
            }
            (Shape::Flag { .. } | Shape::Sequences { .. }, _) => return Err(wrong()),
        };
        self.intent.insert((argument.level, argument.id.clone()), meant);
        Ok(())
    }

    /// Adds an option without a value, so often.
    fn occur(&mut self, argument: &Argument, times: usize) {
        if let (Place::Option(spelling), Some(joined)) =
            (&argument.place, self.joined.get_mut(argument.level))
        {
            joined.extend(std::iter::repeat_n(OsString::from(spelling.to_string()), times));
        }
    }

    /// Adds values in the way that their argument takes them.
    fn values(&mut self, argument: &Argument, values: Vec<String>) {
        let level = argument.level;
        let spelling = match &argument.place {
            Place::Position { index, last } => {
                let values = values.into_iter().map(OsString::from).collect();
                let positions = self.positions.get_mut(level);
                positions.into_iter().for_each(|all| all.push((*index, *last, Vec::clone(&values))));
                return;
            }
            Place::Option(spelling) => spelling,
        };
        match (&argument.shape, argument.delimiter) {
            (Shape::Joined, Some(delimiter)) => {
                let joined = spelling.with(&values.join(delimiter.encode_utf8(&mut [0; 4])));
                self.joined.get_mut(level).into_iter().for_each(|all| all.push(joined.clone()));
            }
            (Shape::Sequence { least, most } | Shape::Sequences { least, most }, _) => {
                let reach = if least == most { Reach::Certain } else { Reach::Open };
                self.spread(argument, reach, values);
            }
            _ => {
                let joined = self.joined.get_mut(level);
                joined
                    .into_iter()
                    .for_each(|all| all.extend(values.iter().map(|value| spelling.with(value))));
            }
        }
    }

    /// Adds an option with its values in words of their own.
    fn spread(&mut self, argument: &Argument, reach: Reach, values: Vec<String>) {
        if let (Place::Option(spelling), Some(spread)) =
            (&argument.place, self.spread.get_mut(argument.level))
        {
            let words = std::iter::once(spelling.to_string()).chain(values).map(OsString::from).collect();
            spread.push((reach, words));
        }
    }

    fn bytes(&self) -> usize {
        let joined = self.joined.iter().flatten();
        let spread = self.spread.iter().flatten().flat_map(|(_, words)| words);
        let positions = self.positions.iter().flatten().flat_map(|(_, _, words)| words);
        joined.chain(spread).chain(positions).map(|word| word.len() + 1).sum()
    }

    fn in_order(&self, path: &[String], prefix: &[OsString], layout: Layout) -> Vec<OsString> {
        let mut line = prefix.to_vec();
        for level in 0..=path.len() {
            let mut options = self.joined.get(level).cloned().unwrap_or_default();
            let mut spread = self.spread.get(level).cloned().unwrap_or_default();
            spread.sort_by_key(|(reach, _)| *reach);
            options.extend(spread.into_iter().flat_map(|(_, words)| words));
            let mut positions = self.positions.get(level).cloned().unwrap_or_default();
            positions.sort_by_key(|(index, ..)| *index);
            let Some(word) = path.get(level) else {
                leaf(&mut line, options, positions, layout);
                break;
            };
            line.extend(options);
            line.extend(positions.into_iter().flat_map(|(.., words)| words));
            line.push(word.into());
        }
        line
    }
}

fn leaf(
    line: &mut Vec<OsString>,
    options: Vec<OsString>,
    positions: Vec<(usize, bool, Vec<OsString>)>,
    layout: Layout,
) {
    let escape = || OsString::from("--");
    let (lasts, others): (Vec<_>, Vec<_>) = positions.into_iter().partition(|(_, last, _)| *last);
    let words = |positions: Vec<(usize, bool, Vec<OsString>)>| -> Vec<OsString> {
        positions.into_iter().flat_map(|(.., words)| words).collect()
    };
    let (others, lasts) = (words(others), words(lasts));
    match layout {
        Layout::Plain => line.extend(options.into_iter().chain(others).chain(lasts)),
        Layout::OptionsLast => line.extend(others.into_iter().chain(lasts).chain(options)),
        Layout::Escaped => {
            line.extend(options);
            line.extend((!others.is_empty() || !lasts.is_empty()).then(escape));
            line.extend(others.into_iter().chain(lasts));
        }
        Layout::LastEscaped | Layout::OptionsBetween => {
            let first = if layout == Layout::LastEscaped { [options, others] } else { [others, options] };
            line.extend(first.into_iter().flatten());
            line.extend((!lasts.is_empty()).then(escape));
            line.extend(lasts);
        }
    }
}

/// Words that the operator has put before every command line, and what they say.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefix {
    pub(super) words: Vec<OsString>,
    pub(super) intent: Intent,
}

fn one(argument: &Argument, value: &Value) -> Result<String, ArgvError> {
    let text = argument.kind.text(value).ok_or_else(|| ArgvError::WrongType(argument.property.clone()))?;
    if text.contains('\0') {
        return Err(ArgvError::Nul(argument.property.clone()));
    }
    let bytes = match &argument.place {
        Place::Option(spelling) => text.len() + spelling.to_string().len() + 1,
        Place::Position { .. } => text.len(),
    };
    if bytes > MOST_WORD_BYTES {
        return Err(ArgvError::TooLong { argument: argument.property.clone(), bytes });
    }
    Ok(text)
}

fn many(argument: &Argument, list: &Value) -> Result<Vec<String>, ArgvError> {
    let list = list.as_array().ok_or_else(|| ArgvError::WrongType(argument.property.clone()))?;
    list.iter().map(|value| one(argument, value)).collect()
}
