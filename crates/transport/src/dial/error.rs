use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::proxy::ProxyError;

/// Why a server could not be reached; nothing of a request was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The name of the host has no address.
    #[error("`{host}` cannot be resolved: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No address of the host took the connection.
    #[error("cannot connect to `{host}`: {}", ConnectFailures(failures))]
    Connect {
        /// The host.
        host: String,
        /// Every address that was tried, and why it failed.
        failures: Vec<(SocketAddr, io::Error)>,
    },
    /// The time was up.
    #[error("{stage} took longer than {waited:?}")]
    TimedOut {
        /// What went on when it was.
        stage: DialStage,
        /// The time for everything up to there.
        waited: Duration,
    },
    /// The proxy cannot be used, or refused.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The handshake of TLS failed.
    #[error("TLS with `{host}` failed: {source}")]
    Tls {
        /// The host.
        host: String,
        /// What is wrong.
        source: io::Error,
    },
    /// No certificate authorities could be loaded, so that no server could be trusted.
    #[error("no certificate authorities to trust: {0}")]
    Roots(String),
}

/// A step on the way to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialStage {
    /// Looking up the addresses of a name.
    Resolve,
    /// Connecting to an address.
    Connect,
    /// Asking a proxy for a tunnel.
    Proxy,
    /// The handshake of TLS.
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
