use std::path::{Path, PathBuf};

use trunkline_config::find::ClientApp;
use trunkline_config::{
    ConfigText, LocalProgram, RemoteEndpoint, RemoteTransport, ServerConfig, ServerLocation, ServerName,
};

use super::InstallArgs;
use crate::exit::{CliFailure, ExitReason};

/// Describes the hub as a server of a client.
pub(super) fn hub_entry(
    args: &InstallArgs,
    name: &ServerName,
    client_file: &Path,
) -> Result<ServerConfig, CliFailure> {
    let location = match &args.http {
        Some(url) if supports_urls(args.client) && !url.scheme().is_websocket() => {
            ServerLocation::Endpoint(RemoteEndpoint {
                transport: RemoteTransport::Http,
                ..RemoteEndpoint::new(&*url.to_full_string())
            })
        }
        // A client without support for the transport uses the bridge.
        Some(url) => own_program(&["bridge", &url.to_full_string()])?,
        None => {
            let config = args.file.path()?;
            let config = std::path::absolute(&config).unwrap_or(config);
            if std::fs::canonicalize(&config).ok() == std::fs::canonicalize(client_file).ok() {
                return Err(CliFailure::configuration(format!(
                    "{} is the client's own config file; the hub would start itself",
                    config.display()
                ))
                .hint("create a trunkline.toml from it with `trunkline import --all`"));
            }
            let config = config.to_str().ok_or_else(|| {
                CliFailure::configuration(format!("the path {} is not valid UTF-8", config.display()))
            })?;
            own_program(&["serve", "--stdio", "--config", config])?
        }
    };
    Ok(ServerConfig::new(name.clone(), location))
}

/// Reports whether the file of a client can have addresses: others take only programs, and fail over anything else.
fn supports_urls(client: ClientApp) -> bool {
    matches!(client, ClientApp::ClaudeCode | ClientApp::Cursor | ClientApp::VsCode)
}

/// Describes this program with some arguments. Clients have another PATH than a shell, and so it is named in full.
fn own_program(args: &[&str]) -> Result<ServerLocation, CliFailure> {
    let unknown = |what: String| CliFailure::new(ExitReason::Failed, what);
    let here = std::env::current_exe()
        .map_err(|error| unknown(format!("cannot find the path of this program: {error}")))?;
    let named = find_in_path(&here).unwrap_or(here);
    let command =
        named.to_str().ok_or_else(|| unknown(format!("the path {} is not valid UTF-8", named.display())))?;
    let mut program = LocalProgram::new(command);
    program.args = args.iter().map(|word| ConfigText::new(*word)).collect();
    Ok(ServerLocation::Program(program))
}

/// Finds this program on the PATH, which stays the same when another version is installed.
fn find_in_path(here: &Path) -> Option<PathBuf> {
    let here = std::fs::canonicalize(here).ok()?;
    let name = here.file_name()?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|known| std::fs::canonicalize(known).is_ok_and(|known| known == here))
}
