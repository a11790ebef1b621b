//! Noticing that a hub would start itself without end: its file may name `trunkline serve`, as a client's file does.
//!
//! # Invariants
//!
//! - A hub that is named in its own file does not start itself recursively:
//!   `hub_listed_in_its_own_config_does_not_start_itself`.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

use super::own_server::digest;
use crate::exit::CliFailure;

/// Informs started programs of the enclosing hubs: digests of their configuration files, separated by commas.
pub(super) const ENCLOSING_HUBS_VARIABLE: &str = "TRUNKLINE_WITHIN";

/// Returns the value of that variable for the programs that the hub of a file starts.
///
/// # Errors
/// This process was itself started by a hub of the file.
pub(super) fn enclosing_hubs(file: &Path) -> Result<String, CliFailure> {
    extend_enclosing_hubs(&std::env::var_os(ENCLOSING_HUBS_VARIABLE).unwrap_or_default(), file)
}

fn extend_enclosing_hubs(outer: &OsStr, file: &Path) -> Result<String, CliFailure> {
    let outer = outer.to_string_lossy();
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // Not every path is text, nor without the sign that is between paths elsewhere.
    let digest = digest(file.as_os_str().as_encoded_bytes());
    if outer.split(',').any(|known| known == digest) {
        let what =
            format!("the hub of {} was started by itself and would keep starting itself", file.display());
        return Err(CliFailure::configuration(what)
            .hint("remove the hub from its own config file, or use `--no-config` for the built-in servers"));
    }
    Ok(if outer.is_empty() { digest } else { format!("{outer},{digest}") })
}

/// Reports whether an address leads to where this hub listens. What a proxy leads to is not known here.
pub(super) async fn is_own_address(url: &str, here: SocketAddr) -> bool {
    let Some((host, port)) = host_and_port(url).filter(|(_, port)| *port == here.port()) else {
        return false;
    };
    // Who cannot be found cannot be connected to either.
    let found = tokio::net::lookup_host((host, port)).await;
    found.is_ok_and(|mut found| found.any(|address| reaches_listener(address.ip(), here.ip())))
}

fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match &*scheme.to_ascii_lowercase() {
        "http" | "ws" => 80,
        _ => 443,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    Some((host.trim_start_matches('[').trim_end_matches(']'), port))
}

/// Reports whether who connects to an address of a port comes to who listens at the other.
fn reaches_listener(dialed: IpAddr, here: IpAddr) -> bool {
    // Connecting to no address in particular means this machine.
    let dialed = match dialed.to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    if here.is_unspecified() {
        // Only an address of this machine can be given to a socket.
        return dialed.is_loopback() || UdpSocket::bind((dialed, 0)).is_ok();
    }
    dialed == here.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn own_address_is_detected_in_urls() {
        for (url, here, expected) in [
            ("http://127.0.0.1:7411/mcp", "127.0.0.1:7411", true),
            ("ws://LOCALHOST:7411/ws", "127.0.0.1:7411", true),
            ("http://0.0.0.0:7411/mcp", "127.0.0.1:7411", true),
            ("http://[::ffff:127.0.0.1]:7411/mcp", "127.0.0.1:7411", true),
            ("http://[::1]:7411", "[::1]:7411", true),
            ("http://[::]:7411", "[::1]:7411", true),
            ("http://127.0.0.3:7411", "0.0.0.0:7411", true),
            ("http://127.0.0.1/mcp", "127.0.0.1:80", true),
            ("https://[::1]", "[::1]:443", true),
            ("http://[::1]:7411", "127.0.0.1:7411", false),
            ("http://127.0.0.1:7412/mcp", "127.0.0.1:7411", false),
            ("http://127.0.0.1/mcp", "127.0.0.1:7411", false),
            // A documentation address, and so not one of this machine.
            ("http://192.0.2.1:7411/mcp", "0.0.0.0:7411", false),
            ("nonsense", "127.0.0.1:7411", false),
        ] {
            assert_eq!(is_own_address(url, here.parse().unwrap()).await, expected, "{url} {here}");
        }
    }

    #[test]
    fn self_reference_is_detected_for_any_path() {
        for path in ["/nowhere/a.toml", "/nowhere/a:b,c.toml"] {
            let (first, second) = (Path::new(path), Path::new("/nowhere/other.toml"));
            let enclosing = extend_enclosing_hubs(OsStr::new(""), first).unwrap();
            assert!(extend_enclosing_hubs(enclosing.as_ref(), first).is_err(), "{path}");
            let enclosing = extend_enclosing_hubs(enclosing.as_ref(), second).unwrap();
            assert!(extend_enclosing_hubs(enclosing.as_ref(), first).is_err(), "{path}");
            assert!(extend_enclosing_hubs(enclosing.as_ref(), second).is_err(), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn self_reference_is_detected_for_non_utf8_paths() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(OsStr::from_bytes(b"/nowhere/\xff.toml"));
        let enclosing = extend_enclosing_hubs(OsStr::new(""), path).unwrap();
        assert!(extend_enclosing_hubs(enclosing.as_ref(), path).is_err());
    }
}
