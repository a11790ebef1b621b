//! The configuration formats, parsed into one tree of values with positions.

mod jsonc;
mod toml;
mod yaml;

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::node::ConfigNode;

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFormat {
    /// `trunkline.toml`, in which every key is ours.
    Toml,
    /// An `mcp.json` of any client: JSON with comments and trailing commas, and keys that are not ours.
    Json,
    /// The YAML file of a client.
    Yaml,
    /// The TOML file of a client: that of Codex.
    ClientToml,
}

impl ConfigFormat {
    /// Returns the format for the name of a file: TOML for `.toml`, YAML for `.yaml` and `.yml`, JSON otherwise. The
    /// `config.toml` of Codex, in its own folder, is that of a client.
    pub fn of(path: &Path) -> Self {
        let is = |end: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(end));
        let is_codex = || {
            let folder = path.parent().and_then(Path::file_name);
            path.file_name().is_some_and(|name| name == "config.toml")
                && (folder.is_some_and(|folder| folder == ".codex")
                    || path.parent() == codex_home().as_deref())
        };
        match path {
            _ if is("toml") && is_codex() => Self::ClientToml,
            _ if is("toml") => Self::Toml,
            _ if is("yaml") || is("yml") => Self::Yaml,
            _ => Self::Json,
        }
    }

    /// Reports whether files of this format belong to a client, with keys that are not ours.
    pub fn is_client(self) -> bool {
        self != Self::Toml
    }
}

/// Returns the folder of Codex, if the environment names one.
pub(crate) fn codex_home() -> Option<PathBuf> {
    std::env::var_os("CODEX_HOME").map(PathBuf::from).filter(|path| path.is_absolute())
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
        ConfigFormat::Toml | ConfigFormat::ClientToml => toml::parse(text),
        ConfigFormat::Yaml => yaml::parse(text),
        ConfigFormat::Json => jsonc::parse(text),
    }
}
