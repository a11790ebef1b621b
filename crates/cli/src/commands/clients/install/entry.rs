use std::path::{Path, PathBuf};

use trunkline_config::find::Client;
use trunkline_config::{Endpoint, Program, Reach, ServerConfig, ServerName, Text, Wire};

use super::InstallArgs;
use crate::exit::{Exit, Failure};

/// Describes the hub as a server of a client.
pub(super) fn hub(
    args: &InstallArgs,
    name: &ServerName,
    client_file: &Path,
) -> Result<ServerConfig, Failure> {
    let reach = match &args.http {
        Some(url) if takes_addresses(args.client) && !url.scheme().is_websocket() => {
            Reach::Endpoint(Endpoint { wire: Wire::Http, ..Endpoint::new(&*url.whole()) })
        }
        // What a client cannot speak itself, it speaks through the bridge.
        Some(url) => program(&["bridge", &url.whole()])?,
        None => {
            let config = args.file.path()?;
            let config = std::path::absolute(&config).unwrap_or(config);
            if std::fs::canonicalize(&config).ok() == std::fs::canonicalize(client_file).ok() {
                return Err(Failure::configuration(format!(
                    "{} is the client's own file, and the hub would serve itself",
                    config.display()
                ))
                .hint("`trunkline import --all` makes a trunkline.toml of it"));
            }
            let config = config.to_str().ok_or_else(|| {
                Failure::configuration(format!("the path {} is not text in UTF-8", config.display()))
            })?;
            program(&["serve", "--stdio", "--config", config])?
        }
    };
    Ok(ServerConfig::new(name.clone(), reach))
}

/// Reports whether the file of a client can have addresses: others take only programs, and fail over anything else.
fn takes_addresses(client: Client) -> bool {
    matches!(client, Client::ClaudeCode | Client::Cursor | Client::VsCode)
}

/// Describes this program with some arguments. Clients have another PATH than a shell, and so it is named in full.
fn program(args: &[&str]) -> Result<Reach, Failure> {
    let unknown = |what: String| Failure::new(Exit::Failed, what);
    let here = std::env::current_exe()
        .map_err(|error| unknown(format!("it is not known where this program is: {error}")))?;
    let named = in_path(&here).unwrap_or(here);
    let command = named
        .to_str()
        .ok_or_else(|| unknown(format!("the path {} is not text in UTF-8", named.display())))?;
    let mut program = Program::new(command);
    program.args = args.iter().map(|word| Text::new(*word)).collect();
    Ok(Reach::Program(program))
}

/// Finds the way to this program through the PATH, which stays the same when another version is installed.
fn in_path(here: &Path) -> Option<PathBuf> {
    let here = std::fs::canonicalize(here).ok()?;
    let name = here.file_name()?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|known| std::fs::canonicalize(known).is_ok_and(|known| known == here))
}
