use std::path::{Path, PathBuf};

use trunkline_config::find::{ClientApp, UserDirectories};

/// Reports whether a file is the user's own configuration and not that of a project: it is in the folder for settings, or
/// is the user file of a client.
pub(super) fn is_own_file(file: &Path) -> bool {
    UserDirectories::from_environment().is_some_and(|places| is_own_file_in(file, &places))
}

fn is_own_file_in(file: &Path, places: &UserDirectories) -> bool {
    let settings = std::fs::canonicalize(places.settings()).ok();
    let in_settings = |path: &PathBuf| settings.as_ref().is_some_and(|settings| path.starts_with(settings));
    let is_of_client = |path: &PathBuf| {
        let mut files = ClientApp::ALL.into_iter().map(|client| client.user_file(places));
        files.any(|own| std::fs::canonicalize(own).is_ok_and(|own| own == *path))
    };
    // A link in the folder for settings counts: only the user can have put it there.
    let link = file.parent().and_then(|folder| std::fs::canonicalize(non_empty(folder)).ok());
    let link = link.zip(file.file_name()).map(|(folder, name)| folder.join(name));
    let target = std::fs::canonicalize(file).ok();
    link.into_iter().chain(target).any(|path| in_settings(&path) || is_of_client(&path))
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
        std::fs::remove_dir_all(home).unwrap();
    }
}
