//! Loading of a file that decides which programs are started: only one that no other user can have written.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::path::Path;

#[cfg(unix)]
use super::group;
use crate::problem::ConfigProblem;

/// How a file came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOrigin {
    /// The user named it, or it belongs to a client.
    Named,
    /// It was there.
    Discovered,
}

/// Reads a whole file, up to a limit.
pub(crate) fn load(path: &Path, most: u64, chosen: FileOrigin) -> Result<String, ConfigProblem> {
    let problem = |what: String| ConfigProblem::new(path, what);
    let unreadable = |error| problem(format!("cannot be read: {error}"));
    let links = match chosen {
        FileOrigin::Named => LinkPolicy::Follow,
        FileOrigin::Discovered => check_link(path, current_user())?,
    };
    let file = open(path, links).map_err(unreadable)?;
    // Checks the opened file and not its path, which may have been replaced meanwhile.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(problem("is not a file".to_owned()));
    }
    check_owner(path, &metadata, chosen)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return Err(problem(format!("is larger than the limit of {most} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|error| problem(format!("is not valid UTF-8 (byte {})", error.utf8_error().valid_up_to())))
}

/// How a symbolic link is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkPolicy {
    Follow,
    /// The path was no link when it was checked.
    #[cfg(unix)]
    Reject,
}

/// Opens a file. A pipe is opened too, without blocking until it has a writer.
fn open(path: &Path, links: LinkPolicy) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, links == LinkPolicy::Reject);
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = links;
    options.open(path)
}

/// Returns the effective user id.
#[cfg(unix)]
fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn current_user() {}

/// Rejects a link of another user, who would choose which of our own files is read.
#[cfg(unix)]
fn check_link(path: &Path, ourselves: u32) -> Result<LinkPolicy, ConfigProblem> {
    use std::os::unix::fs::MetadataExt as _;
    // If the path does not exist or cannot be examined, the open that follows fails and reports it.
    let link = std::fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
    let Some(link) = link else { return Ok(LinkPolicy::Reject) };
    if is_trusted(link.uid(), ourselves, FileOrigin::Discovered) {
        return Ok(LinkPolicy::Follow);
    }
    let what =
        format!("is a symlink owned by another user (id {}), who could start programs with it", link.uid());
    Err(ConfigProblem::new(path, what)
        .hint("name the file that it leads to with `--config`, if you mean that"))
}

/// Accepts every link: this platform has no owner to check.
#[cfg(not(unix))]
fn check_link(_: &Path, (): ()) -> Result<LinkPolicy, ConfigProblem> {
    Ok(LinkPolicy::Follow)
}

/// Rejects a file that other users can write, since they could start programs as this user.
#[cfg(unix)]
fn check_owner(path: &Path, metadata: &Metadata, chosen: FileOrigin) -> Result<(), ConfigProblem> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode();
    let group_writes = mode & 0o020 != 0 && !group::is_own(metadata.gid(), current_user());
    if mode & 0o002 != 0 || group_writes {
        let what = format!(
            "is writable by other users (mode {:03o}), who could start programs with it",
            mode & 0o777
        );
        return Err(ConfigProblem::new(path, what).hint(format!("run `chmod go-w {}`", shell_word(path))));
    }
    let (owner, ourselves) = (metadata.uid(), current_user());
    if is_trusted(owner, ourselves, chosen) {
        return Ok(());
    }
    let what = format!("belongs to another user (id {owner}), who could start programs with it");
    Err(ConfigProblem::new(path, what)
        .hint(format!("run `chown {ourselves} {}`, or copy it", shell_word(path))))
}

/// Reports whether a file of this owner may define programs to start.
///
/// Within a container the superuser reads files that are mounted from outside, and cannot change their owner. A file
/// that was merely discovered in the folder was not chosen by the user, and so is not trusted.
#[cfg(unix)]
fn is_trusted(owner: u32, ourselves: u32, chosen: FileOrigin) -> bool {
    owner == ourselves || owner == 0 || (ourselves == 0 && chosen == FileOrigin::Named)
}

/// Quotes a path for a shell.
#[cfg(unix)]
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=+,%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Accepts every file: on this platform the mode does not show who can write it.
#[cfg(not(unix))]
fn check_owner(_: &Path, _: &Metadata, _: FileOrigin) -> Result<(), ConfigProblem> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_are_trusted_only_if_named_by_the_superuser() {
        let table = [
            (1000, 1000, FileOrigin::Discovered, true),
            (0, 1000, FileOrigin::Discovered, true),
            (1001, 1000, FileOrigin::Discovered, false),
            (1001, 1000, FileOrigin::Named, false),
            (1000, 0, FileOrigin::Named, true),
            (1000, 0, FileOrigin::Discovered, false),
            (0, 0, FileOrigin::Discovered, true),
        ];
        for (owner, ourselves, chosen, trusted) in table {
            assert_eq!(is_trusted(owner, ourselves, chosen), trusted, "{owner} {ourselves} {chosen:?}");
        }
    }

    #[test]
    fn discovered_symlink_needs_a_trusted_owner() {
        let folder = std::env::temp_dir().join(format!("trunkline-link-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("ours"), folder.join("link"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(load(&link, 10, FileOrigin::Discovered).unwrap(), "text");
        // Links of the superuser are trusted, so the superuser changes the owner of this one. Other users cannot, so
        // they are compared with another id.
        let owner = if current_user() == 0 { 1001 } else { current_user() };
        std::os::unix::fs::lchown(&link, Some(owner), None).unwrap();
        let refused = check_link(&link, owner + 1).unwrap_err().to_string();
        assert!(refused.contains(&format!("is a symlink owned by another user (id {owner})")), "{refused}");
        assert_eq!(check_link(&link, owner).unwrap(), LinkPolicy::Follow);
        assert_eq!(check_link(&file, owner + 1).unwrap(), LinkPolicy::Reject);
        assert!(open(&link, LinkPolicy::Reject).is_err(), "it has become a link since it was judged");
        assert_eq!(load(&link, 10, FileOrigin::Discovered).is_err(), current_user() == 0);
        assert_eq!(load(&link, 10, FileOrigin::Named).unwrap(), "text");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn pipe_as_config_is_rejected_without_blocking() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let pipe = std::env::temp_dir().join(format!("trunkline-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        // Opened without a check of the path, as if the pipe had replaced a file meanwhile.
        assert!(!open(&pipe, LinkPolicy::Reject).unwrap().metadata().unwrap().is_file());
        let refused = load(&pipe, 10, FileOrigin::Discovered).unwrap_err().to_string();
        assert!(refused.contains("is not a file"), "{refused}");
        std::fs::remove_file(pipe).unwrap();
    }

    #[test]
    fn path_in_a_hint_is_quoted_for_the_shell() {
        for (path, word) in [("/a/b.toml", "/a/b.toml"), ("a b", "'a b'"), ("it's", "'it'\\''s'")] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
