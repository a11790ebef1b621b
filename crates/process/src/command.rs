use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A program to start, with its arguments; no shell ever parses them.
///
/// A program without a folder in its name is searched in the `PATH` of its own environment. That environment is a
/// minimal base (paths of programs and of the home, user, language, time zone and folder for temporary files; `TERM`
/// is `dumb`) with the variables set here, and nothing else of this process.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) inherited: BTreeSet<OsString>,
}

/// The reason why a text is not a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandLineError {
    /// The text has no word.
    #[error("the command line is empty")]
    Empty,
    /// A quotation mark is not closed.
    #[error("the command line has a {0} that is not closed")]
    Unclosed(char),
    /// The text ends with a backslash, which escapes nothing.
    #[error("the command line ends with a backslash")]
    Backslash,
}

impl Command {
    /// Creates a command for a program, by its path or by a name to search in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: None,
            environment: BTreeMap::new(),
            inherited: BTreeSet::new(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the folder that the program starts in.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets a variable of the program's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Inherits a variable of this process's environment, with its value when the program starts.
    #[must_use]
    pub fn inherit(mut self, name: impl Into<OsString>) -> Self {
        self.inherited.insert(name.into());
        self
    }

    /// Returns the name of the program as given.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

impl FromStr for Command {
    type Err = CommandLineError;

    /// Splits a command line like a POSIX shell, without expansion.
    fn from_str(text: &str) -> Result<Self, CommandLineError> {
        let mut words = split(text)?.into_iter();
        let program = words.next().ok_or(CommandLineError::Empty)?;
        Ok(Self::new(program).args(words))
    }
}

/// Splits at blanks outside of quotation marks; a backslash escapes the next character.
fn split(text: &str) -> Result<Vec<String>, CommandLineError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => quoted(character, &mut characters, word.get_or_insert_default())?,
            // On Windows a backslash separates the parts of a path.
            '\\' if !cfg!(windows) => {
                let next = characters.next().ok_or(CommandLineError::Backslash)?;
                word.get_or_insert_default().push(next);
            }
            blank if blank.is_ascii_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing mark; within double ones a backslash escapes `"`, `\`, `$` and `` ` ``.
fn quoted(mark: char, rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), CommandLineError> {
    while let Some(character) = rest.next() {
        match character {
            closing if closing == mark => return Ok(()),
            '\\' if mark == '"' => match rest.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => return Err(CommandLineError::Unclosed(mark)),
            },
            other => word.push(other),
        }
    }
    Err(CommandLineError::Unclosed(mark))
}

impl fmt::Display for Command {
    /// Writes the program and its arguments in shell syntax. The environment may hold secrets and is omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in std::iter::once(&self.program).chain(&self.arguments).enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            let word = word.to_string_lossy();
            let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                f.write_str(&word)?;
            } else {
                write!(f, "'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("directory", &self.directory)
            .field("environment", &self.environment.keys())
            .field("inherited", &self.inherited)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_like_a_shell_without_expansion() {
        let table: &[(&str, Result<&[&str], CommandLineError>)] = &[
            ("npx -y  server\t--flag", Ok(&["npx", "-y", "server", "--flag"])),
            (r#"a 'b c' "d e" f\ g"#, Ok(&["a", "b c", "d e", "f g"])),
            (r#"a '' "" x''y"#, Ok(&["a", "", "", "xy"])),
            (r#"a "q\"\\\$\n" 'q\"'"#, Ok(&["a", r#"q"\$\n"#, r#"q\""#])),
            (
                "a $HOME ; rm -rf * | b `c` > d",
                Ok(&["a", "$HOME", ";", "rm", "-rf", "*", "|", "b", "`c`", ">", "d"]),
            ),
            ("", Err(CommandLineError::Empty)),
            ("  ", Err(CommandLineError::Empty)),
            ("a 'b", Err(CommandLineError::Unclosed('\''))),
            ("a \"b\\", Err(CommandLineError::Unclosed('"'))),
            ("a \\", Err(CommandLineError::Backslash)),
        ];
        for (text, expected) in table {
            let expected = expected.map(|words| Command::new(words[0]).args(&words[1..]));
            assert_eq!(text.parse::<Command>(), expected, "{text}");
        }
    }

    #[test]
    fn command_display_parses_back_to_the_same_command() {
        let command = Command::new("a b").args(["it's", "", "$x", "plain", "\"", "\\", "ä\n"]);
        assert_eq!(command.to_string().parse(), Ok(command));
    }

    #[test]
    fn command_debug_has_no_variable_values() {
        let command = Command::new("a").env("TOKEN", "sentinel");
        assert!(!format!("{command} {command:?}").contains("sentinel"));
    }
}
