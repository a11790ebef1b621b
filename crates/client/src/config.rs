//! Servers as configurations describe them.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_config::find::{Found, look_up};
use trunkline_config::{Endpoint, Program, ProtocolEra, ProtocolRevision, Reach, ServerConfig, Wire};
use trunkline_protocol::{Era, Revision};
use trunkline_transport::{Command, Secret, Target, TargetError};

use crate::builder::Builder;
use crate::connect::OverHttp;
use crate::error::Error;

/// Returns what a server of a configuration is reached by: its program with folder and variables, or its address.
///
/// The headers of an address are not part of it.
///
/// # Errors
/// The address cannot be read.
pub fn target(reach: &Reach) -> Result<Target, TargetError> {
    match reach {
        Reach::Program(program) => Ok(command(program).into()),
        Reach::Endpoint(endpoint) => address(endpoint).parse(),
    }
}

/// Returns which transport is spoken to a server whose address says only that it is HTTP.
pub fn over_http(reach: &Reach) -> OverHttp {
    match reach {
        Reach::Endpoint(Endpoint { wire: Wire::Http, .. }) => OverHttp::Streamable,
        Reach::Endpoint(Endpoint { wire: Wire::Sse, .. }) => OverHttp::Sse,
        Reach::Endpoint(_) | Reach::Program(_) => OverHttp::Any,
    }
}

/// Holds a connection to the era or the revision that the configuration of a server names, if it names one.
pub fn pinned(builder: Builder, server: &ServerConfig) -> Builder {
    match (server.revision, server.era) {
        (Some(revision), _) => builder.pin(revision_of(revision)),
        (None, Some(era)) => builder.era(era_of(era)),
        (None, None) => builder,
    }
}

/// Returns the era to which the configuration of a server holds it, if it does.
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

fn command(program: &Program) -> Command {
    let arguments = program.args.iter().map(|argument| argument.expose().to_owned());
    let mut command = Command::new(program.command.expose()).args(arguments);
    if let Some(folder) = program.folder() {
        command = command.current_dir(folder);
    }
    program.env.iter().fold(command, |command, (name, value)| command.env(name, value.expose()))
}

/// Writes the address to dial; one that is said to be a WebSocket may be written as that of HTTP.
fn address(endpoint: &Endpoint) -> String {
    let written = endpoint.url.expose();
    match (endpoint.wire, written.split_once("://")) {
        (Wire::WebSocket, Some((scheme, rest))) if scheme.eq_ignore_ascii_case("http") => {
            format!("ws://{rest}")
        }
        (Wire::WebSocket, Some((scheme, rest))) if scheme.eq_ignore_ascii_case("https") => {
            format!("wss://{rest}")
        }
        _ => written.to_owned(),
    }
}

/// What a name stands for.
pub(crate) struct Named {
    pub(crate) target: Target,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) over_http: OverHttp,
    pub(crate) timeout: Option<Duration>,
    pub(crate) server: ServerConfig,
}

/// Looks a name up, in a file or in those that are looked at by default.
pub(crate) async fn find(name: String, file: Option<PathBuf>) -> Result<Named, Error> {
    // Files are read by a thread that may wait for them.
    let looking = tokio::task::spawn_blocking(move || look_up(&name, file.as_deref()));
    let found =
        looking.await.map_err(|_| Error::Invalid("the configurations could not be read".to_owned()))?;
    let Found { server, .. } = found.map_err(|error| Error::Invalid(error.to_string()))?;
    let headers = match &server.reach {
        Reach::Program(_) => Vec::new(),
        Reach::Endpoint(endpoint) => {
            let headers = endpoint.headers.iter();
            headers.map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect()
        }
    };
    let target = target(&server.reach).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(Named { target, headers, over_http: over_http(&server.reach), timeout: server.timeout, server })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_of_a_configuration_is_the_one_of_that_name() {
        assert_eq!(ProtocolRevision::ALL.map(revision_of), Revision::ALL);
        for revision in ProtocolRevision::ALL {
            assert_eq!(revision_of(revision).as_str(), revision.as_str());
            assert_eq!(revision_of(revision).era(), era_of(revision.era()));
        }
    }

    #[test]
    fn what_is_configured_becomes_a_target() {
        let mut program = Program::new("run");
        program.args = vec!["a b".into(), "c".into()];
        program.env.insert("KEY".into(), "canary".into());
        let started = target(&Reach::Program(program)).unwrap();
        assert_eq!(started.to_string(), "run 'a b' c");
        assert!(format!("{started:?}").contains("KEY") && !format!("{started:?}").contains("canary"));
        for (url, wire, expected) in [
            ("https://h/mcp", Wire::Auto, "https://h/mcp"),
            ("https://h/mcp", Wire::WebSocket, "wss://h/mcp"),
            ("HTTP://h/mcp", Wire::WebSocket, "ws://h/mcp"),
            ("ws://h/mcp", Wire::WebSocket, "ws://h/mcp"),
        ] {
            let endpoint = Endpoint { wire, ..Endpoint::new(url) };
            assert_eq!(target(&Reach::Endpoint(endpoint)).unwrap().to_string(), expected, "{url} {wire:?}");
        }
    }
}
