use std::path::Path;

use trunkline_config::find::{Places, imports};
use trunkline_config::{ConfigFile, ServerConfig, Variables};

use crate::exit::Failure;
use crate::misconfigured::misconfigured;
use crate::schema::did_you_mean;

/// A server that was found by its name, and the file that has it.
pub(super) struct Found {
    pub(super) server: ServerConfig,
    pub(super) file: String,
}

/// Finds a server by its name: in the file that was named, or else in the one of this folder and in those of the clients
/// that the person uses.
///
/// # Errors
/// No file has it, or what the file says of it makes no sense.
pub(super) fn look_up(name: &str, file: Option<&Path>) -> Result<Found, Failure> {
    let files = match file {
        Some(path) => {
            vec![ConfigFile::open(path, Variables::of_process()).map_err(|error| misconfigured(&error))?]
        }
        None => usual_files()?,
    };
    match files.iter().find(|file| file.names().contains(&name)) {
        Some(file) => {
            let server = file.server(name).map_err(|error| misconfigured(&error))?;
            Ok(Found { server, file: file.path().display().to_string() })
        }
        None => Err(unknown(name, &files)),
    }
}

/// Reads the files in which names are looked up by default, those that come first have precedence.
fn usual_files() -> Result<Vec<ConfigFile>, Failure> {
    let folder = std::env::current_dir().ok();
    let mut files = Vec::new();
    if let Some(folder) = &folder {
        // A file of this folder that is wrong is probably the one that has the name.
        let here =
            ConfigFile::find(folder, Variables::of_process()).map_err(|error| misconfigured(&error))?;
        files.extend(here);
    }
    let Some(places) = Places::of_process() else { return Ok(files) };
    for import in imports(&places, folder.as_deref()) {
        // What a client keeps is its own business; a file that cannot be used is as good as none.
        let Ok(file) = ConfigFile::open(&import.path, Variables::of_process()) else { continue };
        files.extend(folder.as_deref().and_then(|folder| file.of_project(folder)));
        files.push(file);
    }
    Ok(files)
}

fn unknown(name: &str, files: &[ConfigFile]) -> Failure {
    let failure = Failure::configuration(format!("no server is configured by the name `{name}`"));
    let names: Vec<_> = files.iter().flat_map(ConfigFile::names).collect();
    if let Some(suggestion) = did_you_mean(name, names.iter().copied()) {
        return failure.hint(suggestion);
    }
    let known = if names.is_empty() {
        "no file with servers was found here".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    failure.hint(format!("{known}; `-- {name}` starts the program of that name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ConfigFile {
        ConfigFile::parse("mcp.json", text, Variables::given([("", ""); 0])).unwrap()
    }

    #[test]
    fn a_name_that_is_nowhere_is_told_with_those_that_are() {
        let one = file(r#"{"mcpServers":{"github":{"command":"x"},"files":{"command":"y"}}}"#);
        for (name, files, part) in [
            ("githab", vec![one.clone()], "did you mean `github`?"),
            ("zzz", vec![one], "there are github, files; `-- zzz` starts"),
            ("zzz", vec![], "no file with servers was found here"),
        ] {
            let failure = unknown(name, &files).to_string();
            assert!(failure.contains(part), "{failure}");
        }
    }
}
