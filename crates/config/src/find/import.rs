use std::fmt;
use std::path::{Path, PathBuf};

use super::client_app::ClientApp;
use super::user_directories::UserDirectories;
use crate::file::{ConfigFile, FileOrigin};
use crate::limits::MAX_CLIENT_BYTES;
use crate::problem::ConfigError;
use crate::variables::ConfigVariables;

/// The servers that a client has in one file, with their variables as they are written.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientImport {
    /// Whose they are.
    pub client: ClientApp,
    /// For whom they are.
    pub scope: ImportScope,
    /// Where they are.
    pub path: PathBuf,
    /// The file, or why it cannot be used.
    pub file: Result<ConfigFile, ConfigError>,
}

/// For whom servers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImportScope {
    /// For one person in one project.
    Local,
    /// For everybody in one project.
    Project,
    /// For one person, everywhere.
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

/// Reads the files of all clients that are there: those of the person, and those of a project. Of one client, what counts
/// for fewer comes first, as it does for the client.
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
            // In a home folder the two may be one.
            let path = Some(project.join(file)).filter(|path| !user_files.contains(path))?;
            let file = read(&path)?;
            Some((ImportScope::Project, path, file))
        });
        let all = local.into_iter().chain(of_project).chain(of_user);
        found.extend(all.map(|(scope, path, file)| ClientImport { client, scope, path, file }));
    }
    // Settings that say nothing of servers are no place of servers.
    found.retain(|import| !matches!(&import.file, Ok(file) if file.server_names().is_empty()));
    found
}

/// Reads a file of a client, if it is there.
fn read(path: &Path) -> Option<Result<ConfigFile, ConfigError>> {
    path.symlink_metadata().ok()?;
    Some(ConfigFile::load(path, ConfigVariables::unexpanded(), MAX_CLIENT_BYTES, FileOrigin::Named))
}
