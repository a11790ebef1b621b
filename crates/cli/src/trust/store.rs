use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::item::TrustItem;
use crate::state_folder::trust_of_config;

/// The most fingerprints that are remembered for one file; the oldest are forgotten first.
const MAX_FINGERPRINTS: usize = 4096;

/// The most bytes of a file of fingerprints that are read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The fingerprints of one configuration file that the user trusts, in a file of the user's state folder.
#[derive(Debug)]
pub(crate) struct TrustStore {
    /// The configuration file.
    config: PathBuf,
    /// Where its fingerprints are; `None` without a home folder.
    path: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustedFile {
    /// The configuration file, for people who read this.
    path: String,
    /// The fingerprints, the newest last.
    trusted: Vec<String>,
}

impl TrustStore {
    /// Returns the store of this user for a configuration file.
    pub(crate) fn of_user(config: &Path) -> Self {
        Self { config: config.to_owned(), path: trust_of_config(config) }
    }

    /// Keeps the items that are not trusted.
    pub(crate) fn retain_untrusted(&self, mut items: Vec<TrustItem>) -> Vec<TrustItem> {
        let stored = self.load();
        items.retain(|item| !stored.trusted.contains(&item.fingerprint));
        items
    }

    /// Remembers items as trusted.
    ///
    /// # Errors
    /// There is no state folder, or it cannot be written.
    pub(crate) fn record(&self, items: &[TrustItem]) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no home folder"));
        };
        let mut stored = self.load();
        stored.trusted.retain(|known| !items.iter().any(|item| item.fingerprint == *known));
        stored.trusted.extend(items.iter().map(|item| item.fingerprint.clone()));
        let excess = stored.trusted.len().saturating_sub(MAX_FINGERPRINTS);
        stored.trusted.drain(..excess);
        let config = std::path::absolute(&self.config).unwrap_or_else(|_| self.config.clone());
        stored.path = config.display().to_string();
        if let Some(folder) = path.parent() {
            create_private_folder(folder)?;
        }
        trunkline_config::replace_file(path, &serde_json::to_string(&stored)?)
    }

    /// Forgets all items, and reports whether there were any.
    ///
    /// # Errors
    /// The file of fingerprints cannot be removed.
    pub(crate) fn revoke(&self) -> io::Result<bool> {
        match self.path.as_ref().map(std::fs::remove_file) {
            Some(Ok(())) => Ok(true),
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Some(Err(_)) | None => Ok(false),
        }
    }

    /// Reads the fingerprints. An unreadable file trusts nothing.
    fn load(&self) -> TrustedFile {
        let read = |path: &PathBuf| -> io::Result<TrustedFile> {
            let mut text = String::new();
            std::fs::File::open(path)?.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
            Ok(serde_json::from_str(&text)?)
        };
        self.path.as_ref().and_then(|path| read(path).ok()).unwrap_or_default()
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
