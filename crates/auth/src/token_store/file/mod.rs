//! A file that keeps tokens and registrations for several processes.
//!
//! Every write replaces the whole file: a temporary file is written, synced and renamed, so that a process that ends at any
//! point leaves the old content or the new one. Writers exclude each other by an advisory lock, and read the file again
//! under it.

mod content;
mod envelope;
mod error;
mod key;
#[cfg(feature = "keychain")]
mod keychain;
mod locks;
mod replace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::content::StoredContent;
pub use self::envelope::MAX_STORE_BYTES;
pub use self::error::TokenFileError;
pub use self::key::{StoreKey, StoreKeyError, StoreProtection};
use self::locks::StoreLocks;
use super::entries::TokenEntries;
use super::{StoreFuture, StoredTokens, TokenGeneration, TokenKey, TokenLock, TokenStore, TokenStoreError};
use crate::registration::ClientRegistration;
use crate::token_set::TokenSet;

/// A store in one file, which several processes may use at once.
///
/// The file has mode 0600, and its folder is created with mode 0700. With a [`StoreKey`] it is sealed
/// (XChaCha20-Poly1305). A file that cannot be read is never overwritten.
///
/// ```
/// use trunkline_auth::token_store::{FileTokenStore, StoreKey};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("state/tokens.json");
/// let store = FileTokenStore::open(path, StoreKey::plain())?;
/// assert_eq!(store.protection().to_string(), "plain file, mode 0600");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileTokenStore {
    file: Arc<StoreFile>,
}

#[derive(Debug)]
struct StoreFile {
    path: PathBuf,
    folder: PathBuf,
    key: StoreKey,
    locks: StoreLocks,
}

impl FileTokenStore {
    /// Opens a store. A file that does not exist is an empty store; it is created by the first write, with its folder.
    ///
    /// # Errors
    /// The file or its folder is accessible to other users, the file is not a token store, is damaged or sealed with another
    /// key, or the key is in the folder of the file, where it would protect nothing.
    pub fn open(path: impl Into<PathBuf>, key: StoreKey) -> Result<Self, TokenFileError> {
        let path = std::path::absolute(path.into()).map_err(TokenFileError::at(Path::new("")))?;
        // The target of a symbolic link is replaced, and not the link.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let folder = path.parent().ok_or_else(|| TokenFileError::NoFolder(path.clone()))?.to_owned();
        let locks = StoreLocks::new(&path);
        let file = StoreFile { path, folder, key, locks };
        if file.folder.exists() {
            file.check_folder()?;
        }
        file.read()?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Returns how the file is protected.
    pub fn protection(&self) -> &StoreProtection {
        self.file.key.protection()
    }

    /// Reads the file on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&TokenEntries) -> T + Send + 'static,
    ) -> Result<T, TokenStoreError> {
        self.blocking(move |file| Ok(read(&file.read()?))).await
    }

    /// Changes the content on a thread that may block. The change is completed even if the future is dropped.
    async fn update<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut TokenEntries) -> Result<T, TokenStoreError> + Send + 'static,
    ) -> Result<T, TokenStoreError> {
        self.blocking(move |file| file.update(change)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StoreFile) -> Result<T, TokenStoreError> + Send + 'static,
    ) -> Result<T, TokenStoreError> {
        let file = self.file.clone();
        let done = tokio::task::spawn_blocking(move || work(&file)).await;
        done.unwrap_or_else(|error| Err(TokenStoreError::Unavailable(error.into())))
    }
}

impl StoreFile {
    /// Creates the folders of the file and of its locks.
    fn create_folders(&self) -> Result<(), TokenFileError> {
        for folder in [&*self.folder, self.locks.folder()] {
            replace::create_private_folder(folder).map_err(TokenFileError::at(folder))?;
        }
        self.check_folder()
    }

    fn check_folder(&self) -> Result<(), TokenFileError> {
        if replace::is_writable_by_others(&self.folder).map_err(TokenFileError::at(&self.folder))? {
            return Err(TokenFileError::FolderExposed(self.folder.clone()));
        }
        self.key.check_apart_from(&self.folder)
    }

    fn read(&self) -> Result<TokenEntries, TokenFileError> {
        match envelope::read(&self.path, &self.key)? {
            Some(content) => StoredContent::parse(&content)
                .map_err(|reason| TokenFileError::Damaged { path: self.path.clone(), reason }),
            None => StoredContent::new_entries().map_err(TokenFileError::at(&self.path)),
        }
    }

    /// Reads, changes and writes the content while no other process does.
    fn update<T>(
        &self,
        change: impl FnOnce(&mut TokenEntries) -> Result<T, TokenStoreError>,
    ) -> Result<T, TokenStoreError> {
        self.create_folders()?;
        let _lock = self.locks.for_writing().map_err(TokenFileError::at(&self.path))?;
        let mut entries = self.read()?;
        let changed = change(&mut entries)?;
        let content =
            StoredContent::to_bytes(&entries).map_err(|error| TokenStoreError::Unavailable(error.into()))?;
        let bytes = envelope::seal(&self.path, &self.key, &content)?;
        replace::replace(&self.path, &bytes).map_err(TokenFileError::at(&self.path))?;
        Ok(changed)
    }
}

impl TokenStore for FileTokenStore {
    fn lock<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, TokenLock> {
        Box::pin(async move {
            self.blocking(|file| Ok(file.create_folders()?)).await?;
            let lock = self.file.locks.for_refresh(key).await.map_err(TokenFileError::at(&self.file.path))?;
            Ok(Box::new(lock) as TokenLock)
        })
    }

    fn load<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, Option<StoredTokens>> {
        let key = key.clone();
        Box::pin(self.read(move |entries| entries.tokens.get(&key).cloned()))
    }

    fn save<'a>(
        &'a self,
        key: &'a TokenKey,
        tokens: &'a TokenSet,
        replaced: TokenGeneration,
    ) -> StoreFuture<'a, TokenGeneration> {
        let (key, tokens) = (key.clone(), tokens.clone());
        Box::pin(self.update(move |entries| entries.save(&key, &tokens, replaced)))
    }

    fn remove<'a>(&'a self, key: &'a TokenKey, generation: TokenGeneration) -> StoreFuture<'a, ()> {
        let key = key.clone();
        Box::pin(self.update(move |entries| entries.remove(&key, generation)))
    }

    fn list<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, Vec<TokenKey>> {
        let principal = principal.to_owned();
        Box::pin(self.read(move |entries| entries.keys(Some(&principal))))
    }

    fn list_all(&self) -> StoreFuture<'_, Vec<TokenKey>> {
        Box::pin(self.read(|entries| entries.keys(None)))
    }

    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>> {
        Box::pin(self.read(|entries| entries.clients.clone()))
    }

    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()> {
        let client = client.clone();
        Box::pin(self.update(move |entries| entries.save_client(&client)))
    }

    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()> {
        let (issuer, client_id) = (issuer.to_owned(), client_id.to_owned());
        Box::pin(self.update(move |entries| {
            entries.remove_client(&issuer, &client_id);
            Ok(())
        }))
    }
}

#[cfg(test)]
pub(super) mod tests;
