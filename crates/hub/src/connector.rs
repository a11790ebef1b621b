use std::fmt;
use std::sync::Arc;

use trunkline_client::{BoxFuture, Builder, Client, Error, OverHttp, Verdicts};
use trunkline_config::{Endpoint, Program, Reach, ServerConfig, Wire};
use trunkline_server::Handler;
use trunkline_transport::{Command, Target, Url, UrlError};

/// Connects to the servers of a configuration.
///
/// A hub connects as the configuration says ([`Dial`]); a program that has servers within itself brings its own.
pub trait Connector: Send + Sync + 'static {
    /// Connects to a server, with a builder on which the hub has set who answers and within which bounds.
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>>;

    /// Returns the server itself, if it is in this process and part of the hub.
    ///
    /// What it offers is learned over a connection like any other's, but its calls go to it as they came, with their caller
    /// and without a connection; and so its names are its own, and rules about tools do not count. It is also told of calls
    /// of tools that nobody has.
    fn in_process(&self, _server: &ServerConfig) -> Option<Arc<dyn Handler>> {
        None
    }
}

/// Connects as a configuration says: starts the program, or dials the address.
#[derive(Clone, Default)]
pub struct Dial {
    verdicts: Verdicts,
}

impl Connector for Dial {
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        let builder = builder.verdicts(self.verdicts.clone());
        let builder = match &server.reach {
            Reach::Program(_) => builder,
            Reach::Endpoint(endpoint) => endpoint
                .headers
                .iter()
                .fold(builder.over_http(over_http(endpoint.wire)), |builder, (name, value)| {
                    builder.header(name.clone(), value.expose())
                }),
        };
        match target(&server.reach) {
            Ok(target) => Box::pin(builder.connect(target)),
            Err(error) => {
                let error = Error::Invalid(format!("the address is not usable: {error}"));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

/// Returns what a client connects to in order to reach a server, headers not included.
///
/// # Errors
/// The address is none.
pub fn target(reach: &Reach) -> Result<Target, UrlError> {
    match reach {
        Reach::Program(program) => Ok(Target::Command(command(program))),
        Reach::Endpoint(endpoint) => address(endpoint).map(Target::Url),
    }
}

fn command(program: &Program) -> Command {
    let arguments = program.args.iter().map(|argument| argument.expose().to_owned());
    let mut command = Command::new(program.command.expose()).args(arguments);
    for (name, value) in &program.env {
        command = command.env(name.clone(), value.expose().to_owned());
    }
    match program.folder() {
        Some(folder) => command.current_dir(folder),
        None => command,
    }
}

/// Returns which transport is spoken where the address says only that it is HTTP.
fn over_http(wire: Wire) -> OverHttp {
    match wire {
        Wire::Http => OverHttp::Streamable,
        Wire::Sse => OverHttp::Sse,
        Wire::Auto | Wire::WebSocket => OverHttp::Any,
    }
}

/// Returns the address to dial; one that is said to be a WebSocket may be written as that of HTTP.
fn address(endpoint: &Endpoint) -> Result<Url, UrlError> {
    let written = endpoint.url.expose();
    let spelled = match (endpoint.wire, written.split_once("://")) {
        (Wire::WebSocket, Some(("http", rest))) => format!("ws://{rest}"),
        (Wire::WebSocket, Some(("https", rest))) => format!("wss://{rest}"),
        _ => written.to_owned(),
    };
    spelled.parse()
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}
