use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_client::authorization::{FileTokenStore, MemoryTokenStore, TokenStore};

use super::vault::VaultSettings;
use crate::exit::CliFailure;
use crate::state_folder::state_folder;

/// The principal of the logins of the user who runs the command.
pub(crate) const LOGIN_PRINCIPAL: &str = "local";

/// The stored logins of this user, or of the users of a hub.
pub(crate) struct LoginStore {
    pub(crate) store: Arc<dyn TokenStore>,
    /// How it is protected, for display.
    pub(crate) protection: String,
    /// The file.
    pub(crate) path: PathBuf,
}

/// Opens the logins that a configuration file chooses, or those of this user.
///
/// # Errors
/// As [`open_vault`], or what is wrong with the file.
pub(crate) fn open_store(config: Option<&Path>) -> Result<LoginStore, CliFailure> {
    let vault = config.map(VaultSettings::of_config).transpose()?.flatten();
    open_vault(&vault.unwrap_or_default())
}

/// Opens logins.
///
/// # Errors
/// There is no home folder, a key cannot be used, or the file cannot be read.
pub(crate) fn open_vault(vault: &VaultSettings) -> Result<LoginStore, CliFailure> {
    let path = match &vault.file {
        Some(file) => file.clone(),
        None => own_file()?,
    };
    let store = FileTokenStore::open(path, vault.key()?);
    let store =
        store.map_err(|error| CliFailure::configuration(format!("cannot use stored logins: {error}")))?;
    let (path, protection) = (store.path().to_owned(), store.protection().to_string());
    Ok(LoginStore { store: Arc::new(store), protection, path })
}

/// Returns the file of this user's logins.
fn own_file() -> Result<PathBuf, CliFailure> {
    let folder = state_folder(|name| std::env::var_os(name)).ok_or_else(|| {
        CliFailure::configuration("there is no home folder to store logins in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    Ok(folder.join("logins").join("tokens.json"))
}

/// Opens the logins for a command that may do without them.
pub(super) fn open_or_warn(config: Option<&Path>, warn: impl FnOnce(&str)) -> Arc<dyn TokenStore> {
    match open_store(config) {
        Ok(opened) => opened.store,
        Err(failure) => {
            warn(&format!("going on without stored logins: {failure}"));
            Arc::new(MemoryTokenStore::default())
        }
    }
}
