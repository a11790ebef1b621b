use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use super::config::CommandConfig;
use crate::manifests::Manifests;
use crate::policy::{Policy, PolicyError};

/// The section `[policy]` of a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// The rules for described commands, in their order.
    #[serde(default)]
    #[schemars(inner(regex(pattern = "^(allow|deny|preset) ")))]
    pub commands: Vec<String>,
}

impl PolicyConfig {
    /// Returns the policy.
    ///
    /// # Errors
    /// An invalid rule, with its number.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        Policy::from_rules(&self.commands)
    }
}

/// The section `[manifests]` of a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
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

/// Returns the JSON Schemas of the sections that commands have in `trunkline.toml`, by their names.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    let command = schema::<CommandConfig>();
    let commands = schemars::json_schema!({
        "description": "Commands that are tools, by name.",
        "type": "object",
        "additionalProperties": command,
    });
    vec![
        ("commands", commands),
        ("policy", schema::<PolicyConfig>()),
        ("manifests", schema::<ManifestsConfig>()),
    ]
}

/// Generates a schema without external references.
fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema
}
