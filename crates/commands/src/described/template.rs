use serde_json::{Map, Value};

use super::argument::{ArgumentKind, DescribedArgument};
use super::config::{ArgvItem, CommandFault};
use super::interpreter::{InjectionRisk, injection_risk};
use super::question_text;
use crate::tree::{MAX_LINE_BYTES, MAX_WORD_BYTES};

/// Why a call cannot be converted to a command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescribedError {
    /// There is no such argument.
    #[error("`{0}` is not one of its arguments")]
    Unknown(String),
    /// An argument is missing.
    #[error("`{0}` is missing")]
    Missing(String),
    /// The value is not of the argument's type.
    #[error("the value of `{argument}` must be {wanted}")]
    WrongType {
        /// The argument.
        argument: String,
        /// The expected type.
        wanted: String,
    },
    /// The value has a NUL character.
    #[error("`{0}` has a NUL character, which no command line can carry")]
    Nul(String),
    /// A value is too long.
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
    /// The program could parse the value as an option.
    #[error("`{0}` begins with `-`, which the command could read as an option")]
    Dash(String),
    /// The file for the arguments cannot be written.
    #[error("the file for the arguments cannot be written: {0}")]
    File(String),
}

const PROGRAM_NOT_SELECTABLE: &str = "the program itself is not for the caller to choose";

/// An argument vector with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArgvTemplate {
    items: Vec<Vec<TemplateWord>>,
}

/// A word with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TemplateWord {
    pieces: Vec<TemplatePiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    /// The index of an argument.
    Placeholder(usize),
}

impl ArgvTemplate {
    /// Parses an argument vector, and adds its faults.
    pub(super) fn parse(
        items: &[ArgvItem],
        arguments: &[DescribedArgument],
        faults: &mut Vec<CommandFault>,
    ) -> Self {
        let mut template = Self::default();
        let mut before: Vec<&str> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let mut group = Vec::new();
            for word in item.words() {
                let index = at.to_string();
                match TemplateWord::parse(word, arguments) {
                    Ok(parsed) => {
                        faults.extend(
                            parsed
                                .fault(at, &before, arguments)
                                .map(|what| CommandFault::new(&["argv", &index], what)),
                        );
                        group.push(parsed);
                    }
                    Err(what) => faults.push(CommandFault::new(&["argv", &index], what)),
                }
                before.push(word);
            }
            template.items.push(group);
        }
        if template.items.first().is_none_or(Vec::is_empty) {
            faults.push(CommandFault::new(&["argv"], "it names no program"));
        }
        template
    }

    /// Returns the indices of arguments that have a placeholder.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = usize> {
        self.items.iter().flatten().flat_map(TemplateWord::placeholders)
    }

    /// Builds the words for values, by the index of their argument; `None` is an absent value.
    pub(super) fn fill(
        &self,
        arguments: &[DescribedArgument],
        values: &[Option<Vec<String>>],
    ) -> Result<Vec<String>, DescribedError> {
        let mut line = Vec::new();
        let mut escaped = false;
        for item in &self.items {
            let given = |at: usize| values.get(at).is_some_and(Option::is_some);
            if item.iter().flat_map(TemplateWord::placeholders).all(given) {
                for word in item {
                    line.extend(word.fill(arguments, values, escaped)?);
                    escaped = word.is_literal("--") || (escaped && word.placeholders().next().is_some());
                }
            }
        }
        let bytes: usize = line.iter().map(|word| word.len() + 1).sum();
        if bytes > MAX_LINE_BYTES { Err(DescribedError::LineTooLong(bytes)) } else { Ok(line) }
    }
}

