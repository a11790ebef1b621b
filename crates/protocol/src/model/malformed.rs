use std::borrow::Cow;
use std::fmt;

use crate::json::MalformedJson;

/// A value that does not match its type, with the path of the malformed member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedModel {
    path: String,
    problem: Cow<'static, str>,
}

impl MalformedModel {
    /// Creates an error about the value itself.
    pub fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// Prefixes the path with the member that holds the value.
    pub fn within(mut self, member: &str) -> Self {
        if !self.path.is_empty() && !self.path.starts_with('[') {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, member);
        self
    }

    /// Prefixes the path with the array index that holds the value.
    pub fn at(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// Returns the path of the malformed member, such as `tools[3].name`, or an empty text for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for MalformedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the value {}", self.problem),
            path => write!(f, "`{path}` {}", self.problem),
        }
    }
}

impl std::error::Error for MalformedModel {}

impl From<MalformedJson> for MalformedModel {
    fn from(error: MalformedJson) -> Self {
        Self::new(format!("must be an object: {error}"))
    }
}
