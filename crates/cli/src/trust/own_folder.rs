use std::path::{Path, PathBuf};

use trunkline_config::find::{ClientApp, UserDirectories};

/// Reports whether a file is the user's own configuration and not that of a project: it is in the folder for settings, or
/// is the user file of a client.
pub(super) fn is_own_file(file: &Path) -> bool {
    UserDirectories::from_environment().is_some_and(|places| is_own_file_in(file, &places))
}

fn is_own_file_in(file: &Path, places: &UserDirectories) -> bool {
    let Some(entry) = folder_entry(file) else { return false };
    let settings = std::fs::canonicalize(places.settings());
    let mut of_clients = ClientApp::ALL.into_iter().map(|client| client.user_file(places));
    settings.is_ok_and(|settings| entry.starts_with(settings))
        || of_clients.any(|own| folder_entry(&own).as_ref() == Some(&entry))
}

/// Returns a path with the links of its folder resolved, and its last name as it is. A link in the folder for settings
/// counts, since only the user can have put it there; one elsewhere that leads into that folder does not, since the
/// relative paths of the file count from the folder of the link.
fn folder_entry(file: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(non_empty(file.parent()?)).ok()?;
    Some(folder.join(file.file_name()?))
}

fn non_empty(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(all(test, unix))]
mod tests {
    use trunkline_config::find::HostPlatform;

    use super::*;

    #[test]
    fn only_files_of_the_users_own_settings_are_trusted_by_their_place() {
        let home = std::env::temp_dir().join(format!("trunkline-own-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&home);
        for folder in [".config/trunkline", ".cursor", "shop"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let places = UserDirectories::for_home(HostPlatform::Linux, &home);
        for (file, expected) in [
            (".config/trunkline/trunkline.toml", true),
            (".cursor/mcp.json", true),
            ("shop/mcp.json", false),
            ("mcp.json", false),
            (".config/../shop/mcp.json", false),
        ] {
            std::fs::write(home.join(file), "{}").unwrap();
            assert_eq!(is_own_file_in(&home.join(file), &places), expected, "{file}");
        }
        std::os::unix::fs::symlink(home.join("shop/mcp.json"), home.join(".config/linked.json")).unwrap();
        assert!(is_own_file_in(&home.join(".config/linked.json"), &places));
        assert!(!is_own_file_in(&home.join("missing/mcp.json"), &places));
        let own = home.join(".config/trunkline/trunkline.toml");
        std::os::unix::fs::symlink(own, home.join("shop/trunkline.toml")).unwrap();
        assert!(!is_own_file_in(&home.join("shop/trunkline.toml"), &places));
        std::fs::remove_dir_all(home).unwrap();
    }
}
