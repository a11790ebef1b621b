use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value};
use tempfile::NamedTempFile;

/// A temporary file with the arguments of one call, readable by this user only. It is deleted on drop.
#[derive(Debug)]
pub(super) struct ArgumentsFile(NamedTempFile);

impl ArgumentsFile {
    /// Writes the arguments to a new file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(arguments: &Map<String, Value>) -> io::Result<Self> {
        let mut file = tempfile::Builder::new().prefix("trunkline-arguments-").suffix(".json").tempfile()?;
        file.write_all(&serde_json::to_vec(arguments)?)?;
        Ok(Self(file))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}
