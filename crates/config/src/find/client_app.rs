use std::fmt;
use std::path::{Path, PathBuf};

use super::user_directories::{HostPlatform, UserDirectories};
use crate::file::FileOrigin;

/// An application with its own list of MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientApp {
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

impl ClientApp {
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

    /// Returns the key under which it stores its servers.
    pub fn container(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// Returns the file with the servers of the user.
    pub fn user_file(self, places: &UserDirectories) -> PathBuf {
        match self {
            Self::ClaudeCode => places.claude.as_ref().unwrap_or(&places.home).join(".claude.json"),
            Self::ClaudeDesktop => {
                // Windows stores the settings of a program from its store separately, and then those count.
                let store = windows_store_file(places).filter(|path| path.parent().is_some_and(Path::exists));
                store.unwrap_or_else(|| places.settings().join("Claude").join(CLAUDE_DESKTOP_FILE))
            }
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

    /// Returns every file that may have servers, those of the user first; a file of a project was not chosen by the
    /// user.
    pub(super) fn files(
        self,
        places: &UserDirectories,
        project: Option<&Path>,
    ) -> Vec<(PathBuf, FileOrigin)> {
        let of_person = self.user_files(places).into_iter().map(|path| (path, FileOrigin::Named));
        let in_project = project.and_then(|project| Some(project.join(self.project_file()?)));
        of_person.chain(in_project.map(|path| (path, FileOrigin::Discovered))).collect()
    }

    /// Returns every file that may have servers of the user, including older paths.
    pub(super) fn user_files(self, places: &UserDirectories) -> Vec<PathBuf> {
        let mut files = vec![self.user_file(places)];
        if self == Self::ClaudeDesktop {
            let plain = places.settings().join("Claude").join(CLAUDE_DESKTOP_FILE);
            files.extend(Some(plain).filter(|plain| !files.contains(plain)));
        }
        if self == Self::VsCode {
            let user = |folder: &str| places.settings().join(folder).join("User");
            files.push(user("Code").join("settings.json"));
            files.push(user("Code - Insiders").join("mcp.json"));
        }
        files
    }
}

/// What Claude Desktop calls its file.
const CLAUDE_DESKTOP_FILE: &str = "claude_desktop_config.json";

/// Returns where Claude Desktop has its file if it came from the store of Windows.
fn windows_store_file(places: &UserDirectories) -> Option<PathBuf> {
    let local = places.local.as_ref().filter(|_| places.platform == HostPlatform::Windows)?;
    let package = local.join("Packages").join("Claude_pzs8sxrjxfjjc").join("LocalCache").join("Roaming");
    Some(package.join("Claude").join(CLAUDE_DESKTOP_FILE))
}

impl fmt::Display for ClientApp {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_config_paths_match_each_platform() {
        let places = |platform| UserDirectories::for_home(platform, "/h");
        let table = [
            (ClientApp::ClaudeCode, HostPlatform::Linux, "/h/.claude.json"),
            (ClientApp::ClaudeCode, HostPlatform::MacOs, "/h/.claude.json"),
            (ClientApp::ClaudeCode, HostPlatform::Windows, "/h/.claude.json"),
            (ClientApp::ClaudeDesktop, HostPlatform::Linux, "/h/.config/Claude/claude_desktop_config.json"),
            (
                ClientApp::ClaudeDesktop,
                HostPlatform::MacOs,
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (
                ClientApp::ClaudeDesktop,
                HostPlatform::Windows,
                "/h/AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            (ClientApp::Cursor, HostPlatform::Linux, "/h/.cursor/mcp.json"),
            (ClientApp::Cursor, HostPlatform::Windows, "/h/.cursor/mcp.json"),
            (ClientApp::VsCode, HostPlatform::Linux, "/h/.config/Code/User/mcp.json"),
            (ClientApp::VsCode, HostPlatform::MacOs, "/h/Library/Application Support/Code/User/mcp.json"),
            (ClientApp::VsCode, HostPlatform::Windows, "/h/AppData/Roaming/Code/User/mcp.json"),
            (ClientApp::Windsurf, HostPlatform::MacOs, "/h/.codeium/windsurf/mcp_config.json"),
        ];
        for (client, platform, path) in table {
            assert_eq!(client.user_file(&places(platform)), Path::new(path), "{client} on {platform:?}");
        }
    }

    #[test]
    fn settings_folder_of_the_environment_is_used() {
        let mut places = UserDirectories::for_home(HostPlatform::Linux, "/h");
        places.settings = Some("/etc/xdg".into());
        places.claude = Some("/h/.claude-work".into());
        assert_eq!(ClientApp::VsCode.user_file(&places), Path::new("/etc/xdg/Code/User/mcp.json"));
        assert_eq!(ClientApp::Cursor.user_file(&places), Path::new("/h/.cursor/mcp.json"));
        assert_eq!(ClientApp::ClaudeCode.user_file(&places), Path::new("/h/.claude-work/.claude.json"));
    }

    #[test]
    fn client_apps_are_parsed_from_their_names() {
        for client in ClientApp::ALL {
            assert_eq!(ClientApp::parse(client.as_str()), Some(client));
        }
        assert_eq!(ClientApp::parse("emacs"), None);
    }
}
