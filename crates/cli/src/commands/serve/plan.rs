use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use trunkline_config::{
    CallLimits, ConfigDuration, ConfigFile, ConfigProblem, ConfigSection, ConfigVariables, ServerConfig,
    StartMode,
};
use trunkline_hub::{AccessRules, NameTemplate};

use super::auth::AuthSettings;
use super::excluded_server::ExcludedServer;
use super::gateway::OWN_SERVER_NAME;
use crate::audit::AuditFailure;
use crate::config_failure::config_failure;
use crate::configured_commands::ConfiguredCommands;
use crate::exit::CliFailure;
use crate::login::VaultSettings;
use crate::telemetry::TelemetryOptions;
use crate::values::StoreLocation;

/// A configuration file, parsed and validated. Only an invalid server does not make the whole file invalid.
#[derive(Debug)]
pub(super) struct ServePlan {
    pub(super) source: PlanSource,
    pub(super) file: ConfigFile,
    pub(super) servers: Vec<ServerConfig>,
    /// The servers of the file that the hub leaves out.
    pub(super) excluded: Vec<ExcludedServer>,
    pub(super) described: Arc<ConfiguredCommands>,
    pub(super) serve: ServeOptions,
    pub(super) audit: AuditTable,
    pub(super) auth: Option<AuthSettings>,
    pub(super) access: AccessRules,
    pub(super) limits: CallLimits,
    pub(super) store: Option<StoreLocation>,
    pub(super) vault: Option<VaultSettings>,
    pub(super) telemetry: TelemetryOptions,
}

/// The table `[serve]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServeOptions {
    pub(super) names: Option<NameTemplate>,
    pub(super) list_wait: Option<Duration>,
}

/// The table `[audit]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditTable {
    /// The file, relative to the folder of the configuration.
    pub(super) file: Option<PathBuf>,
    /// Whether arguments are written.
    pub(super) arguments: bool,
    /// What happens to calls while the file cannot be written.
    pub(super) on_failure: AuditFailure,
}

/// The table `[store]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreTable {
    /// Where sessions are stored: `memory`, `file:PATH`, relative to the folder of the configuration, or the URL of a Redis that
    /// several processes share: `redis://` or `rediss://`, with `+sentinel` or `+cluster`.
    location: Option<String>,
}

/// Where a plan is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanSource {
    /// A file given on the command line.
    Named(PathBuf),
    /// A file found in the current folder.
    Found(PathBuf),
}

