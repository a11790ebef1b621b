use std::fmt;
use std::path::{Path, PathBuf};

use crate::file::ConfigFile;
use crate::limits::MAX_PROBLEMS;
use crate::source_position::SourcePosition;

/// One thing that is wrong with a configuration: where, in what, and what to do about it.
///
/// It prints as `FILE:LINE:COLUMN: server … , key …: what is wrong`. It never repeats the value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem(Box<ProblemDetails>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProblemDetails {
    file: PathBuf,
    position: Option<SourcePosition>,
    server: Option<String>,
    key: Option<String>,
    message: String,
    hint: Option<String>,
    unset_variable: Option<String>,
}

impl ConfigProblem {
    /// Creates a problem of a whole file.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        let (file, what) = (file.into(), what.into());
        Self(Box::new(ProblemDetails {
            file,
            position: None,
            server: None,
            key: None,
            message: what,
            hint: None,
            unset_variable: None,
        }))
    }

    /// Sets the position in the file.
    #[must_use]
    pub fn at(mut self, position: SourcePosition) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Sets the server of the problem.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.0.server = Some(name.into());
        self
    }

    /// Sets the key of the problem, as a dotted path.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into()).filter(|key| !key.is_empty());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets the environment variable that is missing, where that is the problem.
    #[must_use]
    pub(crate) fn unset(mut self, name: Option<String>) -> Self {
        self.0.unset_variable = name;
        self
    }

    /// Returns the environment variable that is missing, if that is the problem: the file may be right.
    pub fn unset_variable(&self) -> Option<&str> {
        self.0.unset_variable.as_deref()
    }

    /// Returns the file.
    pub fn file(&self) -> &Path {
        &self.0.file
    }

    /// Returns the position in the file, if it has one.
    pub fn position(&self) -> Option<SourcePosition> {
        self.0.position
    }

    /// Returns the name of the server of the problem.
    pub fn server_name(&self) -> Option<&str> {
        self.0.server.as_deref()
    }

    /// Returns the key of the problem.
    pub fn key_path(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Returns the message, without the position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns what to do about it, if there is a thing to do.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.0.file.display())?;
        if let Some(position) = self.0.position {
            write!(f, "{position}:")?;
        }
        match (&self.0.server, &self.0.key) {
            (Some(server), Some(key)) => write!(f, " server `{server}`, key `{key}`:")?,
            (Some(server), None) => write!(f, " server `{server}`:")?,
            (None, Some(key)) => write!(f, " key `{key}`:")?,
            (None, None) => {}
        }
        write!(f, " {}", self.0.message)
    }
}

impl std::error::Error for ConfigProblem {}

/// Everything that is wrong with a configuration, at least one thing.
#[derive(Clone, Debug)]
pub struct ConfigError {
    first: ConfigProblem,
    more: Vec<ConfigProblem>,
    file: Option<ConfigFile>,
}

impl ConfigError {
    /// Collects problems; of very many only the first are kept. `None` if there is none.
    pub(crate) fn of(problems: impl IntoIterator<Item = ConfigProblem>) -> Option<Self> {
        let mut problems = problems.into_iter();
        let first = problems.next()?;
        Some(Self { first, more: problems.take(MAX_PROBLEMS - 1).collect(), file: None })
    }

    /// Adds the file that has the problems.
    pub(crate) fn with_file(self, file: &ConfigFile) -> Self {
        Self { file: Some(file.clone()), ..self }
    }

    /// Returns the file, if its sections can be read in spite of the problems, so that one run reports theirs too.
    pub fn readable_file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    /// Returns the problems in the order of the file.
    pub fn problems(&self) -> impl Iterator<Item = &ConfigProblem> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

/// Two errors are equal if their problems are.
impl PartialEq for ConfigError {
    fn eq(&self, other: &Self) -> bool {
        (&self.first, &self.more) == (&other.first, &other.more)
    }
}

impl Eq for ConfigError {}

impl From<ConfigProblem> for ConfigError {
    fn from(first: ConfigProblem) -> Self {
        Self { first, more: Vec::new(), file: None }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.more.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for ConfigError {}
