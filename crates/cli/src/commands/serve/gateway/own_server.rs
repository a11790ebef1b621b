use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use trunkline_config::{
    ConnectionSharing, LocalProgram, ServerConfig, ServerLocation, ServerName, StartMode,
};
use trunkline_server::{Host, HostOptions, ServerHandle, ServerLimits};

use crate::builtin::{self, BuiltinServer};
use crate::configured_commands::ConfiguredCommands;
use crate::exit::{CliFailure, ExitReason};

/// What the hub calls the server that is made of what trunkline has itself.
pub(crate) const OWN_SERVER_NAME: &str = "this hub";

/// What trunkline has itself: built-in servers, and what a file describes.
#[derive(Clone)]
pub(super) struct OwnServer {
    pub(super) handle: ServerHandle,
    /// Serves the hub, which lists it like any other server.
    pub(super) host: Host,
    /// A digest of everything that it is built from.
    digest: String,
}

impl OwnServer {
    /// Puts everything together; `None` if there is nothing.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub(super) fn build(
        builtin: &[BuiltinServer],
        described: &ConfiguredCommands,
        limits: ServerLimits,
    ) -> Result<Option<Self>, CliFailure> {
        if builtin.is_empty() && described.is_empty() {
            return Ok(None);
        }
        let digest = digest(format!("{builtin:?} {described:?}").as_bytes());
        let server = described.add_to(builtin::server(builtin));
        let handle = server.handle().map_err(CliFailure::configuration)?;
        let options = HostOptions { limits, ..HostOptions::default() };
        let host =
            Host::new(handle.clone(), options).map_err(|error| CliFailure::new(ExitReason::Failed, error))?;
        Ok(Some(Self { handle, host, digest }))
    }

    /// Reports whether another is made of the same.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Returns it as a server of the hub, which is another one whenever it is made of something else.
    pub(super) fn config(&self) -> Option<ServerConfig> {
        let mut program = LocalProgram::new("in this process");
        program.args.push((*self.digest).into());
        let mut config =
            ServerConfig::new(ServerName::parse(OWN_SERVER_NAME).ok()?, ServerLocation::Program(program));
        (config.start, config.sharing) = (StartMode::Eager, ConnectionSharing::All);
        Some(config)
    }
}

/// Returns a digest of some bytes, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut written = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(written, "{byte:02x}");
    }
    written
}
