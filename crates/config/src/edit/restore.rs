//! The removal of a server that was added, so that the file is again as it was before.

use super::{ConfigEditor, EditError, json, write, yaml};
use crate::file::{FileOrigin, containers, load};
use crate::limits::MAX_CLIENT_BYTES;
use crate::node::ConfigNode;
use crate::server::ServerConfig;
use crate::syntax::ConfigFormat;

impl ConfigEditor {
    /// Removes a server that [`ConfigEditor::add`] added, with the table that was made for it.
    ///
    /// What the file was before is read from the copies that [`BackupMode::Make`](super::BackupMode::Make) left. If
    /// nothing else has changed since, the file gets the content of the copy, byte for byte. A file that was made for the
    /// server, and has nothing else, is deleted on saving.
    ///
    /// # Errors
    /// There is no server of this name.
    pub fn remove_added(&mut self, name: &str) -> Result<(), EditError> {
        self.require_server(name)?;
        let server = self.file.server(name)?;
        let mut earlier = self.backups().filter(|backup| !backup.file.server_names().contains(&name));
        let newest = earlier.next();
        let is_exact = |backup: &Self| backup.becomes(&server, self.file.text());
        let exact = newest.iter().cloned().chain(earlier).find(is_exact);
        if let Some(exact) = exact {
            self.file = exact.file;
            return Ok(());
        }
        if let Some(empty) = self.before_creation(&server) {
            (self.file, self.is_deleted) = (empty.file, true);
            return Ok(());
        }
        let within = |root: &ConfigNode| {
            let mut tables = containers(root, self.file.format());
            tables.find(|table| table.value.get(name).is_some()).map(|table| table.key.clone())
        };
        let container = within(self.file.root());
        self.remove(name)?;
        match (container, newest) {
            (Some(container), Some(backup)) if backup.file.root().get(&container).is_none() => {
                self.remove_empty(&container, name)
            }
            _ => Ok(()),
        }
    }

    /// Returns the copies of the file that can be read, the newest first.
    fn backups(&self) -> impl Iterator<Item = Self> {
        write::backup_paths(&self.path).filter_map(|path| {
            let text = load(&path, MAX_CLIENT_BYTES, FileOrigin::Named).ok()?;
            Some(Self::parse(&self.path, &text).ok()?.container(self.container.clone()))
        })
    }

    /// Returns the empty file to which the server was added, if this is all that the file has.
    fn before_creation(&self, server: &ServerConfig) -> Option<Self> {
        // The target of a link may be in use elsewhere.
        if self.path.is_symlink() {
            return None;
        }
        let empty = Self::parse(&self.path, "").ok()?.container(self.container.clone());
        let text = self.original.as_deref()?;
        (text == self.file.text() && empty.becomes(server, text)).then_some(empty)
    }

    /// Reports whether this is the text with a server added.
    fn becomes(&self, server: &ServerConfig, text: &str) -> bool {
        let mut added = self.clone();
        added.add(server).is_ok() && added.file.text() == text
    }

    /// Removes a table that has no servers any more.
    fn remove_empty(&mut self, container: &str, name: &str) -> Result<(), EditError> {
        let (text, root) = (self.file.text(), self.file.root());
        if !root.get(container).and_then(ConfigNode::entries).is_some_and(<[_]>::is_empty) {
            return Ok(());
        }
        let splices = match self.file.format() {
            ConfigFormat::Json => json::remove_container(text, root, container),
            ConfigFormat::Yaml => yaml::remove_container(text, root, container),
            // A table of TOML ends with its last header.
            ConfigFormat::Toml | ConfigFormat::ClientToml => return Ok(()),
        };
        self.change(name, &splices, |new| new.root().get(container).is_none())
    }
}
