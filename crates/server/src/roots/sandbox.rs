use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use trunkline_protocol::model::Root;

use super::root_path;
use crate::call::{AskError, Context};

/// Reads files for tools, and nothing outside of what the operator allows and the client works in.
///
/// Every path is walked from an open directory, step by step, so that neither `..` nor a symbolic link leads out of it, nor
/// anything that changes between a check and its use.
#[derive(Clone, Debug)]
pub struct Sandbox {
    allowed: Option<Vec<PathBuf>>,
    most_bytes: u64,
}

/// Why a sandbox did not give a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The client's roots cannot be had.
    #[error(transparent)]
    Roots(#[from] AskError),
    /// The path leads out of what may be read.
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
    /// Allows whatever the client works in. A client chooses its roots, so this holds back mistakes rather than clients.
    pub fn of_roots() -> Self {
        Self { allowed: None, most_bytes: 1 << 20 }
    }

    /// Allows what the client works in, as far as it lies within these directories.
    pub fn within<P: Into<PathBuf>>(directories: impl IntoIterator<Item = P>) -> Self {
        Self { allowed: Some(directories.into_iter().map(Into::into).collect()), ..Self::of_roots() }
    }

    /// Sets the largest file that is read; 1 MiB unless set.
    #[must_use]
    pub fn most_bytes(mut self, bytes: u64) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Reads a file. A relative path is taken from the primary root.
    ///
    /// # Errors
    /// [`SandboxError`]: the path leads outside, or the file cannot be read.
    pub async fn read(&self, cx: &Context, path: impl AsRef<Path>) -> Result<Vec<u8>, SandboxError> {
        let (roots, sandbox, path) = (cx.roots().await?, self.clone(), path.as_ref().to_owned());
        let read = tokio::task::spawn_blocking(move || sandbox.read_now(&roots, &path)).await;
        read.unwrap_or_else(|error| Err(io::Error::other(error).into()))
    }

    fn read_now(&self, roots: &[Root], path: &Path) -> Result<Vec<u8>, SandboxError> {
        let roots: Vec<PathBuf> = roots.iter().filter_map(root_path).collect();
        let absolute = match roots.first() {
            Some(primary) => primary.join(path),
            None => return Err(SandboxError::Outside),
        };
        for root in roots {
            let Some(below) = below(&root, &absolute) else { continue };
            let directory = self.open(&root)?;
            // Opening a pipe that nobody writes to would wait for ever.
            if !directory.metadata(&below).map_err(escape)?.is_file() {
                return Err(SandboxError::Unreadable(io::Error::other("it is not a regular file")));
            }
            let file = directory.open(below).map_err(escape)?;
            let mut bytes = Vec::new();
            let read = file.take(self.most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
            if read as u64 > self.most_bytes {
                return Err(SandboxError::TooLarge(self.most_bytes));
            }
            return Ok(bytes);
        }
        Err(SandboxError::Outside)
    }

    /// Opens a root, by way of the allowed directory that it lies in.
    fn open(&self, root: &Path) -> Result<Dir, SandboxError> {
        let Some(allowed) = &self.allowed else {
            return Ok(Dir::open_ambient_dir(root, ambient_authority())?);
        };
        let found = allowed.iter().find_map(|allowed| Some((allowed, below(allowed, root)?)));
        let (allowed, below) = found.ok_or(SandboxError::Outside)?;
        let allowed = Dir::open_ambient_dir(allowed, ambient_authority())?;
        if below.as_os_str().is_empty() { Ok(allowed) } else { allowed.open_dir(below).map_err(escape) }
    }
}

/// Returns what follows a directory in a path, as it is written; what the way there means is for the walk to find out.
fn below(directory: &Path, path: &Path) -> Option<PathBuf> {
    let plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let below = path.strip_prefix(directory).ok()?;
    plain(directory).then(|| below.to_owned())
}

/// Tells a path that leads out of its directory from one that cannot be read.
fn escape(error: io::Error) -> SandboxError {
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
    use crate::testing::Folder;

    #[test]
    fn a_sandbox_reads_only_below_what_is_allowed() {
        let folder = Folder::new("sandbox");
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
        let open = Sandbox::of_roots().most_bytes(8);
        let within = Sandbox::within([base.join("w")]).most_bytes(8);
        let elsewhere = Sandbox::within([base.join("other")]);
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
            (&within, &[], "w/p1/file", OUTSIDE),
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
    }

    const OUTSIDE: &str = "the path is outside of what may be read";
}
