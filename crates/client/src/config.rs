//! Configured servers.
//!
//! # Invariants
//!
//! - An error never contains values of the server's configuration: `config_values_never_appear_in_errors`.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_config::find::{FoundServer, look_up};
use trunkline_config::{
    LocalProgram, ProtocolEra, ProtocolRevision, RemoteEndpoint, RemoteTransport, ServerConfig,
    ServerLocation,
};
use trunkline_protocol::{Era, Revision};
use trunkline_transport::{Command, Secret, Target, TargetError};

use crate::builder::ClientBuilder;
use crate::connect::HttpTransportKind;
use crate::error::Error;

/// Returns the target of a configured server: its command with folder and variables, or its URL.
///
/// The headers of a URL are not part of it.
///
/// # Errors
/// The URL cannot be parsed.
pub fn target(location: &ServerLocation) -> Result<Target, TargetError> {
    match location {
        ServerLocation::Program(program) => Ok(command(program).into()),
        ServerLocation::Endpoint(endpoint) => address(endpoint).parse(),
    }
}

/// Returns the configured transport of a server with an `http` URL.
pub fn http_transport(location: &ServerLocation) -> HttpTransportKind {
    match location {
        ServerLocation::Endpoint(RemoteEndpoint { transport: RemoteTransport::Http, .. }) => {
            HttpTransportKind::Streamable
        }
        ServerLocation::Endpoint(RemoteEndpoint { transport: RemoteTransport::Sse, .. }) => {
            HttpTransportKind::Sse
        }
        ServerLocation::Endpoint(_) | ServerLocation::Program(_) => HttpTransportKind::Any,
    }
}

/// Pins the era or the revision that the configuration of a server names, if it names one.
pub fn with_pinned_revision(builder: ClientBuilder, server: &ServerConfig) -> ClientBuilder {
    match (server.revision, server.era) {
        (Some(revision), _) => builder.pin(revision_of(revision)),
        (None, Some(era)) => builder.era(era_of(era)),
        (None, None) => builder,
    }
}

/// Returns the era that the configuration of a server pins, if it does.
pub fn pinned_era(server: &ServerConfig) -> Option<Era> {
    server.revision.map(ProtocolRevision::era).or(server.era).map(era_of)
}

fn revision_of(revision: ProtocolRevision) -> Revision {
    match revision {
        ProtocolRevision::V2024_11_05 => Revision::V2024_11_05,
        ProtocolRevision::V2025_03_26 => Revision::V2025_03_26,
        ProtocolRevision::V2025_06_18 => Revision::V2025_06_18,
        ProtocolRevision::V2025_11_25 => Revision::V2025_11_25,
        ProtocolRevision::V2026_07_28 => Revision::V2026_07_28,
    }
}

fn era_of(era: ProtocolEra) -> Era {
    match era {
        ProtocolEra::Legacy => Era::Legacy,
        ProtocolEra::Modern => Era::Modern,
    }
}

fn command(program: &LocalProgram) -> Command {
    let arguments = program.args.iter().map(|argument| argument.expose().to_owned());
    let mut command = Command::new(program.command.expose()).args(arguments);
    if let Some(folder) = program.folder() {
        command = command.current_dir(folder);
    }
    program.env.iter().fold(command, |command, (name, value)| command.env(name, value.expose()))
}

/// Returns the URL to dial; a WebSocket server may be configured with an `http` or `https` URL.
fn address(endpoint: &RemoteEndpoint) -> String {
    let written = endpoint.url.expose();
    match (endpoint.transport, written.split_once("://")) {
        (RemoteTransport::WebSocket, Some((scheme, rest))) if scheme.eq_ignore_ascii_case("http") => {
            format!("ws://{rest}")
        }
        (RemoteTransport::WebSocket, Some((scheme, rest))) if scheme.eq_ignore_ascii_case("https") => {
            format!("wss://{rest}")
        }
        _ => written.to_owned(),
    }
}

/// The configuration behind a name.
pub(crate) struct ConfiguredTarget {
    pub(crate) target: Target,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) http_transport: HttpTransportKind,
    pub(crate) timeout: Option<Duration>,
    pub(crate) server: ServerConfig,
}

/// Looks a name up, in one file or in the default files.
pub(crate) async fn find_server(name: String, file: Option<PathBuf>) -> Result<ConfiguredTarget, Error> {
    // On a blocking thread, since files are read.
    let looking = tokio::task::spawn_blocking(move || look_up(&name, file.as_deref()));
    let found = looking.await.map_err(|_| Error::InvalidOptions {
        cause: "the configurations could not be read".to_owned(),
        source: None,
    })?;
    let FoundServer { server, .. } = found.map_err(Error::invalid_options)?;
    let headers = match &server.location {
        ServerLocation::Program(_) => Vec::new(),
        ServerLocation::Endpoint(endpoint) => {
            let headers = endpoint.headers.iter();
            headers.map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect()
        }
    };
    let target = target(&server.location).map_err(Error::invalid_options)?;
    Ok(ConfiguredTarget {
        target,
        headers,
        http_transport: http_transport(&server.location),
        timeout: server.timeout,
        server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_revisions_map_to_protocol_revisions_of_the_same_name() {
        assert_eq!(ProtocolRevision::ALL.map(revision_of), Revision::ALL);
        for revision in ProtocolRevision::ALL {
            assert_eq!(revision_of(revision).as_str(), revision.as_str());
            assert_eq!(revision_of(revision).era(), era_of(revision.era()));
        }
    }

    #[test]
    fn configured_server_is_converted_to_a_target() {
        let mut program = LocalProgram::new("run");
        program.args = vec!["a b".into(), "c".into()];
        program.env.insert("KEY".into(), "canary".into());
        let started = target(&ServerLocation::Program(program)).unwrap();
        assert_eq!(started.to_string(), "run 'a b' c");
        assert!(format!("{started:?}").contains("KEY") && !format!("{started:?}").contains("canary"));
        for (url, wire, expected) in [
            ("https://h/mcp", RemoteTransport::Auto, "https://h/mcp"),
            ("https://h/mcp", RemoteTransport::WebSocket, "wss://h/mcp"),
            ("HTTP://h/mcp", RemoteTransport::WebSocket, "ws://h/mcp"),
            ("ws://h/mcp", RemoteTransport::WebSocket, "ws://h/mcp"),
        ] {
            let endpoint = RemoteEndpoint { transport: wire, ..RemoteEndpoint::new(url) };
            assert_eq!(
                target(&ServerLocation::Endpoint(endpoint)).unwrap().to_string(),
                expected,
                "{url} {wire:?}"
            );
        }
    }
}
