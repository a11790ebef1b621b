//! Where configurations are: in a folder, and where the clients of a person keep their own.

mod client;
mod import;
mod lookup;
mod places;

use std::path::{Path, PathBuf};

pub use self::client::Client;
pub use self::import::{Import, Scope, imports};
pub use self::lookup::{Found, LookupError, look_up};
pub use self::places::{Places, Platform};

/// The files that are looked for in a folder, the first that is there applies.
pub const IN_FOLDER: &[&str] =
    &["trunkline.toml", "mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// Returns the file that applies in a folder, if there is one. Anything of the name counts, so that one that cannot be
/// read is told about and not passed over.
pub fn in_folder(folder: &Path) -> Option<PathBuf> {
    IN_FOLDER.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())
}
