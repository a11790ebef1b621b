use std::fmt;
use std::path::{Path, PathBuf};

use crate::file::{Chosen, ConfigFile};
use crate::limits::MOST_CLIENT_BYTES;
use crate::problem::ConfigError;
use crate::variables::Variables;

/// A program that keeps a list of MCP servers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Client {
    /// Claude Code, at the command line.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Windsurf.
    Windsurf,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ClaudeCode, Self::ClaudeDesktop, Self::Cursor, Self::VsCode, Self::Windsurf];

    /// Returns its name as one writes it on a command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
        }
    }

    /// Finds a client by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.as_str() == name)
    }

    /// Returns the key under which it keeps its servers.
    pub fn container(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// Returns the file with the servers of a person.
    pub fn user_file(self, places: &Places) -> PathBuf {
        match self {
            Self::ClaudeCode => places.home.join(".claude.json"),
            Self::ClaudeDesktop => places.settings().join("Claude").join("claude_desktop_config.json"),
            Self::Cursor => places.home.join(".cursor").join("mcp.json"),
            Self::VsCode => places.settings().join("Code").join("User").join("mcp.json"),
            Self::Windsurf => places.home.join(".codeium").join("windsurf").join("mcp_config.json"),
        }
    }

    /// Returns the file with the servers of a project, as a path within it, if the client has one.
    pub fn project_file(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some(".mcp.json"),
            Self::Cursor => Some(".cursor/mcp.json"),
            Self::VsCode => Some(".vscode/mcp.json"),
            Self::ClaudeDesktop | Self::Windsurf => None,
        }
    }

    /// Returns every file that may have servers, those of the person first; what lies in a project is chosen by nobody.
    pub(super) fn files(self, places: &Places, project: Option<&Path>) -> Vec<(PathBuf, Chosen)> {
        let of_person = self.user_files(places).into_iter().map(|path| (path, Chosen::Named));
        let in_project = project.and_then(|project| Some(project.join(self.project_file()?)));
        of_person.chain(in_project.map(|path| (path, Chosen::Found))).collect()
    }

    /// Returns every file that may have servers of a person, older places among them.
    fn user_files(self, places: &Places) -> Vec<PathBuf> {
        let mut files = vec![self.user_file(places)];
        if self == Self::VsCode {
            let user = |folder: &str| places.settings().join(folder).join("User");
            files.push(user("Code").join("settings.json"));
            files.push(user("Code - Insiders").join("mcp.json"));
        }
        files
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
        })
    }
}

/// A kind of operating system, as far as it decides where programs keep their settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux, and everything that is like it.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// Returns the one that this program was made for.
    pub fn current() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// Where a person's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The operating system.
    pub platform: Platform,
    /// The home folder.
    pub home: PathBuf,
    /// The folder for settings if the environment names one: `XDG_CONFIG_HOME` on Linux, `APPDATA` on Windows.
    pub settings: Option<PathBuf>,
}

impl Places {
    /// Asks the environment of this process; `None` if there is no home folder.
    pub fn of_process() -> Option<Self> {
        let platform = Platform::current();
        let named = match platform {
            Platform::Linux => std::env::var_os("XDG_CONFIG_HOME"),
            Platform::Windows => std::env::var_os("APPDATA"),
            Platform::MacOs => None,
        };
        let settings = named.map(PathBuf::from).filter(|path| path.is_absolute());
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty())?;
        Some(Self { platform, home, settings })
    }

    /// Returns the folder in which programs have their settings.
    pub fn settings(&self) -> PathBuf {
        let usual = || match self.platform {
            Platform::Linux => self.home.join(".config"),
            Platform::MacOs => self.home.join("Library").join("Application Support"),
            Platform::Windows => self.home.join("AppData").join("Roaming"),
        };
        self.settings.clone().unwrap_or_else(usual)
    }
}

/// The servers that a client has in one file, with their variables as they are written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Import {
    /// Whose they are.
    pub client: Client,
    /// Where they are.
    pub path: PathBuf,
    /// The file, or why it cannot be used.
    pub file: Result<ConfigFile, ConfigError>,
}

/// Reads the files of all clients that are there: those of the person, and those of a project.
pub fn imports(places: &Places, project: Option<&Path>) -> Vec<Import> {
    let mut found = Vec::new();
    for client in Client::ALL {
        let in_project = project.and_then(|project| Some(project.join(client.project_file()?)));
        for path in client.user_files(places).into_iter().chain(in_project) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            let file = ConfigFile::load(&path, Variables::kept(), MOST_CLIENT_BYTES, Chosen::Named);
            let local = match (&file, project, client) {
                (Ok(file), Some(project), Client::ClaudeCode) => file.of_project(project),
                _ => None,
            };
            found.push(Import { client, path: path.clone(), file });
            found.extend(local.map(|file| Import { client, path, file: Ok(file) }));
        }
    }
    // Settings that say nothing of servers are no place of servers.
    found.retain(|import| !matches!(&import.file, Ok(file) if file.names().is_empty()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_keeps_its_servers_where_its_platform_says() {
        let places = |platform| Places { platform, home: "/h".into(), settings: None };
        let table = [
            (Client::ClaudeCode, Platform::Linux, "/h/.claude.json"),
            (Client::ClaudeCode, Platform::MacOs, "/h/.claude.json"),
            (Client::ClaudeCode, Platform::Windows, "/h/.claude.json"),
            (Client::ClaudeDesktop, Platform::Linux, "/h/.config/Claude/claude_desktop_config.json"),
            (
                Client::ClaudeDesktop,
                Platform::MacOs,
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (
                Client::ClaudeDesktop,
                Platform::Windows,
                "/h/AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            (Client::Cursor, Platform::Linux, "/h/.cursor/mcp.json"),
            (Client::Cursor, Platform::Windows, "/h/.cursor/mcp.json"),
            (Client::VsCode, Platform::Linux, "/h/.config/Code/User/mcp.json"),
            (Client::VsCode, Platform::MacOs, "/h/Library/Application Support/Code/User/mcp.json"),
            (Client::VsCode, Platform::Windows, "/h/AppData/Roaming/Code/User/mcp.json"),
            (Client::Windsurf, Platform::MacOs, "/h/.codeium/windsurf/mcp_config.json"),
        ];
        for (client, platform, path) in table {
            assert_eq!(client.user_file(&places(platform)), Path::new(path), "{client} on {platform:?}");
        }
    }

    #[test]
    fn a_folder_for_settings_that_the_environment_names_is_used() {
        let places =
            Places { platform: Platform::Linux, home: "/h".into(), settings: Some("/etc/xdg".into()) };
        assert_eq!(Client::VsCode.user_file(&places), Path::new("/etc/xdg/Code/User/mcp.json"));
        assert_eq!(Client::Cursor.user_file(&places), Path::new("/h/.cursor/mcp.json"));
    }

    #[test]
    fn clients_are_known_by_the_names_that_they_are_given() {
        for client in Client::ALL {
            assert_eq!(Client::parse(client.as_str()), Some(client));
        }
        assert_eq!(Client::parse("emacs"), None);
    }
}
