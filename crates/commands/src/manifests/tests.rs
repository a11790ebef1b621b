use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::folders::ManifestFolders;
use super::rule::ManifestRule;
use super::scan::ManifestScan;
use super::{ManifestLimits, Manifests};

/// A temporary folder of one test, deleted on drop.
struct ManifestTestFolder(PathBuf);

impl ManifestTestFolder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("trunkline-manifests-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for ManifestTestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn rule(directory: &Path, patterns: &[&str], limits: ManifestLimits) -> ManifestRule {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    ManifestRule::new(directory, &patterns, limits)
}

/// Returns the relative paths of the manifests in and around a folder.
fn found(folder: &ManifestTestFolder, directory: &str, patterns: &[&str]) -> Vec<String> {
    // A high limit, since the speed of the machine is not under test.
    let limits = ManifestLimits { timeout: std::time::Duration::from_secs(60), ..ManifestLimits::default() };
    let scan = ManifestScan::run(&rule(&folder.0.join(directory), patterns, limits));
    assert!(!scan.truncated);
    let paths = scan
        .manifests
        .iter()
        .map(|found| found.path.strip_prefix(&folder.0).unwrap().to_str().unwrap().to_owned());
    paths.collect()
}

fn workspace() -> ManifestTestFolder {
    let folder = ManifestTestFolder::new();
    fs::create_dir_all(folder.0.join("repo/.git")).unwrap();
    for path in [
        "golem.yaml",
        "repo/golem.yaml",
        "repo/app/golem.yaml",
        "repo/app/here/golem.yaml",
        "repo/app/here/other.yaml",
        "repo/app/here/child/golem.yaml",
        "repo/app/here/child/grandchild/golem.yaml",
        "repo/app/here/built/golem.yaml",
        "repo/app/sibling/golem.yaml",
    ] {
        folder.write(path, path);
    }
    folder.write("repo/.gitignore", "built/\n");
    folder
}

#[test]
fn manifests_are_found_in_the_folder_its_children_and_parents() {
    let folder = workspace();
    let near = [
        "repo/app/golem.yaml",
        "repo/app/here/child/golem.yaml",
        "repo/app/here/golem.yaml",
        "repo/golem.yaml",
    ];
    assert_eq!(found(&folder, "repo/app/here", &["golem.yaml"]), near);
    assert_eq!(found(&folder, "repo/app/here", &["o*.yaml"]), ["repo/app/here/other.yaml"]);
    assert_eq!(
        found(&folder, "repo/app/here", &["**/golem.yaml"]),
        [
            "repo/app/here/child/golem.yaml",
            "repo/app/here/child/grandchild/golem.yaml",
            "repo/app/here/golem.yaml"
        ]
    );
    assert_eq!(found(&folder, "repo/app/here", &["child/*.yaml"]), ["repo/app/here/child/golem.yaml"]);
    assert!(found(&folder, "nowhere/none", &["golem.yaml"]).is_empty());
}

#[test]
fn hidden_manifests_are_found_only_by_explicit_patterns() {
    let folder = workspace();
    for path in [
        "repo/.env",
        "repo/app/here/.env",
        "repo/app/here/.golem.yaml",
        "repo/app/here/.ci/golem.yaml",
        "repo/app/here/.ci/deep/golem.yaml",
        "repo/.git/golem.yaml",
    ] {
        folder.write(path, path);
    }
    for (directory, pattern, expected) in [
        ("repo/app/here", ".golem.yaml", &["repo/app/here/.golem.yaml"][..]),
        ("repo/app/here", ".e*", &["repo/.env", "repo/app/here/.env"]),
        (
            "repo/app/here",
            ".ci/**/*.yaml",
            &["repo/app/here/.ci/deep/golem.yaml", "repo/app/here/.ci/golem.yaml"],
        ),
        ("repo", "*", &["repo/golem.yaml", "repo/app/golem.yaml"]),
        ("repo", "**/.git/**", &[]),
    ] {
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found(&folder, directory, &[pattern]), expected, "{pattern}");
    }
}

