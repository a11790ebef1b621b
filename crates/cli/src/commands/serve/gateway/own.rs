use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use trunkline_config::{Program, Reach, ServerConfig, ServerName, Share, Start};
use trunkline_server::{Host, HostOptions, Limits, ServerHandle};

use crate::builtin::{self, Builtin};
use crate::described::FromFile;
use crate::exit::{Exit, Failure};

/// What the hub calls the server that is made of what trunkline has itself.
pub(in crate::commands::serve) const OWN: &str = "this hub";

/// What trunkline has itself: built-in servers, and what a file describes.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) handle: ServerHandle,
    /// Serves the hub, which learns what there is like from any other server.
    pub(super) host: Host,
    /// Stands for everything that it is made of.
    digest: String,
}

impl Own {
    /// Puts everything together; `None` if there is nothing.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub(super) fn of(
        builtin: &[Builtin],
        described: &FromFile,
        limits: Limits,
    ) -> Result<Option<Self>, Failure> {
        if builtin.is_empty() && described.is_empty() {
            return Ok(None);
        }
        let digest = digest(format!("{builtin:?} {described:?}").as_bytes());
        let server = described.add_to(builtin::server(builtin));
        let handle = server.handle().map_err(Failure::configuration)?;
        let options = HostOptions { limits, ..HostOptions::default() };
        let host = Host::new(handle.clone(), options).map_err(|error| Failure::new(Exit::Failed, error))?;
        Ok(Some(Self { handle, host, digest }))
    }

    /// Reports whether another is made of the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Returns it as a server of the hub, which is another one whenever it is made of something else.
    pub(super) fn config(&self) -> Option<ServerConfig> {
        let mut program = Program::new("in this process");
        program.args.push((*self.digest).into());
        let mut config = ServerConfig::new(ServerName::parse(OWN).ok()?, Reach::Program(program));
        (config.start, config.share) = (Start::Eager, Share::All);
        Some(config)
    }
}

/// Returns what stands for some bytes, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut written = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(written, "{byte:02x}");
    }
    written
}
