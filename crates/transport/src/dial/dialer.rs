use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;
use trunkline_http1::Url;
use trunkline_http1::client::{ClientConnector, HeaderLines, RequestForm};

use super::error::{DialError, DialStage};
use super::proxy::{HttpProxy, ProxySettings};
use super::stream::DialedStream;
use super::tcp;
use super::tls::ClientTls;
use super::tunnel;

/// How servers are reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialOptions {
    /// The time for everything before a request can be written: name, connection, proxy and TLS. 10 s.
    pub connect_timeout: Duration,
    /// Which proxies are used; those that the environment names.
    pub proxies: ProxySettings,
    /// A PEM file of certificate authorities that are trusted beside those of the machine; none.
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

/// Opens connections to servers; clones share what was found out about whom to trust.
#[derive(Clone, Debug)]
pub struct Dialer {
    shared: Arc<SharedDialer>,
}

#[derive(Debug)]
struct SharedDialer {
    connect_timeout: Duration,
    proxies: ProxySettings,
    tls: ClientTls,
}

/// How a connection came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The address that took the connection, which is the proxy's if there is one.
    pub address: SocketAddr,
    /// The proxy that the connection goes through.
    pub proxy: Option<String>,
    /// The time that looking up the name took.
    pub resolve_time: Duration,
    /// The time that connecting took.
    pub connect_time: Duration,
    /// The time that TLS took, and its version.
    pub tls: Option<(Duration, &'static str)>,
}

/// Tells whether a proxy may read the requests or has to give a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TunnelPolicy {
    /// Only for what is encrypted.
    Encrypted,
    /// For everything, since what follows are no requests.
    Always,
}

impl Dialer {
    /// Makes a dialler.
    pub fn new(options: DialOptions) -> Self {
        let DialOptions { connect_timeout, proxies, extra_roots } = options;
        Self { shared: Arc::new(SharedDialer { connect_timeout, proxies, tls: ClientTls::new(extra_roots) }) }
    }

    /// Opens a connection to the host of an address, through a tunnel where there is a proxy, and tells how.
    ///
    /// # Errors
    /// The server cannot be reached, be it in time or at all.
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
        let addresses = clock.run_stage(DialStage::Resolve, tcp::resolve(host, port)).await?;
        let resolved = Instant::now();
        let mut stream = clock.run_stage(DialStage::Connect, tcp::connect(host, &addresses)).await?;
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

/// The time that all stages have together.
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
