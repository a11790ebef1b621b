use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use trunkline_config::{ConfigFile, ConfigVariables};

/// Every sample, with the name that its text is read under.
pub(crate) const SAMPLES: &[&str] = &[
    "claude_code.mcp.json",
    "claude.json",
    "claude_desktop_config.json",
    "cursor.mcp.json",
    "vscode.mcp.json",
    "vscode_settings.json",
    "windsurf_mcp_config.json",
    "cline_mcp_settings.json",
    "gemini_settings.json",
    "trunkline.toml",
];

pub(crate) fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn variables() -> ConfigVariables {
    ConfigVariables::fixed([
        ("GITHUB_TOKEN", "gh-canary"),
        ("STRIPE_KEY", "sk-canary"),
        ("CONTEXT7_KEY", "c7-canary"),
    ])
}

pub(crate) fn read(name: &str) -> ConfigFile {
    ConfigFile::parse(format!("/project/{name}"), &sample(name), variables()).unwrap()
}

/// A folder of its own for one test, gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-config-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        set_mode(&path, 0o644);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The tests may run under any mask, and files that others can write to are refused.
pub(crate) fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
