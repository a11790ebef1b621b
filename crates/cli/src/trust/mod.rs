//! Trust in configuration files. A file that came with a cloned folder must not start programs without consent, so each
//! thing in a file that could harm is trusted once, by its content.
//!
//! # Invariants
//!
//! - A file starts nothing before it is trusted: `untrusted_config_exits_with_3_without_a_terminal_and_starts_nothing`.
//! - A changed command is a new command: `running_hub_ignores_untrusted_commands_until_they_are_trusted`.

mod item;
mod own_folder;
mod question;
mod store;

use std::path::Path;

use trunkline_config::{ConfigFile, ConfigVariables};

pub(crate) use self::item::{TrustItem, TrustSubject, items_of};
pub(crate) use self::question::{ask, list_items};
pub(crate) use self::store::TrustStore;
use crate::exit::{CliFailure, print_stderr};

/// Returns the items of a file that are not trusted. All items of a file in the user's own configuration folders are.
pub(crate) fn untrusted_items(file: &ConfigFile) -> Vec<TrustItem> {
    if own_folder::is_own_file(file.path()) {
        return Vec::new();
    }
    TrustStore::of_user(file.path()).retain_untrusted(items_of(file))
}

/// Trusts servers that the user has just written to a file with a command. The rest of the file is not trusted by that.
pub(crate) fn trust_written(path: &Path, names: &[&str]) {
    let Ok(file) = ConfigFile::open(path, ConfigVariables::from_environment()) else { return };
    let is_named =
        |item: &TrustItem| item.subject != TrustSubject::Command && names.contains(&item.name.as_str());
    let items: Vec<TrustItem> = untrusted_items(&file).into_iter().filter(is_named).collect();
    if let Err(failure) = trust_items(path, &items) {
        // The file is written all the same, and `serve` prompts for trust.
        print_stderr(&format!("note: {failure}\n"));
    }
}

/// Trusts items of a file.
///
/// # Errors
/// The state folder cannot be written.
pub(crate) fn trust_items(file: &Path, items: &[TrustItem]) -> Result<(), CliFailure> {
    if items.is_empty() {
        return Ok(());
    }
    TrustStore::of_user(file).record(items).map_err(|error| {
        CliFailure::configuration(format!("cannot remember that {} is trusted: {error}", file.display()))
            .hint("the state folder must be writable: `$XDG_STATE_HOME/trunkline` or `~/.local/state/trunkline`")
    })
}
