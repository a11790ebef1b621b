use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// A file that holds the address while the server is ready, for scripts to wait for.
#[derive(Debug)]
pub(super) struct PortFile {
    path: PathBuf,
}

impl PortFile {
    /// Removes what an earlier server left, so that nobody takes its address for ours.
    ///
    /// # Errors
    /// There is something that cannot be removed.
    pub(super) fn claim(path: &Path) -> Result<Self, Failure> {
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(path, &error)),
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the address, at once and whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn publish(&self, address: SocketAddr) -> Result<(), Failure> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        let written = std::fs::write(&beside, format!("{address}\n"));
        written
            .and_then(|()| std::fs::rename(&beside, &self.path))
            .map_err(|error| unwritable(&self.path, &error))
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // Nobody is left to be told if it cannot be removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::configuration(format!("port file {} cannot be written: {error}", path.display()))
        .hint("give a file in a folder that exists and that you may write to")
}
