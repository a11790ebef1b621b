use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::proxy::ProxyError;

/// The reason why a server could not be reached; nothing of a request was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The name of the host has no address.
    #[error("`{host}` cannot be resolved: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The host has only addresses that the [`AddressPolicy`](super::AddressPolicy) excludes, or is a name of the loopback
    /// with an address elsewhere.
    #[error(
        "`{host}` is at {address}, which is not a public address and not in the network of the server that named it"
    )]
    Forbidden {
        /// The host.
        host: String,
        /// Its first address.
        address: IpAddr,
    },
    /// No address of the host accepted the connection.
    #[error("cannot connect to `{host}`: {}", ConnectFailures(failures))]
    Connect {
        /// The host.
        host: String,
        /// Every attempted address, with its error.
        failures: Vec<(SocketAddr, io::Error)>,
    },
    /// The timeout expired.
    #[error("{stage} took longer than {waited:?}")]
    TimedOut {
        /// The stage at the timeout.
        stage: DialStage,
        /// The timeout.
        waited: Duration,
    },
    /// The proxy cannot be used, or rejected the tunnel.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The proxy cannot be reached.
    #[error("the proxy {proxy} cannot be used: {source}")]
    ProxyUnreachable {
        /// The proxy, and the variable that names it.
        proxy: String,
        /// The error of the connection to it.
        source: Box<DialError>,
    },
    /// The TLS handshake failed.
    #[error("TLS with `{host}` failed: {source}")]
    Tls {
        /// The host.
        host: String,
        /// The error of the handshake.
        source: io::Error,
    },
    /// No root certificates could be loaded, so no server can be trusted.
    #[error("no certificate authorities to trust: {0}")]
    Roots(String),
}

/// A stage of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialStage {
    /// The name resolution.
    Resolve,
    /// The TCP connection.
    Connect,
    /// The `CONNECT` request to a proxy.
    Proxy,
    /// The TLS handshake.
    Tls,
}

impl fmt::Display for DialStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolving the name",
            Self::Connect => "connecting",
            Self::Proxy => "asking the proxy for a tunnel",
            Self::Tls => "the TLS handshake",
        })
    }
}

struct ConnectFailures<'a>(&'a [(SocketAddr, io::Error)]);

impl fmt::Display for ConnectFailures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (address, error)) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{address}: {error}")?;
        }
        Ok(())
    }
}
