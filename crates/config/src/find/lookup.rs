use std::path::{Path, PathBuf};

use super::client_app::ClientApp;
use super::user_directories::UserDirectories;
use crate::file::ConfigFile;
use crate::limits::MAX_CLIENT_BYTES;
use crate::problem::ConfigError;
use crate::server::ServerConfig;
use crate::suggestion::nearest;
use crate::variables::ConfigVariables;

/// A server that was found by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundServer {
    /// The server.
    pub server: ServerConfig,
    /// The file that has it.
    pub file: PathBuf,
    /// Further files with another server of the same name, which are not used.
    pub other_files: Vec<PathBuf>,
}

/// Why no server was found by a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A file is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No file has it.
    #[error("no server named `{name}` is configured{}", suggestion(name, known))]
    Unknown {
        /// The name.
        name: String,
        /// The names in all files that were read.
        known: Vec<String>,
    },
}

/// Suggests a similar name.
fn suggestion(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => "; no configured servers found".to_owned(),
        None => format!("; known servers: `{}`", known.join("`, `")),
    }
}

/// Finds a server by its name: in the named file, or else in the file of this folder and in those of the user's
/// clients, in this order.
///
/// Variables are those of this process.
///
/// # Errors
/// No file has it, or its definition is invalid.
pub fn look_up(name: &str, file: Option<&Path>) -> Result<FoundServer, LookupError> {
    match file {
        Some(path) => choose(name, &[ConfigFile::open(path, ConfigVariables::from_environment())?]),
        None => {
            let folder = std::env::current_dir().ok();
            choose(name, &default_files(folder.as_deref(), UserDirectories::from_environment().as_ref())?)
        }
    }
}

/// Reads the files in which names are looked up by default; those that come first have precedence.
fn default_files(
    folder: Option<&Path>,
    places: Option<&UserDirectories>,
) -> Result<Vec<ConfigFile>, ConfigError> {
    let mut files = Vec::new();
    if let Some(folder) = folder {
        // A file of this folder that is wrong is probably the one that has the name.
        files.extend(ConfigFile::find(folder, ConfigVariables::from_environment())?);
    }
    let of_clients = places
        .into_iter()
        .flat_map(|places| ClientApp::ALL.into_iter().flat_map(move |client| client.files(places, folder)));
    for (path, chosen) in of_clients {
        // The file belongs to the client; one that cannot be used is ignored.
        let read = ConfigFile::load(&path, ConfigVariables::from_environment(), MAX_CLIENT_BYTES, chosen);
        let Ok(file) = read else { continue };
        files.extend(folder.and_then(|folder| file.for_project(folder)));
        files.push(file);
    }
    Ok(files)
}

fn choose(name: &str, files: &[ConfigFile]) -> Result<FoundServer, LookupError> {
    let mut with_name = files.iter().filter(|file| file.server_names().contains(&name));
    match with_name.next() {
        Some(file) => {
            let server = file.server(name)?;
            // Within one file, the client itself has an order.
            let is_other = |other: &&ConfigFile| {
                other.path() != file.path()
                    && !other.server(name).is_ok_and(|other| other.same_definition(&server))
            };
            let mut other_files: Vec<PathBuf> =
                with_name.filter(is_other).map(|file| file.path().to_owned()).collect();
            other_files.dedup();
            Ok(FoundServer { server, file: file.path().to_owned(), other_files })
        }
        None => {
            let mut known: Vec<String> = Vec::new();
            for name in files.iter().flat_map(ConfigFile::server_names) {
                if !known.iter().any(|known| known == name) {
                    known.push(name.to_owned());
                }
            }
            Err(LookupError::Unknown { name: name.to_owned(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ConfigFile {
        ConfigFile::parse("mcp.json", text, ConfigVariables::fixed([("", ""); 0])).unwrap()
    }

    #[test]
    fn lookup_of_an_unknown_name_lists_known_names() {
        let one = file(r#"{"mcpServers":{"github":{"command":"x"},"files":{"command":"y"}}}"#);
        for (name, files, expected) in [
            ("githab", vec![one.clone()], "`githab` is configured; did you mean `github`?"),
            ("zzz", vec![one], "`zzz` is configured; known servers: `github`, `files`"),
            ("zzz", vec![], "`zzz` is configured; no configured servers found"),
        ] {
            let error = choose(name, &files).unwrap_err().to_string();
            assert_eq!(error, format!("no server named {expected}"));
        }
    }

    #[test]
    fn lookup_uses_the_first_file_with_the_name() {
        let first = file(r#"{"mcpServers":{"a":{"command":"first"}}}"#);
        let second = r#"{"mcpServers":{"a":{"command":"second"},"b":{"url":"ftp://x"}}}"#;
        let second = ConfigFile::parse("other.json", second, ConfigVariables::fixed([("", ""); 0])).unwrap();
        let found = choose("a", &[first.clone(), second.clone()]).unwrap();
        assert!(format!("{:?}", found.server.location).contains("first"));
        assert_eq!(found.other_files, [Path::new("other.json")]);
        // The same server in two files is no choice.
        let same = r#"{"mcpServers":{"a":{"command":"first"}}}"#;
        let same = ConfigFile::parse("same.json", same, ConfigVariables::fixed([("", ""); 0])).unwrap();
        assert!(choose("a", &[first.clone(), same]).unwrap().other_files.is_empty());
        let wrong = choose("b", &[first, second]).unwrap_err();
        assert!(matches!(wrong, LookupError::Config(_)), "{wrong}");
    }
}
