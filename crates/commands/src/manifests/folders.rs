use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::rule::ManifestRule;

/// The folders that manifests are read from, opened once, so that a later change of a path cannot redirect a read.
#[derive(Debug)]
pub(super) struct ManifestFolders {
    open: Vec<(PathBuf, Dir)>,
    max_bytes: u64,
}

impl ManifestFolders {
    pub(super) fn open(rule: &ManifestRule) -> Self {
        let folders = std::iter::once(&rule.directory).chain(&rule.parent_folders);
        let open = folders.filter_map(|path| {
            let folder = Dir::open_ambient_dir(path, ambient_authority()).ok()?;
            Some((path.clone(), folder))
        });
        Self { open: open.collect(), max_bytes: rule.limits.bytes }
    }

    /// Reads a manifest, one path component at a time, without following symbolic links.
    ///
    /// # Errors
    /// The file is missing, is not a regular file any more, or is too large.
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let outside = || io::Error::new(io::ErrorKind::NotFound, "the file is not one of the manifests");
        // The nearest folder comes first, so that a parent folder is only used for its direct files.
        let found = self.open.iter().find_map(|(base, open)| Some((open, path.strip_prefix(base).ok()?)));
        let (base, below) = found.ok_or_else(outside)?;
        let parts: Option<Vec<_>> = below
            .components()
            .map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let parts = parts.ok_or_else(outside)?;
        let (name, folders) = parts.split_last().ok_or_else(outside)?;
        let mut folder = base.try_clone()?;
        for step in folders {
            folder = folder.open_dir_nofollow(step)?;
        }
        // Non-blocking, since opening a pipe without a writer would block.
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = folder.open_with(name, &options)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("the manifest is no longer a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(self.max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.max_bytes {
            return Err(io::Error::other(format!("the manifest is larger than {} bytes", self.max_bytes)));
        }
        Ok(bytes)
    }
}
