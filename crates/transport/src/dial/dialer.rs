use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;
use trunkline_http1::Url;
use trunkline_http1::client::{ClientConnector, HeaderLines, RequestForm};

use super::address_policy::AddressPolicy;
use super::error::{DialError, DialStage};
use super::proxy::{HttpProxy, ProxySettings};
use super::stream::DialedStream;
use super::tcp;
use super::tls::ClientTls;
use super::tunnel;

/// The options of a [`Dialer`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialOptions {
    /// The timeout for everything before the first request: name resolution, connection, proxy and TLS. 10 s.
    pub connect_timeout: Duration,
    /// The proxies; by default those of the environment.
    pub proxies: ProxySettings,
    /// A PEM file of certificate authorities to trust in addition to those of the system; none by default.
    pub extra_roots: Option<PathBuf>,
}

impl Default for DialOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            proxies: ProxySettings::default(),
            extra_roots: None,
        }
    }
}

/// Opens connections to servers; clones share the loaded root certificates.
#[derive(Clone, Debug)]
pub struct Dialer {
    shared: Arc<SharedDialer>,
    addresses: AddressPolicy,
}

#[derive(Debug)]
struct SharedDialer {
    connect_timeout: Duration,
    proxies: ProxySettings,
    tls: ClientTls,
}

/// Details of an opened connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The connected address, which is the proxy's if there is one.
    pub address: SocketAddr,
    /// The proxy of the connection.
    pub proxy: Option<String>,
    /// The time of the name resolution.
    pub resolve_time: Duration,
    /// The time of the TCP connection.
    pub connect_time: Duration,
    /// The time of the TLS handshake, and the TLS version.
    pub tls: Option<(Duration, &'static str)>,
}

/// Whether a proxy may read the requests or has to give a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TunnelPolicy {
    /// Only for encrypted connections.
    Encrypted,
    /// Always, since the connection is not used for plain requests.
    Always,
}

impl Dialer {
    /// Creates a dialer.
    pub fn new(options: DialOptions) -> Self {
        let DialOptions { connect_timeout, proxies, extra_roots } = options;
        let shared = SharedDialer { connect_timeout, proxies, tls: ClientTls::new(extra_roots) };
        Self { shared: Arc::new(shared), addresses: AddressPolicy::ANY }
    }

    /// Returns a dialer with the same settings that connects only to the addresses of a policy.
    #[must_use]
    pub fn with_addresses(&self, policy: AddressPolicy) -> Self {
        Self { shared: self.shared.clone(), addresses: policy }
    }

    /// Returns the policy for URLs that the server at `url` refers to, by the address of its own host
    /// ([`AddressPolicy::near`]); if that is not known for certain, only public addresses.
    ///
    /// A name of the server does not tell where it is: its owner could have the name of a public server resolve to an
    /// address of this network (DNS rebinding). Unless it is this machine, the server has to answer there with its
    /// certificate.
    pub async fn policy_near(&self, url: &Url) -> AddressPolicy {
        if let Ok(literal) = url.host().parse() {
            return AddressPolicy::near([literal]);
        }
        let resolving = tcp::resolve(url.host(), url.port());
        let resolved = tokio::time::timeout(self.shared.connect_timeout, resolving).await;
        let Ok(Ok(addresses)) = resolved else { return AddressPolicy::PUBLIC };
        let policy = AddressPolicy::near(addresses.iter().map(SocketAddr::ip));
        if policy == AddressPolicy::PUBLIC || url.is_loopback() {
            return policy;
        }
        if !url.scheme().is_encrypted() {
            return AddressPolicy::PUBLIC;
        }
        match self.dial(url).await {
            Ok((_, info)) if info.proxy.is_none() => AddressPolicy::near([info.address.ip()]),
            _ => AddressPolicy::PUBLIC,
        }
    }

