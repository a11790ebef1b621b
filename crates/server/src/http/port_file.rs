use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A file that holds the address while a server is ready, for scripts to wait for. It goes with this value.
#[derive(Debug)]
pub struct PortFile {
    path: PathBuf,
}

impl PortFile {
    /// Removes what an earlier server left, so that nobody takes its address for ours.
    ///
    /// # Errors
    /// There is something that cannot be removed.
    pub fn claim(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self { path }),
        }
    }

    /// Writes the address, at once and whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&self, address: SocketAddr) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        std::fs::write(&beside, format!("{address}\n"))?;
        std::fs::rename(&beside, &self.path)
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // Nobody is left to be told if it cannot be removed.
        let _ = std::fs::remove_file(&self.path);
    }
}
