use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A file with the server's address while it is ready, for scripts to wait for. It is removed when this value is
/// dropped.
#[derive(Debug)]
pub struct PortFile {
    path: PathBuf,
}

impl PortFile {
    /// Removes the file of an earlier server, so that a script does not read an outdated address.
    ///
    /// # Errors
    /// The file exists and cannot be removed.
    pub fn claim(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self { path }),
        }
    }

    /// Writes the address atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&self, address: SocketAddr) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        std::fs::write(&beside, format!("{address}\n"))?;
        std::fs::rename(&beside, &self.path)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // A failure to remove it cannot be reported in `drop`.
        let _ = std::fs::remove_file(&self.path);
    }
}
