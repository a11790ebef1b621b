use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where sessions are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// In memory, where they end with the process.
    Memory,
    /// In a file, where they survive a restart.
    File(PathBuf),
}

impl StoreLocation {
    /// Counts a relative path from this folder.
    pub(crate) fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Memory => Self::Memory,
            Self::File(path) => Self::File(folder.join(path)),
        }
    }
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(path) if !path.is_empty() => Ok(Self::File(path.into())),
            None if text == "memory" => Ok(Self::Memory),
            _ => Err("expected memory or file:PATH".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_location_is_memory_or_a_file() {
        let file = |path: &str| Ok(StoreLocation::File(path.into()));
        for (text, expected) in [
            ("memory", Ok(StoreLocation::Memory)),
            ("file:sessions.redb", file("sessions.redb")),
            ("file:/var/lib/a b", file("/var/lib/a b")),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["", "file:", "file", "sessions.redb", "Memory", "redis://localhost"] {
            assert!(text.parse::<StoreLocation>().is_err(), "{text}");
        }
        let folder = Path::new("/etc/hub");
        let relative = StoreLocation::File("a.redb".into()).relative_to(folder);
        assert_eq!(relative, StoreLocation::File("/etc/hub/a.redb".into()));
        let absolute = StoreLocation::File("/a.redb".into()).relative_to(folder);
        assert_eq!(absolute, StoreLocation::File("/a.redb".into()));
    }
}
