//! Edits of configurations that keep everything else byte for byte: comments, order, line ends and unknown keys.
//!
//! # Invariants
//!
//! - An edit of a client's file changes only the bytes of its entry: `editing_mcp_json_preserves_everything_else`.
//! - A file that another program changed since it was read is not overwritten:
//!   `saving_fails_if_the_config_changed_on_disk`.

mod fields;
mod json;
mod restore;
mod text_edit;
mod toml;
mod write;
mod yaml;

use std::io;
use std::path::{Path, PathBuf};

use self::text_edit::{TextEdit, apply};
pub use self::write::replace_file;
use crate::file::{ConfigFile, FileOrigin, containers, load};
use crate::limits::{MAX_CLIENT_BYTES, MAX_CONFIG_BYTES};
use crate::node::{ConfigNode, NodeKind};
use crate::problem::{ConfigError, ConfigProblem};
use crate::server::ServerConfig;
use crate::syntax::ConfigFormat;
use crate::variables::ConfigVariables;

/// A configuration that is being changed. Nothing is written before [`ConfigEditor::save`].
#[derive(Clone, Debug)]
pub struct ConfigEditor {
    path: PathBuf,
    /// The content that was read, and that the file must still have on saving; `None` if there was no file.
    original: Option<String>,
    file: ConfigFile,
    container: String,
    /// Whether a file that is made is for its owner alone.
    is_private: bool,
    /// Whether saving deletes the file.
    is_deleted: bool,
}

/// Whether a copy of the old file is left beside the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupMode {
    /// As `NAME.bak`, or `NAME.bak2` and so on if that is taken.
    Make,
    /// No copy.
    Skip,
}

/// What saving did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// Nothing was changed, and nothing written.
    Unchanged,
    /// The file was written; the copy of the old one is here, if one was made.
    Written(Option<PathBuf>),
    /// The file, which had nothing but the removed server, was deleted.
    Deleted,
}

