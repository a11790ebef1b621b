//! Where each client has its servers: a table.

use std::path::PathBuf;

use super::client_app::ClientApp;
use super::user_directories::UserDirectories;

/// What is known of a client.
pub(super) struct ClientProfile {
    pub(super) client: ClientApp,
    /// Its name on a command line.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// The key under which it stores its servers.
    pub(super) container: &'static str,
    pub(super) user_file: UserFile,
    /// The file of a project, as a path within it.
    pub(super) project_file: Option<&'static str>,
}

/// The file with the servers of the user.
pub(super) enum UserFile {
    /// Below the home folder.
    Home(&'static str),
    /// Below the folder for settings of the platform.
    Settings(&'static str),
    /// Below `~/.config` on every platform but Windows, and below the folder for settings there.
    DotConfig(&'static str),
    /// The file of an extension of VS Code.
    VsCodeExtension(&'static str),
    /// By rules of its own.
    Special,
}

impl UserFile {
    /// Returns the path, unless the client has rules of its own.
    pub(super) fn path(&self, places: &UserDirectories) -> Option<PathBuf> {
        Some(match self {
            Self::Home(path) => places.home.join(path),
            Self::Settings(path) => places.settings().join(path),
            Self::DotConfig(path) => places.dot_config().join(path),
            Self::VsCodeExtension(path) => {
                places.settings().join("Code").join("User").join("globalStorage").join(path)
            }
            Self::Special => return None,
        })
    }
}

const MCP_SERVERS: &str = "mcpServers";

/// All clients, in the order in which their files are searched.
pub(super) const PROFILES: &[ClientProfile] = &[
    ClientProfile {
        client: ClientApp::ClaudeCode,
        name: "claude-code",
        title: "Claude Code",
        container: MCP_SERVERS,
        user_file: UserFile::Special,
        project_file: Some(".mcp.json"),
    },
    ClientProfile {
        client: ClientApp::ClaudeDesktop,
        name: "claude-desktop",
        title: "Claude Desktop",
        container: MCP_SERVERS,
        user_file: UserFile::Special,
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::Cursor,
        name: "cursor",
        title: "Cursor",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".cursor/mcp.json"),
        project_file: Some(".cursor/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::VsCode,
        name: "vscode",
        title: "VS Code",
        container: "servers",
        user_file: UserFile::Settings("Code/User/mcp.json"),
        project_file: Some(".vscode/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::Windsurf,
        name: "windsurf",
        title: "Windsurf",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".codeium/windsurf/mcp_config.json"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::GeminiCli,
        name: "gemini",
        title: "Gemini CLI",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".gemini/settings.json"),
        project_file: Some(".gemini/settings.json"),
    },
    ClientProfile {
        client: ClientApp::Zed,
        name: "zed",
        title: "Zed",
        container: "context_servers",
        user_file: UserFile::DotConfig("zed/settings.json"),
        project_file: Some(".zed/settings.json"),
    },
    ClientProfile {
        client: ClientApp::LmStudio,
        name: "lm-studio",
        title: "LM Studio",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".lmstudio/mcp.json"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::Cline,
        name: "cline",
        title: "Cline",
        container: MCP_SERVERS,
        user_file: UserFile::VsCodeExtension("saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::RooCode,
        name: "roo",
        title: "Roo Code",
        container: MCP_SERVERS,
        user_file: UserFile::VsCodeExtension("rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        project_file: Some(".roo/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::Junie,
        name: "junie",
        title: "JetBrains Junie",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".junie/mcp/mcp.json"),
        project_file: Some(".junie/mcp/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::CopilotCli,
        name: "copilot",
        title: "Copilot CLI",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".copilot/mcp-config.json"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::AmazonQ,
        name: "amazon-q",
        title: "Amazon Q",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".aws/amazonq/mcp.json"),
        project_file: Some(".amazonq/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::Kiro,
        name: "kiro",
        title: "Kiro",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".kiro/settings/mcp.json"),
        project_file: Some(".kiro/settings/mcp.json"),
    },
    ClientProfile {
        client: ClientApp::Amp,
        name: "amp",
        title: "Amp",
        container: "amp.mcpServers",
        user_file: UserFile::DotConfig("amp/settings.json"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::Codex,
        name: "codex",
        title: "Codex",
        container: "mcp_servers",
        user_file: UserFile::Special,
        project_file: Some(".codex/config.toml"),
    },
    ClientProfile {
        client: ClientApp::OpenCode,
        name: "opencode",
        title: "opencode",
        container: "mcp",
        user_file: UserFile::DotConfig("opencode/opencode.json"),
        project_file: Some("opencode.json"),
    },
    ClientProfile {
        client: ClientApp::Goose,
        name: "goose",
        title: "Goose",
        container: "extensions",
        user_file: UserFile::Special,
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::Continue,
        name: "continue",
        title: "Continue",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".continue/config.yaml"),
        project_file: None,
    },
    ClientProfile {
        client: ClientApp::QwenCode,
        name: "qwen",
        title: "Qwen Code",
        container: MCP_SERVERS,
        user_file: UserFile::Home(".qwen/settings.json"),
        project_file: Some(".qwen/settings.json"),
    },
];
