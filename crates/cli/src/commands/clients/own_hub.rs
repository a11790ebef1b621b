use std::path::Path;

use trunkline_client::transport::Url;
use trunkline_config::{ConfigText, ServerConfig, ServerLocation};

/// The default port of a hub.
const DEFAULT_PORT: u16 = 7411;

/// Reports whether a server of a client is trunkline itself: the hub must not become a server of the hub.
///
/// `own` is the address of the hub that runs, if there is one.
pub(super) fn is_own_hub(server: &ServerConfig, own: Option<&str>) -> bool {
    match &server.location {
        ServerLocation::Endpoint(endpoint) => is_own_address(endpoint.url.as_written(), own),
        ServerLocation::Program(program) => {
            let words: Vec<&str> = program.args.iter().map(ConfigText::as_written).collect();
            is_own_program(program.command.as_written())
                && match words.first() {
                    Some(&"serve") => true,
                    Some(&"bridge") => words.iter().any(|word| is_own_address(word, own)),
                    _ => false,
                }
        }
    }
}

fn is_own_program(command: &str) -> bool {
    let path = Path::new(command);
    let is_same = || {
        let (there, here) =
            (std::fs::canonicalize(path), std::env::current_exe().and_then(std::fs::canonicalize));
        there.ok().zip(here.ok()).is_some_and(|(there, here)| there == here)
    };
    path.file_stem().is_some_and(|stem| stem == "trunkline") || is_same()
}

fn is_own_address(text: &str, own: Option<&str>) -> bool {
    let Ok(url) = text.parse::<Url>() else { return false };
    let is_running = own.and_then(|own| own.parse::<Url>().ok()).is_some_and(|own| {
        own.port() == url.port() && (own.host() == url.host() || (own.is_loopback() && url.is_loopback()))
    });
    is_running || (url.is_loopback() && url.port() == DEFAULT_PORT)
}

#[cfg(test)]
mod tests {
    use trunkline_config::{LocalProgram, RemoteEndpoint, ServerName};

    use super::*;

    fn program(line: &str) -> ServerLocation {
        let mut words = line.split(' ').map(ConfigText::new);
        let mut program = LocalProgram::new(words.next().unwrap());
        program.args = words.collect();
        ServerLocation::Program(program)
    }

    #[test]
    fn hub_entries_of_clients_are_recognized() {
        let own = Some("http://127.0.0.1:9000/mcp");
        for (location, expected) in [
            (program("/usr/bin/trunkline serve --stdio"), true),
            (program("trunkline serve --stdio --config x"), true),
            (program("trunkline.exe serve"), true),
            (program("trunkline bridge http://127.0.0.1:7411/mcp"), true),
            (program("trunkline bridge http://localhost:9000/mcp"), true),
            (program("trunkline bridge https://example.com/mcp"), false),
            (program("trunkline-server serve"), false),
            (program("npx -y serve"), false),
            (ServerLocation::Endpoint(RemoteEndpoint::new("http://127.0.0.1:7411/mcp")), true),
            (ServerLocation::Endpoint(RemoteEndpoint::new("http://[::1]:9000/mcp")), true),
            (ServerLocation::Endpoint(RemoteEndpoint::new("http://127.0.0.1:9001/mcp")), false),
            (ServerLocation::Endpoint(RemoteEndpoint::new("https://example.com:7411/mcp")), false),
        ] {
            let server = ServerConfig::new(ServerName::parse("x").unwrap(), location);
            assert_eq!(is_own_hub(&server, own), expected, "{server:?}");
        }
    }
}