/// The reason why an edit failed. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file cannot be used, or has no such server.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is a server of this name already.
    #[error("{}: a server `{name}` already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// The file is written in a way that this edit would break.
    #[error("{}: cannot edit the server `{name}` as it is written; change it by hand", path.display())]
    UnsupportedLayout {
        /// The file.
        path: PathBuf,
        /// The name of the server.
        name: String,
    },
    /// Another program changed the file since it was read.
    #[error("{}: another program has changed the file; try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file, or its copy, cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl ConfigEditor {
    /// Opens an existing file.
    ///
    /// # Errors
    /// As those of [`ConfigFile::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, EditError> {
        let path = path.as_ref();
        let most = if ConfigFormat::of(path).is_client() { MAX_CLIENT_BYTES } else { MAX_CONFIG_BYTES };
        let original = load(path, most, FileOrigin::Named).map_err(ConfigError::from)?;
        Self::parse(path, &original)
    }

    /// Parses a text as the content of this file; saving requires that the file still has this content.
    ///
    /// # Errors
    /// As those of [`ConfigFile::parse`].
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, EditError> {
        let path = path.into();
        let file = ConfigFile::parse(&path, text, ConfigVariables::unexpanded())?;
        Ok(Self {
            path,
            original: Some(text.to_owned()),
            file,
            container: "mcpServers".to_owned(),
            is_private: false,
            is_deleted: false,
        })
    }

    /// Opens a file that may not exist yet. Saving creates it, and its folder.
    ///
    /// # Errors
    /// The file exists and cannot be used.
    pub fn open_or_new(path: impl AsRef<Path>) -> Result<Self, EditError> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            return Self::open(path);
        }
        Ok(Self { original: None, ..Self::parse(path, "")? })
    }

    /// Sets the key under which an `mcp.json` without servers gets its first one; `mcpServers` by default.
    #[must_use]
    pub fn container(mut self, key: impl Into<String>) -> Self {
        self.container = key.into();
        self
    }

    /// Creates a new file readable only by its owner; an existing file keeps its mode.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// Reports whether only the owner can read the file once it is saved; always true where files have no modes.
    pub fn is_private(&self) -> bool {
        match &self.original {
            None => self.is_private,
            Some(_) => write::is_private(&self.path),
        }
    }

    /// Reports whether the file does not exist yet.
    pub fn is_new(&self) -> bool {
        self.original.is_none()
    }

    /// Returns the file as it would be saved, with its variables as they are written.
    pub fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// Adds a server, with variables by name and without fields at their default.
    ///
    /// # Errors
    /// The name is taken, or the definition could not be parsed again.
    pub fn add(&mut self, server: &ServerConfig) -> Result<(), EditError> {
        let name = server.name.as_str();
        if self.file.server_names().contains(&name) {
            return Err(EditError::Exists { path: self.path.clone(), name: name.to_owned() });
        }
        let (text, root) = (self.file.text(), self.file.root());
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let splices = match self.file.format() {
            ConfigFormat::Toml => toml::add(text, root, toml::SERVERS, server, folder),
            ConfigFormat::ClientToml => toml::add(text, root, toml::CODEX, server, folder),
            ConfigFormat::Json => json::add(text, root, &self.container, server, folder),
            ConfigFormat::Yaml => yaml::add(text, root, &self.container, server, folder),
        };
        let added = |new: &ConfigFile| new.server(name).is_ok_and(|new| new.same_definition(server));
        if let Ok(new) = self.apply_edits(&splices) {
            // A parse error is more precise than `UnsupportedLayout`.
            new.server(name)?;
        }
        self.change(name, &splices, added)
    }

    /// Removes a server.
    ///
    /// # Errors
    /// There is no server of this name.
    pub fn remove(&mut self, name: &str) -> Result<(), EditError> {
        self.require_server(name)?;
        let (text, root) = (self.file.text(), self.file.root());
        let splices = match self.file.format() {
            ConfigFormat::Toml => toml::remove(text, root, toml::SERVERS, name),
            ConfigFormat::ClientToml => toml::remove(text, root, toml::CODEX, name),
            ConfigFormat::Json => json::remove(text, root, name),
            ConfigFormat::Yaml => yaml::remove(text, root, name),
        };
        self.change(name, &splices, |new| !new.server_names().contains(&name))
    }

    /// Enables a server; does nothing if it is enabled.
    ///
    /// # Errors
    /// There is no server of this name.
    pub fn enable(&mut self, name: &str) -> Result<(), EditError> {
        self.set_enabled(name, true)
    }

    /// Disables a server; does nothing if it is disabled.
    ///
    /// # Errors
    /// There is no server of this name.
    pub fn disable(&mut self, name: &str) -> Result<(), EditError> {
        self.set_enabled(name, false)
    }

    fn set_enabled(&mut self, name: &str, enabled: bool) -> Result<(), EditError> {
        self.require_server(name)?;
        if self.file.server(name).is_ok_and(|server| server.enabled == enabled) {
            return Ok(());
        }
        let (text, root) = (self.file.text(), self.file.root());
        let splices = match self.file.format() {
            ConfigFormat::Toml => toml::set_enabled(text, root, toml::SERVERS, name, enabled),
            ConfigFormat::ClientToml => toml::set_enabled(text, root, toml::CODEX, name, enabled),
            ConfigFormat::Json => json::set_enabled(text, root, name, enabled),
            // The file is left to its client.
            ConfigFormat::Yaml => Vec::new(),
        };
        let before = self.file.server(name).ok().map(|server| ServerConfig { enabled, ..server });
        self.change(name, &splices, |new| new.server(name).ok() == before)
    }

    /// Applies edits only if they change exactly the one server as intended.
    fn change(
        &mut self,
        name: &str,
        splices: &[TextEdit],
        is_meant: impl Fn(&ConfigFile) -> bool,
    ) -> Result<(), EditError> {
        let new = self.apply_edits(splices).ok();
        let keeps_the_rest = |new: &ConfigFile| {
            without_server(self.file.root(), new.format(), name)
                == without_server(new.root(), new.format(), name)
        };
        match new.filter(|new| keeps_the_rest(new) && is_meant(new)) {
            Some(new) => {
                (self.file, self.is_deleted) = (new, false);
                Ok(())
            }
            None => Err(EditError::UnsupportedLayout { path: self.path.clone(), name: name.to_owned() }),
        }
    }

    fn apply_edits(&self, splices: &[TextEdit]) -> Result<ConfigFile, ConfigError> {
        let text = apply(self.file.text(), splices.to_vec());
        ConfigFile::parse(&self.path, &text, ConfigVariables::unexpanded())
    }

    fn require_server(&self, name: &str) -> Result<(), EditError> {
        if self.file.server_names().contains(&name) {
            return Ok(());
        }
        Err(ConfigError::from(self.file.unknown_server(name)).into())
    }

    /// Writes the file in one step, with the mode that it had.
    ///
    /// # Errors
    /// The file cannot be written, or its content has changed since it was read.
    pub fn save(self, backup: BackupMode) -> Result<SaveOutcome, EditError> {
        let mark = self.original.as_ref().is_some_and(|text| text.starts_with('\u{feff}'));
        let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, self.file.text());
        if self.original.as_ref() == Some(&text) {
            return Ok(SaveOutcome::Unchanged);
        }
        let failed = |source| EditError::Write { path: self.path.clone(), source };
        let changed = || EditError::Changed { path: self.path.clone() };
        if !self.is_unmodified().map_err(failed)? {
            return Err(changed());
        }
        if self.is_deleted {
            std::fs::remove_file(&self.path).map_err(failed)?;
            return Ok(SaveOutcome::Deleted);
        }
        if let Some(folder) = self.path.parent().filter(|_| self.original.is_none()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let copy = match (&self.original, backup) {
            (Some(original), BackupMode::Make) => Some(write::back_up(&self.path, original).map_err(failed)?),
            _ => None,
        };
        // Another program may have written the file while the temporary file was written.
        if !write::replace(&self.path, &text, self.is_private, || self.is_unmodified()).map_err(failed)? {
            copy.map(std::fs::remove_file);
            return Err(changed());
        }
        Ok(SaveOutcome::Written(copy))
    }

    /// Reports whether the file still has the content that was read.
    fn is_unmodified(&self) -> io::Result<bool> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(self.original.as_ref() == Some(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self.original.is_none()),
            Err(error) => Err(error),
        }
    }
}

