use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::de;
use crate::file::FileContents;
use crate::node::ConfigNode;
use crate::problem::ConfigProblem;
use crate::source_position::SourcePosition;

/// A section of `trunkline.toml` that another crate decodes into its own type.
///
/// An unknown key is rejected with a suggestion, whether the type itself denies unknown fields or not. Variables are
/// expanded in every string; a field of the type [`VerbatimText`](crate::VerbatimText) is left as it is, and one of
/// the type [`ConfigText`](crate::ConfigText) has both forms and is redacted in debug output.
#[derive(Clone, Debug)]
pub struct ConfigSection {
    file: Arc<FileContents>,
    path: Vec<String>,
}

impl ConfigSection {
    pub(crate) fn new(file: Arc<FileContents>, path: Vec<String>) -> Self {
        Self { file, path }
    }

    /// Returns the name of the section, the last part of its path.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &std::path::Path {
        &self.file.path
    }

    /// Decodes the section.
    ///
    /// # Errors
    /// The first mistake, with its position, its key, and a suggestion.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigProblem> {
        let node =
            self.node().ok_or_else(|| ConfigProblem::new(&self.file.path, "there is no such section"))?;
        let expander = self.file.expander();
        de::read(node, &expander)
            .map_err(|fault| self.file.problem(&fault, &self.path).unset(expander.take_unset()))
    }

    /// Returns the nested tables, in the order of the file: `[commands.a]` and `[commands.b]` of `commands`.
    ///
    /// # Errors
    /// A value within the section is not a table.
    pub fn tables(&self) -> Result<Vec<Self>, ConfigProblem> {
        let entries = self.node().and_then(ConfigNode::entries).unwrap_or_default();
        let each = entries.iter().map(|entry| match entry.value.entries() {
            Some(_) => {
                let path = self.path.iter().cloned().chain([entry.key.clone()]).collect();
                Ok(Self::new(Arc::clone(&self.file), path))
            }
            None => {
                let what = format!("expected a table, found {}", entry.value.kind_name());
                Err(self.problem(&[&entry.key], what))
            }
        });
        each.collect()
    }

    /// Returns the position of the section.
    pub fn position(&self) -> SourcePosition {
        SourcePosition::from_offset(&self.file.text, self.node().map_or(0, |node| node.span.start))
    }

    /// Creates a problem that only the crate which decodes the section can detect, at the position of a path of keys;
    /// numbers are indices of lists. If the path does not exist, the position is that of its last key that does.
    pub fn problem(&self, keys: &[&str], what: impl Into<String>) -> ConfigProblem {
        let mut node = self.node();
        let mut offset = node.map_or(0, |node| node.span.start);
        for key in keys {
            node = node.and_then(|node| node.at(&[key]));
            offset = node.map_or(offset, |node| node.span.start);
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).chain(keys.iter().copied()).collect();
        ConfigProblem::new(&self.file.path, what)
            .at(SourcePosition::from_offset(&self.file.text, offset))
            .key(path.join("."))
    }

    fn node(&self) -> Option<&ConfigNode> {
        self.file.root.at(&self.path)
    }
}
