//! The path of a hub's admin socket.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::state_folder::{absolute_path_variable, name_of_config, state_folder};

/// Returns where the hub of a configuration file listens, if there is a folder for such things.
pub(crate) fn admin_socket_path(config: &Path) -> Option<PathBuf> {
    let name = name_of_config(config)?;
    Some(socket_folder(|name| std::env::var_os(name), Path::is_dir)?.join(format!("{name}.sock")))
}

/// Returns the folder of a user's sockets: one that ends with the session, or else one that stays.
fn socket_folder(
    variable: impl Fn(&str) -> Option<OsString>,
    is_there: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    // The variable outlives the folder in a shell that has changed its user.
    let runtime = absolute_path_variable(&variable, "XDG_RUNTIME_DIR").filter(|path| is_there(path));
    let runtime = runtime.map(|folder| folder.join("trunkline"));
    runtime.or_else(|| Some(state_folder(variable)?.join("run")))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn admin_sockets_are_in_the_runtime_or_else_the_state_folder() {
        for (variables, expected) in [
            (&[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/h")][..], Some("/run/user/1/trunkline")),
            (&[("XDG_RUNTIME_DIR", "/run/gone"), ("HOME", "/h")], Some("/h/.local/state/trunkline/run")),
            (&[("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "/s")], Some("/s/trunkline/run")),
            (&[("HOME", "/h")], Some("/h/.local/state/trunkline/run")),
            (&[], None),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            };
            let is_there = |path: &Path| !path.ends_with("gone");
            assert_eq!(socket_folder(variable, is_there), expected.map(PathBuf::from), "{variables:?}");
        }
    }
}
