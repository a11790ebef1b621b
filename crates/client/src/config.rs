//! Servers as configurations describe them.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_config::find::{Found, look_up};
use trunkline_config::{Endpoint, Program, Reach, Wire};
use trunkline_transport::{Command, Secret, Target, TargetError};

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
    Ok(Named { target, headers, over_http: over_http(&server.reach), timeout: server.timeout })
}

#[cfg(test)]
mod tests {
    use super::*;

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
