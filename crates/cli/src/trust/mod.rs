//! Trust in configuration files. A file that came with a cloned folder must not start programs without consent, so each
//! thing in a file that could harm is trusted once, by its content.
//!
//! # Invariants
//!
//! - A file starts nothing before it is trusted: `untrusted_config_exits_with_3_without_a_terminal_and_starts_nothing`.
//! - A file changes no other file and no setting of the hub before it is trusted:
//!   `settings_of_an_untrusted_file_write_and_read_nothing`.
//! - The prompt shows where the hub writes and reads, also through links:
//!   `settings_of_a_linked_file_are_shown_where_the_hub_writes`, `dangling_links_of_settings_are_followed`.
//! - The prompt shows no password of a store: `password_of_a_store_is_never_shown`.
//! - A changed command is a new command: `running_hub_ignores_untrusted_commands_until_they_are_trusted`.

mod config_location;
mod item;
mod own_folder;
mod question;
mod setting_item;
mod setting_table;
mod shown_file;
mod store;
mod store_effects;

use std::path::{Path, PathBuf};

use trunkline_config::{ConfigFile, ConfigVariables};

pub(crate) use self::item::{TrustItem, TrustSubject, items_of};
pub(crate) use self::question::{ask, list_items};
pub(crate) use self::store::TrustStore;
use crate::exit::{CliFailure, print_stderr};
use crate::state_folder::trust_of_config;

/// Returns the file that changes when a configuration file is trusted, if its folder exists.
pub(crate) fn record_of(config: &Path) -> Option<PathBuf> {
    trust_of_config(config).filter(|path| path.parent().is_some_and(Path::is_dir))
}

/// Returns the items of a file that are not trusted. All items of a file in the user's own configuration folders are.
pub(crate) fn untrusted_items(file: &ConfigFile) -> Vec<TrustItem> {
    if own_folder::is_own_file(file.path()) {
        return Vec::new();
    }
    TrustStore::of_user(file.path()).retain_untrusted(items_of(file))
}

/// Refuses a table of a file that is not trusted, for a command that does not prompt.
///
/// # Errors
/// It is not trusted, with the command that trusts it.
pub(crate) fn check_setting(file: &ConfigFile, table: &str) -> Result<(), CliFailure> {
    let is_it = |item: &TrustItem| item.subject == TrustSubject::Setting && item.name == table;
    if !untrusted_items(file).iter().any(is_it) {
        return Ok(());
    }
    let path = file.path().display();
    Err(CliFailure::configuration(format!("{table} of {path} is not trusted yet"))
        .hint(format!("review the file, then run `trunkline trust {path}`")))
}

/// Trusts servers that the user has just written to a file with a command. The rest of the file is not trusted by that.
pub(crate) fn trust_written(path: &Path, names: &[&str]) {
    let Ok(file) = ConfigFile::open(path, ConfigVariables::from_environment()) else { return };
    let is_named = |item: &TrustItem| names.iter().any(|name| item.is_server(name));
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