#[test]
fn symbolic_links_are_neither_listed_nor_followed() {
    let folder = workspace();
    let here = folder.0.join("repo/app/here");
    folder.write("outside/golem.yaml", "secret");
    symlink(folder.0.join("outside"), here.join("linked")).unwrap();
    symlink(folder.0.join("outside/golem.yaml"), here.join("golem.yml")).unwrap();
    symlink(&here, here.join("child/loop")).unwrap();
    let all = found(&folder, "repo/app/here", &["golem.y*", "**/golem.y*"]);
    assert!(all.iter().all(|path| !path.contains("loop") && !path.contains("linked")), "{all:?}");
    assert!(!all.iter().any(|path| path.ends_with("yml")), "{all:?}");
}

#[test]
fn manifest_scan_stops_at_its_limits() {
    let folder = ManifestTestFolder::new();
    for at in 0..50 {
        folder.write(&format!("f{at}/golem.yaml"), "x");
    }
    let limited = |limits: ManifestLimits| ManifestScan::run(&rule(&folder.0, &["**/golem.yaml"], limits));
    let limits =
        || ManifestLimits { timeout: std::time::Duration::from_secs(60), ..ManifestLimits::default() };
    let few = limited(ManifestLimits { files: 7, ..limits() });
    assert_eq!((few.manifests.len(), few.truncated), (7, true));
    let entries = limited(ManifestLimits { entries: 20, ..limits() });
    assert!(entries.truncated && entries.manifests.len() <= 20, "{entries:?}");
    let time = limited(ManifestLimits { timeout: std::time::Duration::ZERO, ..limits() });
    assert!(time.truncated && time.manifests.is_empty());
    let watched = limited(ManifestLimits { watched: 5, ..limits() }).watch_scope;
    assert_eq!((watched.folders.len(), watched.has_more), (5, true));
    let all = limited(limits()).watch_scope;
    assert_eq!((all.folders.len(), all.has_more), (51, false));
    assert_eq!(limited(limits()).manifests.len(), 50);
    let shallow = limited(ManifestLimits { depth: 1, ..limits() });
    assert_eq!(shallow.manifests.len(), 50, "direct children are always looked at");
}

#[test]
fn only_manifests_below_the_folders_can_be_read() {
    let folder = workspace();
    let here = folder.0.join("repo/app/here");
    let folders = ManifestFolders::open(&rule(
        &here,
        &["golem.yaml"],
        ManifestLimits { bytes: 64, ..ManifestLimits::default() },
    ));
    let read = |path: &str| folders.read(&here.join(path)).map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(read("golem.yaml").unwrap(), "repo/app/here/golem.yaml");
    assert_eq!(read("child/golem.yaml").unwrap(), "repo/app/here/child/golem.yaml");
    assert_eq!(folders.read(&folder.0.join("repo/golem.yaml")).unwrap(), b"repo/golem.yaml");
    folder.write("outside/golem.yaml", "secret");
    folder.write("repo/app/here/large.yaml", &"x".repeat(65));
    symlink(folder.0.join("outside"), here.join("linked")).unwrap();
    symlink(folder.0.join("outside/golem.yaml"), here.join("link.yaml")).unwrap();
    symlink("golem.yaml", here.join("inside.yaml")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        here.join("pipe.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for path in [
        "../../../outside/golem.yaml",
        "child/../golem.yaml",
        "linked/golem.yaml",
        "link.yaml",
        "inside.yaml",
        "pipe.yaml",
        "large.yaml",
        "child",
        "",
        "/etc/passwd",
    ] {
        assert!(read(path).is_err(), "{path}");
    }
    // A folder that becomes a symbolic link after it was listed is not followed.
    fs::remove_dir_all(here.join("child")).unwrap();
    symlink(folder.0.join("outside"), here.join("child")).unwrap();
    assert!(read("child/golem.yaml").is_err());
}

#[test]
fn manifest_rescan_reports_added_removed_and_changed_files() {
    let folder = workspace();
    let here = folder.0.join("repo/app/here");
    let provider = Manifests::new(["golem.yaml"]).directory(&here).provider();
    let rescan = || provider.rescan();
    assert_eq!(rescan(), (false, vec![]));
    folder.write("repo/app/here/golem.yaml", "changed, and longer than before");
    assert_eq!(rescan(), (false, vec![format!("file://{}/golem.yaml", here.display())]));
    folder.write("repo/app/here/new/golem.yaml", "new");
    assert_eq!(rescan(), (true, vec![]));
    fs::remove_file(here.join("golem.yaml")).unwrap();
    assert_eq!(rescan(), (true, vec![]));
}