    /// Leaves the allowed addresses of a host; those of a proxy are the user's own choice.
    ///
    /// A name of the loopback is trusted without TLS, so that only this machine is connected to, whatever a name server
    /// answers ([RFC 6761 §6.3](https://www.rfc-editor.org/rfc/rfc6761#section-6.3)).
    fn allowed(&self, url: &Url, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, DialError> {
        let first = addresses.first().map(SocketAddr::ip);
        let is_here = |address: IpAddr| !url.is_loopback() || address.to_canonical().is_loopback();
        addresses.retain(|address| self.addresses.allows(address.ip()) && is_here(address.ip()));
        match first {
            Some(address) if addresses.is_empty() => {
                Err(DialError::Forbidden { host: url.host().to_owned(), address })
            }
            _ => Ok(addresses),
        }
    }

    /// Opens a connection to the host of a URL, through a tunnel if there is a proxy, and returns it with its
    /// details.
    ///
    /// # Errors
    /// The server cannot be reached, or not within the timeout.
    pub async fn dial(&self, url: &Url) -> Result<(DialedStream, ConnectionInfo), DialError> {
        self.open(url, TunnelPolicy::Always).await.map(|(stream, route, _)| (stream, route))
    }

    async fn open(
        &self,
        url: &Url,
        tunnel: TunnelPolicy,
    ) -> Result<(DialedStream, ConnectionInfo, RequestForm), DialError> {
        let waited = self.shared.connect_timeout;
        let clock = DialDeadline { deadline: Instant::now() + waited, timeout: waited };
        let proxy = self.shared.proxies.choose(url)?;
        let (host, port) = proxy.map_or((url.host(), url.port()), |proxy| (&*proxy.host, proxy.port));
        let begun = Instant::now();
        let unreachable = |error: DialError| match proxy {
            None => error,
            Some(proxy) => DialError::ProxyUnreachable { proxy: proxy.label(), source: Box::new(error) },
        };
        let resolving = clock.run_stage(DialStage::Resolve, tcp::resolve(host, port));
        let addresses = resolving.await.map_err(unreachable)?;
        let addresses = match (proxy, url.host().parse::<IpAddr>()) {
            (None, _) => self.allowed(url, addresses)?,
            (Some(_), Ok(literal)) => {
                self.allowed(url, vec![SocketAddr::new(literal, url.port())])?;
                addresses
            }
            (Some(_), Err(_)) => addresses,
        };
        let resolved = Instant::now();
        let connecting = clock.run_stage(DialStage::Connect, tcp::connect(host, &addresses));
        let mut stream = connecting.await.map_err(unreachable)?;
        let form = match proxy {
            None => RequestForm::Origin,
            Some(proxy) if tunnel == TunnelPolicy::Always || url.scheme().is_encrypted() => {
                let authority = format!("{}:{}", bracketed(url.host()), url.port());
                let opening = async { Ok(tunnel::open(&mut stream, proxy, &authority).await?) };
                clock.run_stage(DialStage::Proxy, opening).await?;
                RequestForm::Origin
            }
            Some(proxy) => RequestForm::Absolute(proxy_headers(proxy)),
        };
        let mut route = ConnectionInfo {
            address: peer(&stream, host)?,
            proxy: proxy.map(HttpProxy::name),
            resolve_time: resolved - begun,
            connect_time: resolved.elapsed(),
            tls: None,
        };
        if !url.scheme().is_encrypted() {
            return Ok((DialedStream::plain(stream), route, form));
        }
        let begun = Instant::now();
        let stream = clock.run_stage(DialStage::Tls, self.shared.tls.handshake(stream, url.host())).await?;
        let version = stream.get_ref().1.protocol_version().and_then(|version| version.as_str());
        route.tls = Some((begun.elapsed(), version.unwrap_or("TLS")));
        Ok((DialedStream::tls(stream), route, form))
    }
}

impl ClientConnector for Dialer {
    type Stream = DialedStream;
    type Error = DialError;

    async fn connect(&self, origin: &Url) -> Result<(DialedStream, RequestForm), DialError> {
        self.open(origin, TunnelPolicy::Encrypted).await.map(|(stream, _, form)| (stream, form))
    }
}

/// Opens connections that never have a proxy which reads what goes over them.
#[derive(Debug)]
pub(super) struct TunnelDialer(pub(super) Dialer);

impl ClientConnector for TunnelDialer {
    type Stream = DialedStream;
    type Error = DialError;

    async fn connect(&self, origin: &Url) -> Result<(DialedStream, RequestForm), DialError> {
        self.0.open(origin, TunnelPolicy::Always).await.map(|(stream, _, form)| (stream, form))
    }
}

/// Returns the headers that go with each request which the proxy reads: its credentials, if it wants any.
fn proxy_headers(proxy: &HttpProxy) -> HeaderLines {
    let mut lines = HeaderLines::default();
    if let Some(credentials) = proxy.authorization() {
        lines.add(&http::header::PROXY_AUTHORIZATION, &credentials);
    }
    lines
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new(DialOptions::default())
    }
}

/// The common deadline of all stages.
struct DialDeadline {
    deadline: Instant,
    timeout: Duration,
}

impl DialDeadline {
    async fn run_stage<T>(
        &self,
        stage: DialStage,
        work: impl Future<Output = Result<T, DialError>>,
    ) -> Result<T, DialError> {
        let waited = self.timeout;
        tokio::time::timeout_at(self.deadline, work)
            .await
            .unwrap_or(Err(DialError::TimedOut { stage, waited }))
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

fn peer(stream: &TcpStream, host: &str) -> Result<SocketAddr, DialError> {
    stream
        .peer_addr()
        .map_err(|source| DialError::Connect { host: format!("{host} ({source})"), failures: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_loopback_lead_to_this_machine_only() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 80)).collect()
        };
        let own = ["127.0.0.1", "::1", "::ffff:127.0.0.1"];
        for (url, answered, allowed) in [
            ("http://localhost/token", &["198.51.100.7", "10.0.0.1"][..], &[][..]),
            ("http://issuer.localhost/token", &["198.51.100.7"], &[]),
            ("https://issuer.localhost/token", &["10.0.0.1", "127.0.0.1"], &["127.0.0.1"]),
            ("http://localhost/token", &own, &own),
            ("http://localhost.example.com/token", &["198.51.100.7"], &["198.51.100.7"]),
        ] {
            let url: Url = url.parse().unwrap();
            let found = Dialer::default().allowed(&url, addresses(answered));
            match found {
                Ok(found) => assert_eq!(found, addresses(allowed), "{url}"),
                Err(error) => {
                    assert!(
                        matches!(error, DialError::Forbidden { .. }) && allowed.is_empty(),
                        "{url}: {error}"
                    );
                }
            }
        }
    }
}
