//! The user's clients: imports their servers, and installs the hub in them.

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
