use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use trunkline_config::{
    ConnectionSharing, LocalProgram, ServerConfig, ServerLocation, ServerName, StartMode,
};
use trunkline_server::{Host, HostOptions, ServerHandle, ServerLimits};

use crate::builtin::{self, BuiltinServer};
use crate::configured_commands::ConfiguredCommands;
use crate::exit::{CliFailure, ExitReason};

/// The name of the built-in server.
pub(crate) const OWN_SERVER_NAME: &str = "this hub";

/// What trunkline has itself: built-in servers, and what a file describes.
#[derive(Clone)]
pub(super) struct OwnServer {
    pub(super) handle: ServerHandle,
    /// Serves the hub, which lists it like any other server.
    pub(super) host: Host,
    builtin: Vec<BuiltinServer>,
    described: Arc<ConfiguredCommands>,
    /// Distinguishes it from all others of this process.
    number: u64,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl OwnServer {
    /// Puts everything together; `None` if there is nothing.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub(super) fn build(
        builtin: &[BuiltinServer],
        described: &Arc<ConfiguredCommands>,
        limits: ServerLimits,
    ) -> Result<Option<Self>, CliFailure> {
        if builtin.is_empty() && described.is_empty() {
            return Ok(None);
        }
        let server = described.add_to(builtin::server(builtin));
        let handle = server.handle().map_err(CliFailure::configuration)?;
        let options = HostOptions { limits, ..HostOptions::default() };
        let host =
            Host::new(handle.clone(), options).map_err(|error| CliFailure::new(ExitReason::Failed, error))?;
        let (builtin, described) = (builtin.to_vec(), described.clone());
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Self { handle, host, builtin, described, number }))
    }

    /// Reports whether both have the same content.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.builtin == other.builtin && self.described.changed_sections(&other.described).is_empty()
    }

    /// Returns the built-in server; the hub replaces it when its content changes.
    pub(super) fn config(&self) -> Option<ServerConfig> {
        let mut program = LocalProgram::new("in this process");
        program.args.push((*self.number.to_string()).into());
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
