//! The user's clients: imports their servers, and installs the hub in them.
//!
//! # Invariants
//!
//! - Only the hub's own entry of a client's file is changed, and uninstalling restores the file:
//!   `install_and_uninstall_restore_the_file_of_every_client`, `install_leaves_another_server_of_the_same_name_unchanged`.
//! - An imported secret is written only to a file that is private to the user:
//!   `import_writes_secrets_only_to_files_that_other_users_cannot_read`.

pub(crate) mod import;
mod import_outcome;
pub(crate) mod install;
mod own_hub;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use trunkline_config::find::{ClientApp, UserDirectories};

use crate::exit::{CliFailure, ExitReason};

/// Reads the name of a client, and lets shells complete it.
fn client_parser() -> impl TypedValueParser<Value = ClientApp> {
    let names = PossibleValuesParser::new(ClientApp::ALL.map(ClientApp::as_str));
    names.try_map(|name| ClientApp::parse(&name).ok_or("unknown client"))
}

/// Returns the folders of the user.
fn user_directories() -> Result<UserDirectories, CliFailure> {
    UserDirectories::from_environment().ok_or_else(|| {
        CliFailure::new(ExitReason::Configuration, "cannot find your home folder").hint("set HOME")
    })
}
