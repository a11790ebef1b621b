use std::path::{Path, PathBuf};

use serde::Deserialize;
use trunkline_client::authorization::StoreKey;
use trunkline_config::{ConfigFile, ConfigFormat, ConfigProblem, ConfigSection, ConfigVariables};

use crate::config_failure::config_failure;
use crate::exit::CliFailure;
use crate::trust::check_setting;

/// Names the files of the keys that seal the store, separated like the folders of `PATH`.
const KEY_VARIABLE: &str = "TRUNKLINE_LOGIN_KEY";

/// The table `[vault]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct VaultTable {
    /// The file of the logins, relative to the folder of the configuration.
    file: Option<PathBuf>,
    /// The files of the keys that seal it, at least 32 secret bytes each: the first seals, all of them open.
    key_files: Vec<PathBuf>,
    /// Whether the key is in the keychain of the system.
    keychain: bool,
}

/// Where logins are stored, and where the key that seals them comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VaultSettings {
    /// By default the file of the user's own logins.
    pub(super) file: Option<PathBuf>,
    /// By default those of the environment, else none.
    key_files: Vec<PathBuf>,
    uses_keychain: bool,
}

impl VaultSettings {
    /// Decodes the table.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_section(section: &ConfigSection) -> Result<Self, ConfigProblem> {
        let table = section.read::<VaultTable>()?;
        let folder = section.file().parent().unwrap_or(Path::new("")).to_owned();
        let is_empty = |path: &PathBuf| path.as_os_str().is_empty();
        if table.file.as_ref().is_some_and(is_empty) {
            return Err(section.problem(&["file"], "it is empty"));
        }
        if let Some(at) = table.key_files.iter().position(is_empty) {
            return Err(section.problem(&["key_files", &at.to_string()], "it is empty"));
        }
        if table.keychain && !table.key_files.is_empty() {
            return Err(section.problem(&["keychain"], "there are `key_files` as well; a vault has either"));
        }
        Ok(Self {
            uses_keychain: table.keychain,
            file: table.file.map(|file| folder.join(file)),
            key_files: table.key_files.iter().map(|file| folder.join(file)).collect(),
        })
    }

    /// Reads the table of a configuration file, if it has one.
    ///
    /// # Errors
    /// What is wrong with the file or the table, or that the table is not trusted.
    pub(crate) fn of_config(path: &Path) -> Result<Option<Self>, CliFailure> {
        if ConfigFormat::of(path) != ConfigFormat::Toml {
            return Ok(None);
        }
        let file = ConfigFile::open(path, ConfigVariables::from_environment());
        let file = file.map_err(|error| config_failure(error.problems()))?;
        let Some(section) = file.section("vault") else { return Ok(None) };
        let vault = Self::from_section(&section).map_err(|problem| config_failure(&[problem]))?;
        check_setting(&file, "[vault]")?;
        Ok(Some(vault))
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// A key file cannot be used.
    pub(super) fn key(&self) -> Result<StoreKey, CliFailure> {
        if self.uses_keychain {
            return keychain_key();
        }
        if !self.key_files.is_empty() {
            return StoreKey::from_files(&self.key_files)
                .map_err(|error| CliFailure::configuration(format!("`vault.key_files`: {error}")));
        }
        match std::env::var_os(KEY_VARIABLE).filter(|value| !value.is_empty()) {
            None => Ok(StoreKey::plain()),
            Some(files) => StoreKey::from_files(std::env::split_paths(&files))
                .map_err(|error| CliFailure::configuration(format!("{KEY_VARIABLE}: {error}"))),
        }
    }
}

/// The name of the key in the keychain.
#[cfg(feature = "keychain")]
const KEYCHAIN_NAME: &str = "vault key";

#[cfg(feature = "keychain")]
fn keychain_key() -> Result<StoreKey, CliFailure> {
    // The library blocks, which a thread of a runtime must not.
    let reading = std::thread::spawn(|| StoreKey::from_keychain(KEYCHAIN_NAME));
    let key = reading.join().map_err(|_| CliFailure::configuration("the keychain cannot be used"))?;
    key.map_err(|error| CliFailure::configuration(format!("`vault.keychain`: {error}")))
}

#[cfg(not(feature = "keychain"))]
fn keychain_key() -> Result<StoreKey, CliFailure> {
    Err(CliFailure::configuration("`vault.keychain`: this build has no keychain")
        .hint("build with `--features keychain`, or use `key_files`"))
}