/// Returns a configuration without one server, and without a table that is then empty.
fn without_server(root: &ConfigNode, format: ConfigFormat, name: &str) -> ConfigNode {
    let tables: Vec<usize> = containers(root, format).map(|entry| entry.key_span.start).collect();
    let mut root = root.clone();
    strip_server(&mut root, &tables, name, 0);
    root
}

fn strip_server(node: &mut ConfigNode, tables: &[usize], name: &str, depth: usize) {
    let NodeKind::Table(entries) = &mut node.kind else { return };
    for entry in entries.iter_mut() {
        if tables.contains(&entry.key_span.start) {
            if let NodeKind::Table(servers) = &mut entry.value.kind {
                servers.retain(|server| server.key != name);
            }
        } else if depth == 0 && entry.key == "mcp" && !entry.value.entries().is_none_or(<[_]>::is_empty) {
            strip_server(&mut entry.value, tables, name, depth + 1);
        }
    }
    // An empty table, list or null has no servers, whether it is there or not.
    let is_empty = |node: &ConfigNode| match &node.kind {
        NodeKind::Null => true,
        NodeKind::Array(elements) => elements.is_empty(),
        NodeKind::Table(entries) => entries.is_empty(),
        _ => false,
    };
    entries.retain(|entry| {
        let is_container = tables.contains(&entry.key_span.start) || (depth == 0 && entry.key == "mcp");
        !(is_container && is_empty(&entry.value))
    });
}

impl From<ConfigProblem> for EditError {
    fn from(problem: ConfigProblem) -> Self {
        Self::Config(problem.into())
    }
}
