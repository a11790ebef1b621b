//! The two configuration formats, parsed into one tree of values with positions.

mod jsonc;
mod toml;

use std::ops::Range;
use std::path::Path;

use crate::node::ConfigNode;

/// The language that a configuration is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFormat {
    /// `trunkline.toml`, in which every key is ours.
    Toml,
    /// An `mcp.json` of any client: JSON with comments and trailing commas, and keys that are not ours.
    Json,
}

impl ConfigFormat {
    /// Returns the format for the name of a file: TOML for `.toml`, JSON otherwise.
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) {
            Self::Toml
        } else {
            Self::Json
        }
    }
}

/// What is wrong with the text of a configuration before any of it has a meaning.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

/// Reads a text without its byte order mark. Spans count from the same beginning.
pub(crate) fn parse(format: ConfigFormat, text: &str) -> Result<ConfigNode, SyntaxError> {
    match format {
        ConfigFormat::Toml => toml::parse(text),
        ConfigFormat::Json => jsonc::parse(text),
    }
}
