use std::fmt;

use trunkline_client::{BoxFuture, Builder, Client, Error, OverHttp, Verdicts};
use trunkline_config::{Endpoint, Program, Reach, ServerConfig, Wire};
use trunkline_transport::{Command, Target, Url};

/// Connects to the servers of a configuration.
///
/// A hub connects as the configuration says ([`Dial`]); a program that has servers within itself brings its own.
pub trait Connector: Send + Sync + 'static {
    /// Connects to a server, with a builder on which the hub has set who answers and within which bounds.
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>>;
}

/// Connects as a configuration says: starts the program, or dials the address.
#[derive(Clone, Default)]
pub struct Dial {
    verdicts: Verdicts,
}

impl Connector for Dial {
    fn connect(&self, server: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        let builder = builder.verdicts(self.verdicts.clone());
        match &server.reach {
            Reach::Program(program) => Box::pin(builder.connect(Target::Command(command(program)))),
            Reach::Endpoint(endpoint) => match address(endpoint) {
                Ok(url) => {
                    let with_headers = endpoint
                        .headers
                        .iter()
                        .fold(builder, |builder, (name, value)| builder.header(name.clone(), value.expose()));
                    Box::pin(with_headers.over_http(over_http(endpoint.wire)).connect(Target::Url(url)))
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            },
        }
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
fn address(endpoint: &Endpoint) -> Result<Url, Error> {
    let written = endpoint.url.expose();
    let spelled = match (endpoint.wire, written.split_once("://")) {
        (Wire::WebSocket, Some(("http", rest))) => format!("ws://{rest}"),
        (Wire::WebSocket, Some(("https", rest))) => format!("wss://{rest}"),
        _ => written.to_owned(),
    };
    spelled.parse().map_err(|error| Error::Invalid(format!("the address is not usable: {error}")))
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}
