use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::net::TcpStream;

use super::error::DialError;

/// The delay before the next address is attempted in parallel (RFC 8305 §5).
const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The most addresses that are attempted.
const MAX_ADDRESSES: usize = 16;

/// The idle time before the first TCP keep-alive probe.
#[cfg(target_os = "linux")]
const TCP_KEEPALIVE_TIME: Duration = Duration::from_secs(60);

/// Resolves the addresses of a host, in the order of the attempts.
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
    let failed = |source| DialError::Resolve { host: host.to_owned(), source };
    let found: Vec<_> = tokio::net::lookup_host((host, port)).await.map_err(failed)?.collect();
    if found.is_empty() {
        return Err(failed(io::Error::other("the name has no address")));
    }
    Ok(interleave_families(&found))
}

/// Interleaves the two address families, beginning with that of the first (RFC 8305 §4).
fn interleave_families(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        found.iter().copied().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    let mut ordered = Vec::with_capacity(found.len());
    while ordered.len() < MAX_ADDRESSES {
        let before = ordered.len();
        ordered.extend(preferred.next());
        ordered.extend(other.next());
        if ordered.len() == before {
            break;
        }
    }
    ordered.truncate(MAX_ADDRESSES);
    ordered
}

/// Connects to the first address that accepts.
///
/// The next address is attempted when one failed, or when its head start has expired.
pub(super) async fn connect(host: &str, addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let mut trying = FuturesUnordered::new();
    let mut failures = Vec::new();
    for next in addresses {
        trying.push(attempt(*next));
        tokio::select! {
            biased;
            Some(outcome) = trying.next() => match outcome {
                Ok(stream) => return Ok(stream),
                Err(failure) => failures.push(failure),
            },
            () = tokio::time::sleep(CONNECTION_ATTEMPT_DELAY) => {}
        }
    }
    while let Some(outcome) = trying.next().await {
        match outcome {
            Ok(stream) => return Ok(stream),
            Err(failure) => failures.push(failure),
        }
    }
    Err(DialError::Connect { host: host.to_owned(), failures })
}

async fn attempt(address: SocketAddr) -> Result<TcpStream, (SocketAddr, io::Error)> {
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        // A request is one write, so Nagle's algorithm could only delay it.
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        Ok(stream)
    };
    connecting.await.map_err(|error| (address, error))
}

/// Enables TCP keep-alive: a standalone SSE stream would otherwise wait for a dead peer forever.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_keepidle(stream, TCP_KEEPALIVE_TIME)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_are_interleaved() {
        let read = |text: &[&str]| text.iter().map(|a| a.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let table: &[(&[&str], &[&str])] = &[
            (
                &["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1"],
                &["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"],
            ),
            (&["1.1.1.1:1", "1.1.1.2:1", "[::1]:1"], &["1.1.1.1:1", "[::1]:1", "1.1.1.2:1"]),
            (&["1.1.1.1:1"], &["1.1.1.1:1"]),
            (&[], &[]),
        ];
        for (found, expected) in table {
            assert_eq!(interleave_families(&read(found)), read(expected), "{found:?}");
        }
        let many: Vec<SocketAddr> = (0..1000).map(|port| SocketAddr::from(([1, 1, 1, 1], port))).collect();
        assert_eq!(interleave_families(&many).len(), MAX_ADDRESSES);
    }

    #[tokio::test]
    async fn next_address_is_tried_on_failure_and_all_failures_are_reported() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let there = listener.local_addr().unwrap();
        let stream = connect("h", &[gone, there]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        assert!(stream.nodelay().unwrap());
        let error = connect("h", &[gone]).await.unwrap_err().to_string();
        assert!(error.contains("`h`") && error.contains(&gone.to_string()), "{error}");
    }
}
