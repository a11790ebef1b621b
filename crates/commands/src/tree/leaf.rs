use serde_json::Value;

use super::argument::ClapArgument;
use super::spelling::OptionSpelling;

/// A leaf command of a program: one tool.
#[derive(Clone, Debug)]
pub struct LeafCommand {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) aliases: Vec<String>,
    pub(super) description: String,
    pub(super) arguments: Vec<ClapArgument>,
    pub(super) schema: Value,
    /// The same without what arguments have to do with each other, of which the program itself tells best.
    pub(super) independent_schema: Value,
    /// Options that are always there.
    pub(super) fixed_options: Vec<FixedOption>,
    /// Words that are always there, such as the `--version` of a tool that shows it.
    pub(super) fixed_words: Vec<String>,
}

/// An option that the caller does not choose.
#[derive(Clone, Debug)]
pub(super) struct FixedOption {
    pub(super) level: usize,
    pub(super) id: String,
    pub(super) spelling: OptionSpelling,
    pub(super) value: String,
}

impl LeafCommand {
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
        !self.fixed_options.is_empty()
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

    pub(crate) fn independent_schema(&self) -> &Value {
        &self.independent_schema
    }

    /// Returns the words that policies are matched against: the path, or for the program's version `--version`.
    pub fn words(&self) -> Vec<&str> {
        self.path.iter().chain(&self.fixed_words).map(String::as_str).collect()
    }
}
