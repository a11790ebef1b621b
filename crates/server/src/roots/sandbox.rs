use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use trunkline_protocol::model::Root;

use super::root_path;
use crate::call::{AskError, Context};

/// Reads files for tools, and nothing outside of what the operator allows and the client works in.
///
/// The client chooses its roots, so they are no permission: [`Sandbox::within`] is for servers that read files.
///
/// ```
/// # use trunkline_server::{Context, Sandbox, SandboxError};
/// async fn read(cx: Context, path: String) -> Result<Vec<u8>, SandboxError> {
///     Sandbox::within(["/srv/notes"]).read(&cx, path).await
/// }
/// ```
///
/// Every path is walked from an open directory, step by step, so that neither `..` nor a symbolic link leads out of
/// it, nor any change between a check and its use.
#[derive(Clone, Debug)]
pub struct Sandbox {
    allowed: Option<Vec<PathBuf>>,
    max_bytes: u64,
}

/// Why a sandbox did not give a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The client's roots are unavailable.
    #[error(transparent)]
    Roots(#[from] AskError),
    /// The path leads outside of what may be read.
    #[error("the path is outside of what may be read")]
    Outside,
    /// The file is larger than may be read at once.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl Sandbox {
    /// Allows everything that the client works in. A client chooses its roots, so this prevents mistakes rather than
    /// attacks.
    pub fn of_roots() -> Self {
        Self { allowed: None, max_bytes: 1 << 20 }
    }

    /// Allows these directories, as far as the client works in them: a client with roots reads below its roots alone,
    /// and one without reads everything below the directories.
    pub fn within<P: Into<PathBuf>>(directories: impl IntoIterator<Item = P>) -> Self {
        Self { allowed: Some(directories.into_iter().map(Into::into).collect()), ..Self::of_roots() }
    }

    /// Sets the largest file that is read; 1 MiB unless set.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Reads a file. A relative path is taken from the primary root, or from the first allowed directory for a client
    /// without roots.
    ///
    /// # Errors
    /// [`SandboxError`]: the path leads outside, or the file cannot be read.
    pub async fn read(&self, cx: &Context, path: impl AsRef<Path>) -> Result<Vec<u8>, SandboxError> {
        let roots = match cx.roots().await {
            Err(AskError::Unsupported { .. }) if self.allowed.is_some() => Vec::new(),
            roots => roots?,
        };
        let (sandbox, path) = (self.clone(), path.as_ref().to_owned());
        let read = tokio::task::spawn_blocking(move || sandbox.read_now(&roots, &path)).await;
        read.unwrap_or_else(|error| Err(io::Error::other(error).into()))
    }

    fn read_now(&self, roots: &[Root], path: &Path) -> Result<Vec<u8>, SandboxError> {
        let roots: Vec<PathBuf> = match &self.allowed {
            Some(allowed) if roots.is_empty() => allowed.clone(),
            _ => roots.iter().filter_map(root_path).collect(),
        };
        let absolute = match roots.first() {
            Some(primary) => primary.join(path),
            None => return Err(SandboxError::Outside),
        };
        // Where one candidate fails, another may succeed: roots can be nested, and so can allowed directories.
        let mut failure = SandboxError::Outside;
        for candidate in roots.iter().flat_map(|root| self.candidate_paths(root, &absolute)) {
            match candidate.read(self.max_bytes) {
                Err(error) if matches!(failure, SandboxError::Outside) => failure = error,
                Err(_) => {}
                read => return read,
            }
        }
        Err(failure)
    }

    /// Returns the candidate paths through a root: each lies in the root and in one of the allowed directories.
    fn candidate_paths(&self, root: &Path, path: &Path) -> Vec<SandboxPath> {
        let Some(allowed) = &self.allowed else {
            return SandboxPath::through(root, root, path).into_iter().collect();
        };
        let through = |allowed: &PathBuf| match strip_directory(allowed, root) {
            Some(_) => SandboxPath::through(allowed, root, path),
            None => SandboxPath::through(root, allowed, path),
        };
        allowed.iter().filter_map(through).collect()
    }
}

/// A candidate path: a directory, one that lies in it, and the rest of the path.
struct SandboxPath {
    outer: PathBuf,
    inner: PathBuf,
    rest: PathBuf,
}

impl SandboxPath {
    fn through(outer: &Path, inner: &Path, path: &Path) -> Option<Self> {
        Some(Self {
            outer: outer.to_owned(),
            inner: strip_directory(outer, inner)?,
            rest: strip_directory(inner, path)?,
        })
    }

    fn read(&self, most_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        let outer = Dir::open_ambient_dir(&self.outer, ambient_authority())?;
        let inner = match self.inner.as_os_str().is_empty() {
            true => outer,
            false => outer.open_dir(&self.inner).map_err(escape_error)?,
        };
        let file = inner.open_with(&self.rest, &read_options()).map_err(escape_error)?;
        if !file.metadata()?.is_file() {
            return Err(SandboxError::Unreadable(io::Error::other("it is not a regular file")));
        }
        let mut bytes = Vec::new();
        let read = file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if read as u64 > most_bytes { Err(SandboxError::TooLarge(most_bytes)) } else { Ok(bytes) }
    }
}

/// Returns the options for opening files: non-blocking, since opening a pipe without a writer would block for ever.
/// The file type is checked after opening, since it could change between a check and the opening.
fn read_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

/// Returns the rest of a path after a directory, as written; links on the way are resolved by the walk.
fn strip_directory(directory: &Path, path: &Path) -> Option<PathBuf> {
    let plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let below = path.strip_prefix(directory).ok()?;
    plain(directory).then(|| below.to_owned())
}

