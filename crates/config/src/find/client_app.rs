use std::fmt;
use std::path::{Path, PathBuf};

use super::client_profile::{ClientProfile, PROFILES};
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
    /// Gemini CLI.
    GeminiCli,
    /// Zed.
    Zed,
    /// LM Studio.
    LmStudio,
    /// Cline, an extension of VS Code.
    Cline,
    /// Roo Code, an extension of VS Code.
    RooCode,
    /// Junie, of JetBrains.
    Junie,
    /// GitHub Copilot CLI.
    CopilotCli,
    /// Amazon Q Developer.
    AmazonQ,
    /// Kiro.
    Kiro,
    /// Amp.
    Amp,
    /// Codex.
    Codex,
    /// opencode.
    OpenCode,
    /// Goose.
    Goose,
    /// Continue.
    Continue,
    /// Qwen Code.
    QwenCode,
}

impl ClientApp {
    /// All of them, in the order in which their files are searched.
    pub const ALL: [Self; 20] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::GeminiCli,
        Self::Zed,
        Self::LmStudio,
        Self::Cline,
        Self::RooCode,
        Self::Junie,
        Self::CopilotCli,
        Self::AmazonQ,
        Self::Kiro,
        Self::Amp,
        Self::Codex,
        Self::OpenCode,
        Self::Goose,
        Self::Continue,
        Self::QwenCode,
    ];

    fn profile(self) -> Option<&'static ClientProfile> {
        PROFILES.iter().find(|profile| profile.client == self)
    }

    /// Returns its name as one writes it on a command line.
    pub fn as_str(self) -> &'static str {
        self.profile().map_or("", |profile| profile.name)
    }

    /// Finds a client by its name.
    pub fn parse(name: &str) -> Option<Self> {
        PROFILES.iter().find(|profile| profile.name == name).map(|profile| profile.client)
    }

    /// Returns the key under which it stores its servers.
    pub fn container(self) -> &'static str {
        self.profile().map_or("mcpServers", |profile| profile.container)
    }

    /// Returns the file with the servers of the user.
    pub fn user_file(self, places: &UserDirectories) -> PathBuf {
        let usual = self.profile().and_then(|profile| profile.user_file.path(places));
        usual.unwrap_or_else(|| match self {
            Self::ClaudeDesktop => {
                // Windows stores the settings of a program from its store separately, and then those count.
                let store = windows_store_file(places).filter(|path| path.parent().is_some_and(Path::exists));
                store.unwrap_or_else(|| places.settings().join("Claude").join(CLAUDE_DESKTOP_FILE))
            }
            Self::Codex => {
                places.codex.clone().unwrap_or_else(|| places.home.join(".codex")).join("config.toml")
            }
            Self::Goose if places.platform == HostPlatform::Windows => {
                places.settings().join("Block").join("goose").join("config").join("config.yaml")
            }
            Self::Goose => places.dot_config().join("goose").join("config.yaml"),
            _ => places.claude.as_ref().unwrap_or(&places.home).join(".claude.json"),
        })
    }

    /// Returns the file with the servers of a project, as a path within it, if the client has one.
    pub fn project_file(self) -> Option<&'static str> {
        self.profile()?.project_file
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
        if self == Self::OpenCode {
            files.push(places.dot_config().join("opencode").join("opencode.jsonc"));
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
        f.write_str(self.profile().map_or("", |profile| profile.title))
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
            (ClientApp::GeminiCli, HostPlatform::Linux, "/h/.gemini/settings.json"),
            (ClientApp::Zed, HostPlatform::Linux, "/h/.config/zed/settings.json"),
            (ClientApp::Zed, HostPlatform::MacOs, "/h/.config/zed/settings.json"),
            (ClientApp::Zed, HostPlatform::Windows, "/h/AppData/Roaming/zed/settings.json"),
            (
                ClientApp::Cline,
                HostPlatform::Linux,
                "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            (ClientApp::Amp, HostPlatform::MacOs, "/h/.config/amp/settings.json"),
            (ClientApp::Codex, HostPlatform::Linux, "/h/.codex/config.toml"),
            (ClientApp::OpenCode, HostPlatform::MacOs, "/h/.config/opencode/opencode.json"),
            (ClientApp::Goose, HostPlatform::MacOs, "/h/.config/goose/config.yaml"),
            (ClientApp::Goose, HostPlatform::Windows, "/h/AppData/Roaming/Block/goose/config/config.yaml"),
            (ClientApp::Continue, HostPlatform::Linux, "/h/.continue/config.yaml"),
            (ClientApp::QwenCode, HostPlatform::Linux, "/h/.qwen/settings.json"),
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
        assert_eq!(ClientApp::ALL.len(), PROFILES.len());
        for (client, profile) in ClientApp::ALL.into_iter().zip(PROFILES) {
            assert_eq!(profile.client, client, "the table has the order of the search");
            assert_eq!(ClientApp::parse(client.as_str()), Some(client));
        }
        assert_eq!(ClientApp::parse("emacs"), None);
    }
}
