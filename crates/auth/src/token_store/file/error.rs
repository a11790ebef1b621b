use std::io;
use std::path::{Path, PathBuf};

use super::super::TokenStoreError;

/// Why a file cannot serve as a token store. It contains nothing of the content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file or its folder cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The path has no folder.
    #[error("{0} is not a path of a file")]
    NoFolder(PathBuf),
    /// Other users can read or write the file.
    #[error("{0} is accessible to other users; run `chmod 600` on it, and log in again if others had access")]
    Exposed(PathBuf),
    /// Other users can replace files in the folder.
    #[error("other users can write to the folder {0} of the token store; run `chmod go-w` on it")]
    FolderExposed(PathBuf),
    /// The file is something else. The error of the parser is not kept, as in [`Self::Damaged`].
    #[error("{0} is not a token store of trunkline; it was not changed")]
    Foreign(PathBuf),
    /// The file was written by a newer version.
    #[error(
        "{path} has version {version} of the format, which this program does not know; it was not changed"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that it has.
        version: u64,
    },
    /// The content is damaged. The error of the parser is not kept, since it may quote a token.
    #[error(
        "the token store {path} is damaged ({reason}); it was not changed; move it away and log in again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is sealed, and the given key does not open it.
    #[error("the token store {0} is sealed with another key")]
    OtherKey(PathBuf),
    /// The file is sealed, and no key was given.
    #[error("the token store {0} is sealed, and no key was given")]
    KeyMissing(PathBuf),
    /// The file is not sealed, and a key was given.
    #[error("the token store {0} is not sealed although a key was given; move it away and log in again")]
    NotSealed(PathBuf),
    /// The file is larger than a store may be.
    #[error("the token store {0} is too large")]
    TooLarge(PathBuf),
    /// The key is in the folder of the store.
    #[error("the key {0} is in the folder of the token store, where it protects nothing; move it elsewhere")]
    KeyBesideStore(PathBuf),
    /// The system has no random numbers.
    #[error("the system has no random numbers to seal the token store with")]
    NoRandomness,
}

impl TokenFileError {
    /// Makes an error of a failure at a path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

impl From<TokenFileError> for TokenStoreError {
    fn from(error: TokenFileError) -> Self {
        match error {
            TokenFileError::TooLarge(_) => Self::Full,
            error => Self::Unavailable(error.into()),
        }
    }
}
