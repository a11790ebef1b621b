//! Discovery of configuration files: in a folder, and those of the user's clients.

mod client_app;
mod client_profile;
mod import;
mod lookup;
mod user_directories;

use std::path::{Path, PathBuf};

pub use self::client_app::ClientApp;
pub use self::import::{ClientImport, ImportScope, imports};
pub use self::lookup::{FoundServer, LookupError, look_up};
pub use self::user_directories::{HostPlatform, UserDirectories};

/// The file names that are searched in a folder; the first that exists applies.
pub const FOLDER_FILE_NAMES: &[&str] =
    &["trunkline.toml", "mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// Returns the file that applies in a folder, if there is one. Anything of the name counts, so that an unreadable
/// file is reported and not skipped.
pub fn find_in_folder(folder: &Path) -> Option<PathBuf> {
    FOLDER_FILE_NAMES.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())
}
