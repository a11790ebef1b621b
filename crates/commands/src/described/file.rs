use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

/// A file with the arguments of one call, which only we and our children can read. It goes with this value.
#[derive(Debug)]
pub(super) struct ArgumentsFile {
    path: PathBuf,
}

impl ArgumentsFile {
    /// Writes the arguments into a new file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(arguments: &Map<String, Value>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (number, process) = (NEXT.fetch_add(1, Ordering::Relaxed), std::process::id());
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let path =
            std::env::temp_dir().join(format!("trunkline-arguments-{process}-{number}-{moment:x}.json"));
        let mut options = OpenOptions::new();
        // A file that is there already is somebody else's.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let written = Self { path };
        file.write_all(&serde_json::to_vec(arguments)?)?;
        Ok(written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ArgumentsFile {
    fn drop(&mut self) {
        // Nobody is left to be told if it cannot be removed.
        let _ = std::fs::remove_file(&self.path);
    }
}