/// Distinguishes a path that leads out of its directory from one that cannot be read.
fn escape_error(error: io::Error) -> SandboxError {
    match error.kind() {
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => SandboxError::Outside,
        _ => SandboxError::Unreadable(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::TestFolder;

    #[test]
    fn sandbox_reads_only_inside_allowed_directories() {
        let folder = TestFolder::new("sandbox");
        let base = folder.path();
        for made in ["w/p1/sub", "w/p2", "outside"] {
            fs::create_dir_all(base.join(made)).unwrap();
        }
        fs::write(base.join("w/p1/file"), "one").unwrap();
        fs::write(base.join("w/p1/large"), "0123456789").unwrap();
        fs::write(base.join("w/p2/file"), "two").unwrap();
        fs::write(base.join("outside/file"), "secret").unwrap();
        symlink(base.join("outside"), base.join("w/p1/out")).unwrap();
        symlink("../p2", base.join("w/p1/sideways")).unwrap();
        symlink("file", base.join("w/p1/link")).unwrap();
        symlink(base.join("outside"), base.join("w/elsewhere")).unwrap();
        let root = |path: &str| Root { uri: format!("file://{}/{path}", base.display()), ..Root::default() };
        let open = Sandbox::of_roots().max_bytes(8);
        let within = Sandbox::within([base.join("w")]).max_bytes(8);
        let elsewhere = Sandbox::within([base.join("other")]);
        let inner = Sandbox::within([base.join("other"), base.join("w/p1")]).max_bytes(8);
        let linked = Sandbox::within([base.join("w/elsewhere")]);
        for (sandbox, roots, path, expected) in [
            (&open, &["w/p1"][..], "w/p1/file", "one"),
            (&within, &["w/p1"], "w/p1/file", "one"),
            (&within, &["w/p1", "w/p2"], "w/p2/file", "two"),
            (&within, &["w/p1"], "w/p1/link", "one"),
            (&within, &["w/p1"], "w/p1/sub/../file", "one"),
            (&within, &["w/p1"], "w/p1/large", "the file is larger than 8 bytes"),
            (&within, &["w/p1"], "w/p2/file", OUTSIDE),
            (&within, &["w/p1"], "w/p1/../p2/file", OUTSIDE),
            (&within, &["w/p1"], "w/p1/out/file", OUTSIDE),
            (&within, &["w/p1"], "w/p1/sideways/file", OUTSIDE),
            (&open, &["w/p1"], "w/p1/out/file", OUTSIDE),
            (&within, &["outside"], "outside/file", OUTSIDE),
            (&within, &["w/elsewhere"], "w/elsewhere/file", OUTSIDE),
            (&within, &["w/../outside"], "w/../outside/file", OUTSIDE),
            (&elsewhere, &["w/p1"], "w/p1/file", OUTSIDE),
            (&within, &[], "w/p1/file", "one"),
            (&within, &[], "outside/file", OUTSIDE),
            (&within, &[], "w/p1/out/file", OUTSIDE),
            (&inner, &[], "w/p1/file", "one"),
            (&inner, &[], "w/p2/file", OUTSIDE),
            (&open, &[], "w/p1/file", OUTSIDE),
            (&inner, &["w"], "w/p1/file", "one"),
            (&inner, &["w"], "w/p2/file", OUTSIDE),
            (&inner, &["w"], "w/p1/sideways/file", OUTSIDE),
            (&inner, &["w", "w/p1"], "w/p1/file", "one"),
            (&inner, &["w/p2", "w", "w/p1"], "w/p1/link", "one"),
            (&inner, &["w"], "w/p1/large", "the file is larger than 8 bytes"),
            (&inner, &["w/p1", "w/p2"], "w/p2/file", OUTSIDE),
            (&linked, &["w"], "w/elsewhere/file", OUTSIDE),
            (&open, &["w/p1", "w"], "w/p1/sideways/file", "two"),
        ] {
            let roots: Vec<Root> = roots.iter().map(|path| root(path)).collect();
            let read = match sandbox.read_now(&roots, &base.join(path)) {
                Ok(bytes) => String::from_utf8(bytes).unwrap(),
                Err(error) => error.to_string(),
            };
            assert_eq!(read, expected, "{path} of {roots:?}");
        }
        let missing = within.read_now(&[root("w/p1")], &base.join("w/p1/none")).unwrap_err();
        assert!(matches!(missing, SandboxError::Unreadable(_)), "{missing}");
        assert_eq!(within.read_now(&[root("w/p1")], Path::new("sub/../file")).unwrap(), b"one");
        assert_eq!(within.read_now(&[], Path::new("p1/file")).unwrap(), b"one");
        let no_file = Root { uri: "https://example.com".to_owned(), ..Root::default() };
        let outside = within.read_now(&[no_file], &base.join("w/p1/file")).unwrap_err();
        assert!(matches!(outside, SandboxError::Outside), "{outside}");
    }

    #[test]
    fn sandbox_does_not_block_on_a_pipe_without_a_writer() {
        let folder = TestFolder::new("sandbox-pipe");
        let (pipe, mode) = (folder.path().join("pipe"), rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let candidate =
            SandboxPath::through(folder.path(), folder.path(), &folder.path().join("pipe")).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(candidate.read(8)));
        let read = receiver.recv_timeout(std::time::Duration::from_secs(60)).expect("an answer");
        assert!(matches!(read, Err(SandboxError::Unreadable(_))));
    }

    const OUTSIDE: &str = "the path is outside of what may be read";
}
