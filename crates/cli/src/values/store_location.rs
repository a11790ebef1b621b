use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::RedisUrl;

/// Where sessions are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// In memory, where they end with the process.
    Memory,
    /// In a file, where they survive a restart.
    File(PathBuf),
    /// In Redis, where several processes share them.
    Redis(RedisUrl),
}

impl StoreLocation {
    /// Checks what can be checked without opening the store.
    ///
    /// # Errors
    /// Returns a message for the user.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Memory | Self::File(_) => Ok(()),
            Self::Redis(url) => url.address(|name| std::env::var(name).ok()).map(drop),
        }
    }

    /// Counts a relative path from this folder.
    pub(crate) fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Memory => Self::Memory,
            Self::File(path) => Self::File(folder.join(path)),
            Self::Redis(url) => Self::Redis(url.relative_to(folder)),
        }
    }
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(path) if !path.is_empty() => Ok(Self::File(path.into())),
            None if text == "memory" => Ok(Self::Memory),
            _ => RedisUrl::new(text)
                .map(Self::Redis)
                .ok_or_else(|| "expected memory, file:PATH or a redis:// URL".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_location_is_memory_a_file_or_redis() {
        let file = |path: &str| Ok(StoreLocation::File(path.into()));
        for (text, expected) in [
            ("memory", Ok(StoreLocation::Memory)),
            ("file:sessions.redb", file("sessions.redb")),
            ("file:/var/lib/a b", file("/var/lib/a b")),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["", "file:", "file", "sessions.redb", "Memory", "redis:localhost", "http://localhost"] {
            assert!(text.parse::<StoreLocation>().is_err(), "{text}");
        }
        let redis = RedisUrl::new("rediss://h").map(StoreLocation::Redis).unwrap();
        assert_eq!("rediss://h".parse(), Ok(redis));
        let folder = Path::new("/etc/hub");
        let relative = StoreLocation::File("a.redb".into()).relative_to(folder);
        assert_eq!(relative, StoreLocation::File("/etc/hub/a.redb".into()));
        let absolute = StoreLocation::File("/a.redb".into()).relative_to(folder);
        assert_eq!(absolute, StoreLocation::File("/a.redb".into()));
    }
}
