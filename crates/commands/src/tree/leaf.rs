use serde_json::Value;

use super::argument::Argument;
use super::spelling::Spelling;

/// A leaf command of a program: one tool.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) aliases: Vec<String>,
    pub(super) description: String,
    pub(super) arguments: Vec<Argument>,
    pub(super) schema: Value,
    /// The same without what arguments have to do with each other, of which the program itself tells best.
    pub(super) each: Value,
    /// Options that are always there.
    pub(super) always: Vec<Always>,
    /// Words that are always there, such as the `--version` of a tool that shows it.
    pub(super) fixed: Vec<String>,
}

/// An option that the caller does not choose.
#[derive(Clone, Debug)]
pub(super) struct Always {
    pub(super) level: usize,
    pub(super) id: String,
    pub(super) spelling: Spelling,
    pub(super) value: String,
}

impl Leaf {
    /// Returns the words that lead to the command, without the name of the program; empty is the program itself.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what humans call the tool: the words of its path.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Reports whether the command is made to write JSON.
    pub fn writes_json(&self) -> bool {
        !self.always.is_empty()
    }

    /// Returns the older spellings by which the tool may be called too.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Returns what the command does, in the words of its help.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the JSON Schema of a call's arguments.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    pub(crate) fn schema_of_each(&self) -> &Value {
        &self.each
    }

    /// Returns the words that policies are matched against: the path, or for the program's version `--version`.
    pub fn words(&self) -> Vec<&str> {
        self.path.iter().chain(&self.fixed).map(String::as_str).collect()
    }
}