impl TemplateWord {
    /// Parses a word; `{name}` is a placeholder, `{{` and `}}` are braces.
    pub(super) fn parse(text: &str, arguments: &[DescribedArgument]) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.peek() == Some(&c) => {
                    rest.next();
                    plain.push(c);
                }
                '{' => {
                    let name: String = rest.by_ref().take_while(|c| *c != '}').collect();
                    let at = arguments.iter().position(|argument| argument.name == name);
                    let at = at.ok_or_else(|| {
                        format!("`{{{name}}}` is not an argument; a brace is written `{{{{`")
                    })?;
                    pieces
                        .extend((!plain.is_empty()).then(|| TemplatePiece::Text(std::mem::take(&mut plain))));
                    pieces.push(TemplatePiece::Placeholder(at));
                }
                '}' => return Err("a `}` closes nothing; a brace is written `}}`".to_owned()),
                c => plain.push(c),
            }
        }
        if !plain.is_empty() || pieces.is_empty() {
            pieces.push(TemplatePiece::Text(plain));
        }
        Ok(Self { pieces })
    }

    /// Reports whether the word is this text, without placeholders.
    fn is_literal(&self, text: &str) -> bool {
        matches!(self.pieces.as_slice(), [TemplatePiece::Text(own)] if own == text)
    }

    /// Returns the text before the first placeholder.
    fn prefix(&self) -> &str {
        match self.pieces.first() {
            Some(TemplatePiece::Text(text)) => text,
            _ => "",
        }
    }

    fn placeholders(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Placeholder(at) => Some(*at),
            TemplatePiece::Text(_) => None,
        })
    }

    /// Returns the argument if the word is a single placeholder.
    fn sole_placeholder(&self) -> Option<usize> {
        match self.pieces.as_slice() {
            [TemplatePiece::Placeholder(at)] => Some(*at),
            _ => None,
        }
    }

    fn fault(&self, at: usize, before: &[&str], arguments: &[DescribedArgument]) -> Option<String> {
        let argument = |at: usize| arguments.get(at);
        let mut placeholders = self.placeholders().filter_map(argument);
        let first = placeholders.next()?;
        if at == 0 {
            return Some(PROGRAM_NOT_SELECTABLE.to_owned());
        }
        let alone = self.sole_placeholder().and_then(argument);
        if !alone.is_some_and(|argument| argument.config.program) {
            match injection_risk(before, self.prefix()) {
                Some(InjectionRisk::Code) => {
                    return Some(format!(
                        "`{}` would become part of a program; use `script`, or say `program = true` of an argument that is all of it",
                        first.name
                    ));
                }
                Some(InjectionRisk::Program) if first.config.kind == ArgumentKind::String => {
                    return Some(PROGRAM_NOT_SELECTABLE.to_owned());
                }
                _ => {}
            }
        }
        if self.placeholders().filter_map(argument).filter(|argument| argument.config.repeated).count() > 1 {
            return Some("a word has the place of one repeated argument at most".to_owned());
        }
        let flag = self.placeholders().filter_map(argument).find(|argument| argument.config.flag.is_some());
        flag.filter(|_| alone.is_none()).map(|flag| format!("the flag `{}` is a word of its own", flag.name))
    }

    /// Builds the word once, or once for each value of its repeated argument.
    ///
    /// It is `escaped` if a `--` precedes it with nothing but values between. A literal word in between may be
    /// another program, as in `kubectl exec web -- ls {path}`, to which the `--` does not apply.
    fn fill(
        &self,
        arguments: &[DescribedArgument],
        values: &[Option<Vec<String>>],
        escaped: bool,
    ) -> Result<Vec<String>, DescribedError> {
        if let Some(argument) = self.sole_placeholder().and_then(|at| arguments.get(at))
            && let (ArgumentKind::Boolean, Some(flag)) = (argument.config.kind, &argument.config.flag)
        {
            let given = self.sole_placeholder().and_then(|at| values.get(at)).and_then(Option::as_ref);
            let is_set = given.is_some_and(|values| values.first().is_some_and(|value| value == "true"));
            return Ok(is_set.then(|| flag.clone()).into_iter().collect());
        }
        let repeated = self
            .placeholders()
            .find(|at| arguments.get(*at).is_some_and(|argument| argument.config.repeated));
        let times = match repeated.and_then(|at| values.get(at)).and_then(Option::as_ref) {
            Some(values) => values.len(),
            None => 1,
        };
        (0..times).map(|turn| self.fill_once(arguments, values, turn, escaped)).collect()
    }

    fn fill_once(
        &self,
        arguments: &[DescribedArgument],
        values: &[Option<Vec<String>>],
        turn: usize,
        escaped: bool,
    ) -> Result<String, DescribedError> {
        let mut word = String::new();
        for piece in &self.pieces {
            let at = match piece {
                TemplatePiece::Text(text) => {
                    word.push_str(text);
                    continue;
                }
                TemplatePiece::Placeholder(at) => *at,
            };
            let (Some(argument), Some(Some(texts))) = (arguments.get(at), values.get(at)) else { continue };
            let text = texts.get(if argument.config.repeated { turn } else { 0 }).map_or("", String::as_str);
            // A value at the beginning of a word could turn it into an option, unless a `--` precedes it.
            if word.is_empty() && text.starts_with('-') && !escaped && !argument.config.allow_dash {
                return Err(DescribedError::Dash(argument.name.clone()));
            }
            word.push_str(text);
            if word.len() > MAX_WORD_BYTES {
                return Err(DescribedError::TooLong { argument: argument.name.clone(), bytes: word.len() });
            }
        }
        Ok(word)
    }

    /// Formats the word for a user; absent values stay placeholders.
    pub(super) fn display_text(
        &self,
        arguments: &[DescribedArgument],
        values: &[Option<Vec<String>>],
    ) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            TemplatePiece::Text(text) => text.clone(),
            TemplatePiece::Placeholder(at) => match (arguments.get(*at), values.get(*at)) {
                (_, Some(Some(texts))) => question_text::format_values(texts),
                (Some(argument), _) => format!("{{{}}}", argument.name),
                _ => String::new(),
            },
        });
        pieces.collect()
    }
}

/// Returns the values of a call as text, by the index of the argument.
pub(super) fn argument_texts(
    arguments: &[DescribedArgument],
    call: &Map<String, Value>,
) -> Result<Vec<Option<Vec<String>>>, DescribedError> {
    if let Some(unknown) = call.keys().find(|key| arguments.iter().all(|argument| argument.name != **key)) {
        return Err(DescribedError::Unknown(unknown.clone()));
    }
    let each = arguments.iter().map(|argument| {
        let wrong = |()| DescribedError::WrongType {
            argument: argument.name.clone(),
            wanted: argument.config.type_description(),
        };
        let texts = argument.texts(call.get(&argument.name)).map_err(wrong)?;
        if texts.is_none() && argument.required {
            return Err(DescribedError::Missing(argument.name.clone()));
        }
        if texts.iter().flatten().any(|text| text.contains('\0')) {
            return Err(DescribedError::Nul(argument.name.clone()));
        }
        // An empty list counts as absent.
        Ok(texts.filter(|texts| !texts.is_empty() || !argument.config.repeated))
    });
    each.collect()
}