impl PlanSource {
    /// Returns the file that was named, or else the one of this folder if it has one.
    pub(super) fn find(named: Option<&Path>) -> Option<Self> {
        match named {
            Some(path) => Some(Self::Named(path.to_owned())),
            None => trunkline_config::find::find_in_folder(Path::new(".")).map(Self::Found),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Found(path) => path,
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// All problems outside of servers, each with its position.
    pub(super) fn read(&self) -> Result<ServePlan, CliFailure> {
        let opened = match self {
            Self::Named(path) => ConfigFile::open(path, ConfigVariables::from_environment()),
            Self::Found(path) => ConfigFile::open_discovered(path, ConfigVariables::from_environment()),
        };
        match opened {
            Ok(file) => ServePlan::from_file(self.clone(), file, Vec::new()),
            Err(error) => {
                let Some(file) = error.readable_file() else { return Err(config_failure(error.problems())) };
                // The problems of its tables are reported with them, so that one run shows them all.
                ServePlan::from_file(self.clone(), file.clone(), error.problems().cloned().collect())
            }
        }
    }
}

/// The table `[serve]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServeTable {
    /// How tools and prompts of servers are called.
    names: Option<String>,
    /// How long a list waits for servers that are still starting.
    list_wait: Option<ConfigDuration>,
}

impl ServePlan {
    fn from_file(
        source: PlanSource,
        file: ConfigFile,
        mut problems: Vec<ConfigProblem>,
    ) -> Result<Self, CliFailure> {
        if let Some(problem) = file.missing_servers() {
            return Err(config_failure(&[problem]));
        }
        let (mut servers, invalid) = file.valid_and_invalid_servers();
        let mut excluded: Vec<ExcludedServer> = invalid.into_iter().map(ExcludedServer::invalid).collect();
        servers.retain_mut(|server| {
            if server.required {
                // The hub is not ready without it, so it is started at once.
                server.start = StartMode::Eager;
            }
            let is_reserved = server.name == OWN_SERVER_NAME;
            if is_reserved {
                excluded.push(ExcludedServer::reserved_name(server, file.path()));
            }
            !is_reserved
        });
        let described = Arc::new(ConfiguredCommands::from_config(&file, &mut problems));
        let serve = file.section("serve").map(|section| serve_options(&section, &mut problems));
        let serve = serve.unwrap_or_default();
        let audit = file.section("audit").map(|section| section.read::<AuditTable>()).transpose();
        let mut audit = audit.map_err(|problem| problems.push(problem)).ok().flatten().unwrap_or_default();
        if let (Some(path), Some(folder)) = (&mut audit.file, file.path().parent()) {
            *path = folder.join(&*path);
        }
        let auth = file.section("auth").map(|section| AuthSettings::from_section(&section)).transpose();
        let auth = auth.map_err(|problem| problems.push(problem)).ok().flatten();
        let access = file.access_rules().map_err(|problem| problems.push(problem)).unwrap_or_default();
        let limits = file.call_limits().map_err(|problem| problems.push(problem)).unwrap_or_default();
        let store = file.section("store").and_then(|section| store_location(&section, &file, &mut problems));
        let vault = file.section("vault").map(|section| VaultSettings::from_section(&section)).transpose();
        let vault = vault.map_err(|problem| problems.push(problem)).ok().flatten();
        let telemetry = file.section("telemetry").map(|section| TelemetryOptions::from_section(&section));
        let telemetry = telemetry.transpose().map_err(|problem| problems.push(problem)).ok().flatten();
        let telemetry = telemetry.unwrap_or_default();
        if problems.is_empty() {
            let access = AccessRules::new(access);
            return Ok(Self {
                source,
                file,
                servers,
                excluded,
                described,
                serve,
                audit,
                auth,
                access,
                limits,
                store,
                vault,
                telemetry,
            });
        }
        Err(config_failure(&problems))
    }

    /// Reports whether the file names nothing to serve.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.excluded.is_empty() && self.described.is_empty()
    }

    /// Returns the server of this name, if the hub leaves it out.
    pub(super) fn excluded(&self, name: &str) -> Option<&ExcludedServer> {
        self.excluded.iter().find(|server| server.name == name)
    }
}

/// Returns the template for the names of tools and prompts that a file has, or the default one.
///
/// # Errors
/// What is wrong with the table `[serve]`.
pub(crate) fn name_template(file: &ConfigFile) -> Result<NameTemplate, CliFailure> {
    let mut problems = Vec::new();
    let serve = file.section("serve").map(|section| serve_options(&section, &mut problems));
    if !problems.is_empty() {
        return Err(config_failure(&problems));
    }
    Ok(serve.and_then(|serve| serve.names).unwrap_or_else(NameTemplate::hub))
}

fn store_location(
    section: &ConfigSection,
    file: &ConfigFile,
    problems: &mut Vec<ConfigProblem>,
) -> Option<StoreLocation> {
    let read = section.read::<StoreTable>().and_then(|table| {
        let parse = |location: String| {
            let location = location.parse::<StoreLocation>()?;
            location.check()?;
            Ok::<_, String>(location)
        };
        let parsed = table.location.map(parse).transpose();
        parsed.map_err(|error| section.problem(&["location"], error))
    });
    let location = read.map_err(|problem| problems.push(problem)).ok().flatten()?;
    Some(location.relative_to(file.path().parent().unwrap_or(Path::new("."))))
}

fn serve_options(section: &ConfigSection, problems: &mut Vec<ConfigProblem>) -> ServeOptions {
    let read = section.read::<ServeTable>().and_then(|table| {
        let parsed = table.names.map(|names| names.parse::<NameTemplate>()).transpose();
        let names = parsed.map_err(|error| section.problem(&["names"], error.to_string()))?;
        Ok(ServeOptions { names, list_wait: table.list_wait.map(|ConfigDuration(wait)| wait) })
    });
    read.map_err(|problem| problems.push(problem)).unwrap_or_default()
}
