use serde::Deserialize;

use crate::manifests::Manifests;
use crate::policy::{Policy, PolicyError};

/// The section `[policy]` of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// The rules for described commands, in their order.
    #[serde(default)]
    pub commands: Vec<String>,
}

impl PolicyConfig {
    /// Returns the policy.
    ///
    /// # Errors
    /// A rule that is none, with its number.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        Policy::from_rules(&self.commands)
    }
}

/// The section `[manifests]` of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestsConfig {
    /// The names of the files, or patterns over their paths.
    pub files: Vec<String>,
    /// The folder that they are looked for in and around, from that of the file.
    pub directory: Option<String>,
}

impl ManifestsConfig {
    /// Returns the manifests, from the folder of the file.
    pub fn manifests(&self, folder: &std::path::Path) -> Manifests {
        let directory =
            self.directory.as_ref().map_or_else(|| folder.to_owned(), |directory| folder.join(directory));
        Manifests::new(self.files.iter().cloned()).directory(directory)
    }
}
