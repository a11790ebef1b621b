use std::path::PathBuf;
use std::sync::Arc;

use trunkline_client::authorization::{FileTokenStore, MemoryTokenStore, StoreKey, TokenStore};

use crate::exit::CliFailure;
use crate::state_folder::state_folder;

/// The principal of the logins of the user who runs the command.
pub(crate) const LOGIN_PRINCIPAL: &str = "local";

/// Names the files of the keys that seal the store, separated like the folders of `PATH`.
const KEY_VARIABLE: &str = "TRUNKLINE_LOGIN_KEY";

/// The stored logins of this user.
pub(crate) struct LoginStore {
    pub(crate) store: Arc<dyn TokenStore>,
    /// How it is protected, for display.
    pub(crate) protection: String,
    /// The file.
    pub(crate) path: PathBuf,
}

/// Opens the logins of this user.
///
/// # Errors
/// There is no home folder, a key cannot be used, or the file cannot be read.
pub(crate) fn open_store() -> Result<LoginStore, CliFailure> {
    let folder = state_folder(|name| std::env::var_os(name)).ok_or_else(|| {
        CliFailure::configuration("there is no home folder to store logins in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    let store = FileTokenStore::open(folder.join("logins").join("tokens.json"), key()?);
    let store =
        store.map_err(|error| CliFailure::configuration(format!("cannot use stored logins: {error}")))?;
    let (path, protection) = (store.path().to_owned(), store.protection().to_string());
    Ok(LoginStore { store: Arc::new(store), protection, path })
}

fn key() -> Result<StoreKey, CliFailure> {
    match std::env::var_os(KEY_VARIABLE).filter(|value| !value.is_empty()) {
        None => Ok(StoreKey::plain()),
        Some(files) => StoreKey::from_files(std::env::split_paths(&files))
            .map_err(|error| CliFailure::configuration(format!("{KEY_VARIABLE}: {error}"))),
    }
}

/// Opens the logins for a command that may do without them.
pub(super) fn open_or_warn(warn: impl FnOnce(&str)) -> Arc<dyn TokenStore> {
    match open_store() {
        Ok(opened) => opened.store,
        Err(failure) => {
            warn(&format!("going on without stored logins: {failure}"));
            Arc::new(MemoryTokenStore::default())
        }
    }
}
