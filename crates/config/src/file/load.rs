//! Reading a file that decides which programs are started: only one that nobody else can have written.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::path::Path;

use crate::problem::Problem;

/// How a file came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// A person named it, or it is a client's own.
    Named,
    /// It was there.
    Found,
}

/// Reads a file whole, up to a limit.
pub(crate) fn load(path: &Path, most: u64, chosen: Chosen) -> Result<String, Problem> {
    let problem = |what: String| Problem::new(path, what);
    let unreadable = |error| problem(format!("cannot be read: {error}"));
    let links = match chosen {
        Chosen::Named => Links::Followed,
        Chosen::Found => judge_link(path, ourselves())?,
    };
    let file = open(path, links).map_err(unreadable)?;
    // What was opened is what is judged: the name may have been given to another file meanwhile.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(problem("is not a file".to_owned()));
    }
    check_owner(path, &metadata, chosen)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return Err(problem(format!("has more than {most} bytes, which is the most that is read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        problem(format!("is not text in UTF-8: byte {} is not", error.utf8_error().valid_up_to()))
    })
}

/// What is done if a path is a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    Followed,
    /// It was none when it was looked at.
    #[cfg(unix)]
    Refused,
}

/// Opens a file. A pipe is opened too, without waiting for somebody to write to it.
fn open(path: &Path, links: Links) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, links == Links::Refused);
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = links;
    options.open(path)
}

/// Tells which user we are.
#[cfg(unix)]
fn ourselves() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn ourselves() {}

/// Refuses a link that others have put there: they would choose which of our own files counts.
#[cfg(unix)]
fn judge_link(path: &Path, ourselves: u32) -> Result<Links, Problem> {
    use std::os::unix::fs::MetadataExt as _;
    // What is not there, or cannot be looked at, is told of by whoever opens it.
    let link = std::fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
    let Some(link) = link else { return Ok(Links::Refused) };
    if is_trusted(link.uid(), ourselves, Chosen::Found) {
        return Ok(Links::Followed);
    }
    let what = format!("is a link of another user (id {}), who could start programs with it", link.uid());
    Err(Problem::new(path, what).hint("name the file that it leads to with `--config`, if you mean that"))
}

/// Takes every link: here nothing tells whose it is.
#[cfg(not(unix))]
fn judge_link(_: &Path, (): ()) -> Result<Links, Problem> {
    Ok(Links::Followed)
}

/// Refuses a file that others can write to, since whoever does so starts programs in our name.
#[cfg(unix)]
fn check_owner(path: &Path, metadata: &Metadata, chosen: Chosen) -> Result<(), Problem> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = metadata.mode();
    if mode & 0o022 != 0 {
        let what =
            format!("can be written by others (mode {:03o}), who could start programs with it", mode & 0o777);
        return Err(Problem::new(path, what).hint(format!("run `chmod go-w {}`", shell_word(path))));
    }
    let (owner, ourselves) = (metadata.uid(), ourselves());
    if is_trusted(owner, ourselves, chosen) {
        return Ok(());
    }
    let what = format!("belongs to another user (id {owner}), who could start programs with it");
    Err(Problem::new(path, what).hint(format!("run `chown {ourselves} {}`, or copy it", shell_word(path))))
}

/// Tells whether a file of this owner says what we start.
///
/// Within a container the superuser reads files that are mounted from outside, and cannot change their owner. One that
/// merely lies in the folder was not chosen by anybody, and so is not trusted.
#[cfg(unix)]
fn is_trusted(owner: u32, ourselves: u32, chosen: Chosen) -> bool {
    owner == ourselves || owner == 0 || (ourselves == 0 && chosen == Chosen::Named)
}

/// Writes a path so that a shell takes it for one word.
#[cfg(unix)]
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=+,%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Takes every file: here its mode does not tell who can write to it.
#[cfg(not(unix))]
fn check_owner(_: &Path, _: &Metadata, _: Chosen) -> Result<(), Problem> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_not_trusted_unless_the_superuser_names_them() {
        let table = [
            (1000, 1000, Chosen::Found, true),
            (0, 1000, Chosen::Found, true),
            (1001, 1000, Chosen::Found, false),
            (1001, 1000, Chosen::Named, false),
            (1000, 0, Chosen::Named, true),
            (1000, 0, Chosen::Found, false),
            (0, 0, Chosen::Found, true),
        ];
        for (owner, ourselves, chosen, trusted) in table {
            assert_eq!(is_trusted(owner, ourselves, chosen), trusted, "{owner} {ourselves} {chosen:?}");
        }
    }

    #[test]
    fn a_link_that_was_found_is_trusted_by_its_own_owner_too() {
        let folder = std::env::temp_dir().join(format!("trunkline-link-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("ours"), folder.join("link"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(load(&link, 10, Chosen::Found).unwrap(), "text");
        // The links of the superuser are trusted, who can give this one away. Others cannot, and are compared with somebody else.
        let owner = if ourselves() == 0 { 1001 } else { ourselves() };
        std::os::unix::fs::lchown(&link, Some(owner), None).unwrap();
        let refused = judge_link(&link, owner + 1).unwrap_err().to_string();
        assert!(refused.contains(&format!("is a link of another user (id {owner})")), "{refused}");
        assert_eq!(judge_link(&link, owner).unwrap(), Links::Followed);
        assert_eq!(judge_link(&file, owner + 1).unwrap(), Links::Refused);
        assert!(open(&link, Links::Refused).is_err(), "it has become a link since it was judged");
        assert_eq!(load(&link, 10, Chosen::Found).is_err(), ourselves() == 0);
        assert_eq!(load(&link, 10, Chosen::Named).unwrap(), "text");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let pipe = std::env::temp_dir().join(format!("trunkline-pipe-{}", std::process::id()));
        let _ = std::fs::remove_file(&pipe);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        // Opened without asking before what it is, as if it had been put there meanwhile.
        assert!(!open(&pipe, Links::Refused).unwrap().metadata().unwrap().is_file());
        let refused = load(&pipe, 10, Chosen::Found).unwrap_err().to_string();
        assert!(refused.contains("is not a file"), "{refused}");
        std::fs::remove_file(pipe).unwrap();
    }

    #[test]
    fn a_path_in_advice_can_be_pasted_into_a_shell() {
        for (path, word) in [("/a/b.toml", "/a/b.toml"), ("a b", "'a b'"), ("it's", "'it'\\''s'")] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
