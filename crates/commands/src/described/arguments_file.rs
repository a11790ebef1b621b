use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value};
use tempfile::NamedTempFile;

/// A file with the arguments of one call, which only we and our children can read. It goes with this value.
#[derive(Debug)]
pub(super) struct ArgumentsFile(NamedTempFile);

impl ArgumentsFile {
    /// Writes the arguments into a new file.
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
