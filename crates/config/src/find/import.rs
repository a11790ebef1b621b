use std::fmt;
use std::path::{Path, PathBuf};

use super::client_app::ClientApp;
use super::user_directories::UserDirectories;
use crate::file::{ConfigFile, FileOrigin};
use crate::limits::MAX_CLIENT_BYTES;
use crate::problem::ConfigError;
use crate::variables::ConfigVariables;

/// The servers of a client in one file, with unexpanded variables.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientImport {
    /// The client.
    pub client: ClientApp,
    /// The scope of the servers.
    pub scope: ImportScope,
    /// The path of the file.
    pub path: PathBuf,
    /// The file, or why it cannot be used.
    pub file: Result<ConfigFile, ConfigError>,
    /// The servers of the file that the user has disabled elsewhere.
    pub disabled: Vec<String>,
}

/// The scope of imported servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImportScope {
    /// One user in one project.
    Local,
    /// All users of one project.
    Project,
    /// One user in all projects.
    User,
}

impl ImportScope {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

impl fmt::Display for ImportScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads the existing files of all clients: those of the user, and those of a project. Within one client the narrower
/// scope comes first, as it does for the client.
pub fn imports(places: &UserDirectories, project: Option<&Path>) -> Vec<ClientImport> {
    let mut found = Vec::new();
    for client in ClientApp::ALL {
        let (mut local, mut of_user) = (Vec::new(), Vec::new());
        let user_files = client.user_files(places);
        for path in user_files.clone() {
            let Some(file) = read(&path) else { continue };
            if let (Ok(file), Some(project), ClientApp::ClaudeCode) = (&file, project, client) {
                let of_project = file.for_project(project);
                local.extend(of_project.map(|file| (ImportScope::Local, path.clone(), Ok(file))));
            }
            of_user.push((ImportScope::User, path, file));
        }
        let of_project = project.zip(client.project_file()).and_then(|(project, file)| {
            // If the project is the home folder, the two may be the same file.
            let path = Some(project.join(file)).filter(|path| !user_files.contains(path))?;
            let file = read(&path)?;
            Some((ImportScope::Project, path, file))
        });
        let all = local.into_iter().chain(of_project).chain(of_user);
        let disabled = match (client, project) {
            (ClientApp::ClaudeCode, Some(project)) => disabled_project_servers(places, project),
            _ => Vec::new(),
        };
        found.extend(all.map(|(scope, path, file)| {
            let disabled = if scope == ImportScope::Project { disabled.clone() } else { Vec::new() };
            ClientImport { client, scope, path, file, disabled }
        }));
    }
    // Settings without servers are not imports.
    found.retain(|import| !matches!(&import.file, Ok(file) if file.server_names().is_empty()));
    found
}

/// Returns the servers of `.mcp.json` that the user of Claude Code has disabled: for the project in its own file, and in its
/// settings.
fn disabled_project_servers(places: &UserDirectories, project: &Path) -> Vec<String> {
    const KEY: &str = "disabledMcpjsonServers";
    let own = ClientApp::ClaudeCode.user_file(places);
    let settings = places.claude.clone().unwrap_or_else(|| places.home.join(".claude"));
    let files = [
        (own, project.to_str().map(|project| vec!["projects", project, KEY])),
        (settings.join("settings.json"), Some(vec![KEY])),
        (project.join(".claude").join("settings.json"), Some(vec![KEY])),
        (project.join(".claude").join("settings.local.json"), Some(vec![KEY])),
    ];
    let mut names = Vec::new();
    for (path, keys) in files {
        let (Some(keys), Some(Ok(file))) = (keys, read(&path)) else { continue };
        names.extend(file.names_at(&keys));
    }
    names
}

/// Reads a file of a client, if it exists.
fn read(path: &Path) -> Option<Result<ConfigFile, ConfigError>> {
    path.symlink_metadata().ok()?;
    Some(ConfigFile::load(path, ConfigVariables::unexpanded(), MAX_CLIENT_BYTES, FileOrigin::Named))
}
