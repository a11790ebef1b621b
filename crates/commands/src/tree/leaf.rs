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
    /// The same without relations between arguments, which the program itself reports better.
    pub(super) independent_schema: Value,
    /// Options of every call.
    pub(super) fixed_options: Vec<FixedOption>,
    /// Words of every call, such as the `--version` of the version tool.
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
    /// Returns the path of the command, without the name of the program; empty for the program itself.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title of the tool: the words of its path.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Reports whether the command is made to write JSON.
    pub fn writes_json(&self) -> bool {
        !self.fixed_options.is_empty()
    }

    /// Returns the aliases by which the tool may be called too.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Returns the description of the command, from its help.
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

    /// Returns the words for policies: the path, or `--version` for the program's version.
    pub fn words(&self) -> Vec<&str> {
        self.path.iter().chain(&self.fixed_words).map(String::as_str).collect()
    }
}
