use std::path::PathBuf;

use crate::syntax::codex_home;

/// An operating system, as far as it determines the folders for settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPlatform {
    /// Linux, and everything that is like it.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl HostPlatform {
    /// Returns the one that this program was made for.
    pub fn current() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// The folders of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserDirectories {
    /// The operating system.
    pub platform: HostPlatform,
    /// The home folder.
    pub home: PathBuf,
    /// The folder for settings if the environment names one: `XDG_CONFIG_HOME` on Linux, `APPDATA` on Windows.
    pub settings: Option<PathBuf>,
    /// The folder of Claude Code if the environment names one: `CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    /// The folder of Codex if the environment names one: `CODEX_HOME`.
    pub codex: Option<PathBuf>,
    /// The folder of what stays on this machine, on Windows: `LOCALAPPDATA`.
    pub local: Option<PathBuf>,
}

impl UserDirectories {
    /// Creates the default folders of a home folder.
    pub fn for_home(platform: HostPlatform, home: impl Into<PathBuf>) -> Self {
        Self { platform, home: home.into(), settings: None, claude: None, codex: None, local: None }
    }

    /// Reads the environment of this process; `None` if there is no home folder.
    pub fn from_environment() -> Option<Self> {
        let platform = HostPlatform::current();
        let named = match platform {
            HostPlatform::Linux => std::env::var_os("XDG_CONFIG_HOME"),
            HostPlatform::Windows => std::env::var_os("APPDATA"),
            HostPlatform::MacOs => None,
        };
        let absolute =
            |named: Option<std::ffi::OsString>| named.map(PathBuf::from).filter(|path| path.is_absolute());
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty())?;
        Some(Self {
            settings: absolute(named),
            claude: absolute(std::env::var_os("CLAUDE_CONFIG_DIR")),
            codex: codex_home(),
            local: absolute(std::env::var_os("LOCALAPPDATA")),
            ..Self::for_home(platform, home)
        })
    }

    /// Returns the folder of programs that have their settings in `~/.config` on macOS too.
    pub(super) fn dot_config(&self) -> PathBuf {
        match self.platform {
            HostPlatform::MacOs => self.home.join(".config"),
            HostPlatform::Linux | HostPlatform::Windows => self.settings(),
        }
    }

    /// Returns the folder in which programs have their settings.
    pub fn settings(&self) -> PathBuf {
        let usual = || match self.platform {
            HostPlatform::Linux => self.home.join(".config"),
            HostPlatform::MacOs => self.home.join("Library").join("Application Support"),
            HostPlatform::Windows => self.home.join("AppData").join("Roaming"),
        };
        self.settings.clone().unwrap_or_else(usual)
    }
}
