use std::path::PathBuf;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileStoreError {
    /// Another process has the file open.
    #[error("the store {0} is in use by another process; stop that process, or use another file")]
    Locked(PathBuf),
    /// The file is sealed with a key that was not given.
    #[error(
        "the store {0} is sealed with another state key; give the key that it was written with as well, or move the \
         file away to begin with an empty store"
    )]
    WrongKey(PathBuf),
    /// A newer build wrote the file.
    #[error(
        "the store {path} was written by a newer version of trunkline ({detail}); use that version, or another file"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// What this build cannot read.
        detail: String,
    },
    /// The file is not a store, or is damaged.
    #[error("{path} is not a store, or is damaged: {cause}; restore it from a backup, or move it away")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        cause: String,
    },
    /// The file cannot be opened, read or written.
    #[error("the store {path} cannot be opened: {cause}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
}

/// An error of the database, as text: the database's own type is large, and no part of this crate's interface.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DatabaseFailure(pub(crate) String);

macro_rules! from_database_errors {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for DatabaseFailure {
            fn from(error: redb::$error) -> Self {
                Self(error.to_string())
            }
        })*
    };
}

from_database_errors!(DatabaseError, TransactionError, TableError, StorageError, CommitError);
