use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use trunkline_config::{ConfigFile, Length, Problem, Section, ServerConfig, Start, Variables};
use trunkline_hub::NameTemplate;

use super::gateway::OWN;
use crate::described::FromFile;
use crate::exit::Failure;
use crate::misconfigured::misconfigured;

/// Everything that a configuration file says, read and checked whole.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) source: Source,
    pub(super) file: ConfigFile,
    pub(super) servers: Vec<ServerConfig>,
    pub(super) described: FromFile,
    pub(super) serve: ServeOptions,
    pub(super) audit: AuditTable,
}

/// What the table `[serve]` says.
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
    /// The file, counted from the folder of the configuration.
    pub(super) file: Option<PathBuf>,
    /// Whether arguments are written.
    pub(super) arguments: bool,
}

/// Where a plan is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A file that somebody named.
    Named(PathBuf),
    /// A file that was there.
    Found(PathBuf),
}

impl Source {
    /// Returns the file that was named, or else the one of this folder if it has one.
    pub(super) fn of(named: Option<&Path>) -> Option<Self> {
        match named {
            Some(path) => Some(Self::Named(path.to_owned())),
            None => trunkline_config::find::in_folder(Path::new(".")).map(Self::Found),
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
    /// Everything that is wrong with it, each with its place.
    pub(super) fn read(&self) -> Result<Plan, Failure> {
        let opened = match self {
            Self::Named(path) => ConfigFile::open(path, Variables::of_process()),
            Self::Found(path) => ConfigFile::open_found(path, Variables::of_process()),
        };
        let file = opened.map_err(|error| misconfigured(error.problems()))?;
        Plan::of(self.clone(), file)
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
    list_wait: Option<Length>,
}

impl Plan {
    fn of(source: Source, file: ConfigFile) -> Result<Self, Failure> {
        let (mut servers, mut problems) = file.each_server();
        for server in &mut servers {
            if server.required {
                // Nothing is ready without it, so that nobody has to ask for it first.
                server.start = Start::Eager;
            }
            if server.name == OWN {
                let what = format!("`{OWN}` is how trunkline calls what it has itself");
                problems.push(Problem::new(file.path(), what).server(OWN));
            }
        }
        let described = FromFile::of(&file, &mut problems);
        let serve = file.section("serve").map(|section| serve_options(&section, &mut problems));
        let serve = serve.unwrap_or_default();
        let audit = file.section("audit").map(|section| section.read::<AuditTable>()).transpose();
        let mut audit = audit.map_err(|problem| problems.push(problem)).ok().flatten().unwrap_or_default();
        if let (Some(path), Some(folder)) = (&mut audit.file, file.path().parent()) {
            *path = folder.join(&*path);
        }
        if problems.is_empty() {
            return Ok(Self { source, file, servers, described, serve, audit });
        }
        Err(misconfigured(&problems))
    }

    /// Reports whether the file has nothing to serve.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.described.is_empty()
    }
}

fn serve_options(section: &Section, problems: &mut Vec<Problem>) -> ServeOptions {
    let read = section.read::<ServeTable>().and_then(|table| {
        let parsed = table.names.map(|names| names.parse::<NameTemplate>()).transpose();
        let names = parsed.map_err(|error| section.problem(&["names"], error.to_string()))?;
        Ok(ServeOptions { names, list_wait: table.list_wait.map(|Length(wait)| wait) })
    });
    read.map_err(|problem| problems.push(problem)).unwrap_or_default()
}
