//! The two configuration formats, parsed into one tree of values with positions.

mod jsonc;
mod toml;

use std::ops::Range;
use std::path::Path;

use crate::node::ConfigNode;

/// The format of a configuration file.
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

/// A syntax error of a configuration file.
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
