use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// An address to listen on: a host and a port, where port 0 is any that is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Resolves the host.
    ///
    /// # Errors
    /// The name is not known.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    /// Reads `HOST:PORT`, or a port alone with or without its colon, which is then one of the loopback.
    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || "expected HOST:PORT, :PORT or PORT; port 0 picks a free one".to_owned();
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        // `parse` alone would take `+80`.
        let port = Some(port).filter(|port| port.chars().all(|c| c.is_ascii_digit()));
        let port = port.and_then(|port| port.parse().ok()).ok_or_else(malformed)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().map_err(|_| malformed())?.to_string(),
            None if host.is_empty() => Ipv4Addr::LOCALHOST.to_string(),
            None if host.contains([':', '/', '[', ']', ' ']) => return Err(malformed()),
            None => host.to_owned(),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_address_defaults_to_loopback_and_needs_a_port() {
        for (text, expected) in [
            ("127.0.0.1:7411", "127.0.0.1:7411"),
            ("7411", "127.0.0.1:7411"),
            (":7411", "127.0.0.1:7411"),
            (":0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("localhost:80", "localhost:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::]:0", "[::]:0"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_listen_addresses_are_rejected() {
        for text in [
            "",
            ":",
            "host",
            "host:",
            "host:http",
            ":65536",
            ":-1",
            ":+80",
            "::1:80",
            "[::1]",
            "[host]:80",
            "http://host:80",
            "host:80/mcp",
            "a b:80",
        ] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }
}
